"""Sensor model: noise, quantisation, time stamps and lost rows.

Every effect uses its own random stream of the seed, so switching one on does not change the others.
"""

from __future__ import annotations

import zlib

import numpy as np
from scipy.linalg import solve_banded

from taufit.core.arrays import Array, Float, Int
from taufit.sim.effects import Encoder, SamplingErrors, Sensing, per_joint
from taufit.sim.simulation_loop import TICK_S


def random_stream(seed: int, name: str) -> np.random.Generator:
    """Random generator of one effect."""
    return np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, zlib.crc32(name.encode())])


def sampling_ticks(
    duration: float, rate_hz: float, timing: SamplingErrors | None, seed: int
) -> Int[Array, " n"]:
    """Ticks at which rows are sampled, from 0 to `duration`."""
    last = round(duration / TICK_S)
    if timing is None or not timing.intervals:
        count = int(np.floor(duration * rate_hz + 1e-9)) + 1
        ticks = np.round(np.arange(count) / (rate_hz * TICK_S)).astype(np.int64)
        return ticks[ticks <= last]
    steps, probabilities = np.array(timing.intervals, float).T
    tick_steps = np.maximum(np.round(steps / TICK_S), 1).astype(np.int64)
    rng = random_stream(seed, "intervals")
    steps_drawn = rng.choice(
        tick_steps, size=int(last / tick_steps.min()) + 2, p=probabilities / probabilities.sum()
    )
    ticks = np.concatenate([[0], np.cumsum(steps_drawn)])
    return ticks[ticks <= last]


def time_stamps(
    ticks: Int[Array, " n"], timing: SamplingErrors | None, seed: int
) -> Float[Array, " n"]:
    """Time stamps of the rows; with jitter they still never decrease."""
    time = ticks * TICK_S
    if timing is None or timing.jitter == 0.0:
        return time
    jitter = timing.jitter * random_stream(seed, "jitter").standard_normal(len(time))
    return np.maximum.accumulate(time + jitter)


def recorded_rows(n: int, timing: SamplingErrors | None, seed: int) -> Int[Array, " m"]:
    """Indices of the recorded rows, in order; a duplicated row appears twice."""
    index = np.arange(n)
    if timing is None:
        return index
    if timing.drop > 0.0:
        rng = random_stream(seed, "drop")
        is_lost = np.zeros(n, bool)
        burst = max(timing.burst, 1.0)
        for first in np.flatnonzero(rng.random(n) < timing.drop / burst):
            is_lost[first : first + rng.geometric(1.0 / burst)] = True
        # The first and last rows stay, so the file covers the run.
        is_lost[[0, -1]] = False
        index = index[~is_lost]
    if timing.duplicate > 0.0:
        is_duplicated = random_stream(seed, "duplicate").random(len(index)) < timing.duplicate
        index = np.repeat(index, 1 + is_duplicated)
    return index


def true_gain_ratio(sensing: Sensing | None, joints: int, seed: int) -> Float[Array, " j"]:
    """True over nominal gain of each drive."""
    if sensing is None:
        return np.ones(joints)
    error = per_joint(sensing.gain_error, joints, "gain_error")
    return 1.0 + error + sensing.gain_scatter * random_stream(seed, "gain").standard_normal(joints)


def torque_noise(
    sensing: Sensing | None, ticks: Int[Array, " n"], torque: Float[Array, "n j"], seed: int
) -> Float[Array, "n j"]:
    """White and coloured noise at the sampling times, in joint torque [N m].

    The coloured part is an Ornstein-Uhlenbeck process, exact for any spacing of rows.
    """
    n, joints = torque.shape
    noise = np.zeros((n, joints))
    if sensing is None:
        return noise
    relative_noise = sensing.relative * np.sqrt((torque**2).mean(0))
    white = np.hypot(per_joint(sensing.white, joints, "white"), relative_noise)
    if np.any(white):
        noise += white * random_stream(seed, "white").standard_normal((n, joints))
    coloured = per_joint(sensing.coloured, joints, "coloured")
    if np.any(coloured) and n:
        drive = random_stream(seed, "coloured").standard_normal((n, joints))
        correlation = np.exp(-2.0 * np.pi * sensing.corner_hz * TICK_S * np.diff(ticks))
        # x_k = keep_k x_(k-1) + sqrt(1 - keep_k^2) n_k for all k at once: a bidiagonal system.
        drive[1:] *= np.sqrt(1.0 - correlation**2)[:, None]
        bands = np.ones((2, n))
        bands[1, :-1] = -correlation
        noise += coloured * solve_banded((1, 0), bands, drive)
    return noise


def quantise(values: Float[Array, "*n j"], quantum: Float[Array, " j"]) -> Float[Array, "*n j"]:
    """Round to multiples of a step; a step of 0 leaves the value."""
    step = np.where(quantum > 0.0, quantum, 1.0)
    return np.where(quantum > 0.0, np.round(values / step) * step, values)


def measure_encoder(
    encoder: Encoder | None,
    position: Float[Array, "n j"],
    velocity: Float[Array, "n j"],
    seed: int,
) -> tuple[Float[Array, "n j"], Float[Array, "n j"] | None]:
    """Position and velocity with encoder errors."""
    if encoder is None:
        return position, velocity
    joints = position.shape[1]
    noise = per_joint(encoder.noise, joints, "encoder noise")
    position = position + noise * random_stream(seed, "encoder").standard_normal(position.shape)
    position = quantise(position, per_joint(encoder.quantum, joints, "encoder quantum"))
    if not encoder.velocity:
        return position, None
    noise = per_joint(encoder.velocity_noise, joints, "velocity noise")
    is_dead = np.abs(velocity) < encoder.velocity_dead
    velocity = velocity + noise * random_stream(seed, "velocity").standard_normal(velocity.shape)
    velocity = quantise(velocity, per_joint(encoder.velocity_quantum, joints, "velocity quantum"))
    return position, np.where(is_dead, 0.0, velocity)
