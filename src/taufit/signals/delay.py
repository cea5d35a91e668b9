"""Delay of recorded torque behind recorded motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.signals.differentiation import central_difference
from taufit.signals.filtering import settling_time, zero_phase
from taufit.signals.motion_intervals import motion_mask
from taufit.signals.resampling import interpolate

# Largest difference between joint delays for a common delay [s].
_MAX_DIFFERENCE_S = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Delay:
    """Delay of torque behind motion.

    Attributes:
        seconds: Common delay of all joints, rounded to 0.1 ms [s].
        joint_delays: Delay per joint [s]; nan if undetermined.
        reason: Explanation for users.
    """

    seconds: float
    joint_delays: Float[Array, " j"]
    reason: str


# Runs differ in length, joints do not.
Run = tuple[Float[Array, "_ j"], Float[Array, "_ j"], Float[Array, "_ j"]]


def estimate_delay(
    runs: Sequence[Run], rate_hz: float, *, cutoff_hz: float = 20.0, max_delay_s: float = 0.12
) -> Delay:
    """Estimate the delay of torque behind motion, without a robot model.

    Torque is regressed on generic robot terms: accelerations, products of velocities, sines and
    cosines of sums of neighbouring joint angles, friction and its derivative. The delay d of a
    joint minimises

        n log |tau(t + d) - best fit of X(t)|^2

    with parabolic interpolation between grid steps; the common delay is their median.

    Args:
        runs: Position, velocity and torque on the uniform grid, unfiltered.
        rate_hz: Rate of the grid [Hz].
        cutoff_hz: Cut-off of the low-pass on both sides [Hz], at most a fifth of the rate. May be
            higher than for a fit, since steps of friction show the delay best.
        max_delay_s: Delays from -longest/3 to longest are tried.
    """
    cutoff = min(cutoff_hz, 0.2 * rate_hz)
    lags = np.arange(-max_delay_s / 3, max_delay_s + 1e-9, 0.002)
    columns, advanced_torque = [], []
    for position, velocity, torque in runs:
        n = len(position)
        moving = motion_mask(velocity, rate_hz)
        edge = int((settling_time(cutoff) + max_delay_s) * rate_hz)
        rows = np.flatnonzero(moving)
        rows = rows[(rows >= edge) & (rows < n - edge)]
        if len(rows) < 50:
            continue
        columns.append(_basis(position, velocity, rate_hz, cutoff)[rows])
        advanced_torque.append(_advance(zero_phase(torque, rate_hz, cutoff), rate_hz, lags, rows))
    if not columns:
        raise RecordingError(
            "the delay between motion and torque cannot be estimated: too little motion. "
            "Give delay_s in seconds (0 for none)."
        )
    x, y = np.concatenate(columns), np.concatenate(advanced_torque, axis=1)
    step = max(1, len(x) // 12_000)
    x, y = x[::step], y[:, ::step]
    scale = np.linalg.norm(x, axis=0)
    x = x[:, scale > 1e-9 * scale.max()] / scale[scale > 1e-9 * scale.max()]
    if len(x) < 3 * x.shape[1]:
        raise RecordingError(
            "the delay between motion and torque cannot be estimated: the motion is too short. "
            "Give delay_s in seconds (0 for none)."
        )
    q, upper, _ = qr(x, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(upper))
    q = q[:, pivots > 1e-8 * pivots[0]]
    residual_power = np.stack([np.sum(np.square(t), 0) - np.sum(np.square(q.T @ t), 0) for t in y])
    residual_power = np.maximum(
        residual_power, 1e-12 * np.sum(np.square(y), 1).max(axis=0) + 1e-300
    )
    cost = len(x) * np.log(residual_power)
    joint_delays = np.array([_find_minimum(lags, c) for c in cost.T])
    best = _common_delay(lags, cost, joint_delays)
    joint_text = ", ".join("-" if np.isnan(d) else f"{1e3 * d:.0f}" for d in joint_delays)
    if np.isnan(best):
        return Delay(
            0.0,
            joint_delays,
            f"no delay between motion and torque stands out within {1e3 * lags[0]:.0f} to "
            f"{1e3 * lags[-1]:.0f} ms (joint by joint {joint_text})",
        )
    differences = np.abs(joint_delays[np.isfinite(joint_delays)] - best)
    if not len(differences) or np.median(differences) > _MAX_DIFFERENCE_S:
        return Delay(
            0.0,
            joint_delays,
            f"the joints agree on no delay between motion and torque ({joint_text} ms)",
        )
    delay = round(best, 4)
    reason = f"torque lags motion by {1e3 * delay:.1f} ms (joint by joint {joint_text})"
    if np.ptp(joint_delays[np.isfinite(joint_delays)]) > _MAX_DIFFERENCE_S:
        reason += "; the joints differ, so read the values one by one"
    return Delay(delay, joint_delays, reason)


def _common_delay(
    lags: Float[Array, " d"], cost: Float[Array, "d j"], joint_delays: Float[Array, " j"]
) -> float:
    """Median of the joint delays, to which a joint with unusual friction or load adds no bias;
    with fewer than three of them the minimum of the total cost."""
    finite = joint_delays[np.isfinite(joint_delays)]
    return float(np.median(finite)) if len(finite) >= 3 else _find_minimum(lags, cost.sum(axis=1))


def _find_minimum(lags: Float[Array, " d"], cost: Float[Array, " d"]) -> float:
    """Location of the minimum, interpolated between lags; nan at the ends of the range."""
    best = int(np.argmin(cost))
    if best in (0, len(lags) - 1):
        return np.nan
    a, b, c = cost[best - 1 : best + 2]
    return float(lags[best] + 0.5 * (a - c) / (a - 2 * b + c) * (lags[1] - lags[0]))


def tracking_delay(
    commanded: Float[Array, "n j"], measured: Float[Array, "n j"], rate_hz: float
) -> float:
    """Delay of measured position behind commanded position, in closed form [s].

    With q_m(t) = q_c(t - d) + b to first order, d = -sum v_c (q_m - q_c - b) / sum v_c^2, improved
    by Newton's method on the shifted command; b is a constant offset per joint.
    """
    time = np.arange(len(commanded)) / rate_hz
    velocity = central_difference(commanded, rate_hz, np.inf)
    delay = 0.0
    for _ in range(5):
        shifted = interpolate(time, commanded, time - delay)
        slope = interpolate(time, velocity, time - delay)
        power = float(np.sum(np.square(slope)))
        if power == 0.0:
            return 0.0
        error = measured - shifted
        delay -= float(np.sum(slope * (error - error.mean(axis=0)))) / power
    return delay


def _advance(
    signal: Float[Array, "n j"],
    rate_hz: float,
    lags: Float[Array, " d"],
    rows: Int[Array, " m"],
) -> Float[Array, "d m j"]:
    """Signal x(t + d) for every lag d, by phase shift in the Fourier domain.

    Interpolation would weaken noise more between the samples than on them, and so prefer lags of
    half a step.
    """
    n = len(signal)
    ramp = np.linspace(0.0, 1.0, n)[:, None] * (signal[-1] - signal[0])
    spectrum = np.fft.rfft(signal - ramp, axis=0)
    phase_rate = 2j * np.pi * np.fft.rfftfreq(n, 1.0 / rate_hz)
    out = []
    for d in lags:
        advanced = np.fft.irfft(spectrum * np.exp(phase_rate * d)[:, None], n, axis=0)
        slope = (signal[-1] - signal[0]) * (d * rate_hz / max(n - 1, 1))
        out.append((advanced + ramp + slope)[rows])
    return np.stack(out)


def _basis(
    position: Float[Array, "n j"], velocity: Float[Array, "n j"], rate_hz: float, cutoff: float
) -> Float[Array, "n c"]:
    joints = position.shape[1]
    # Noise must not decide the sign of a slow velocity.
    smooth_velocity = zero_phase(velocity, rate_hz, min(3.0 * cutoff, 0.45 * rate_hz))
    friction = zero_phase(np.tanh(smooth_velocity / 0.005), rate_hz, cutoff)
    q = zero_phase(position, rate_hz, cutoff)
    v = zero_phase(velocity, rate_hz, cutoff)
    a = central_difference(v, rate_hz, cutoff)
    # The derivative of friction takes up its own lag, that of pre-sliding [about 15 ms on a UR10e].
    friction_rate = central_difference(friction, rate_hz, cutoff)
    parts = [np.ones((len(q), 1)), v, friction, friction_rate, v * np.abs(v), a]
    for first in range(joints):
        for last in range(first, min(first + 3, joints)):
            angle = q[:, first : last + 1].sum(axis=1, keepdims=True)
            parts += [np.sin(angle), np.cos(angle)]
        parts.append(v[:, first : first + 1] * v[:, first + 1 :])
        # Inertia changes most with the next two joints' angles.
        for neighbour in range(first + 1, min(first + 3, joints)):
            parts += [
                a[:, first : first + 1] * np.cos(q[:, neighbour : neighbour + 1]),
                a[:, neighbour : neighbour + 1] * np.cos(q[:, neighbour : neighbour + 1]),
            ]
    return np.concatenate(parts, axis=1)
