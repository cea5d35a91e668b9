"""Motion that repeats: its period, and the average of its periods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.signal import fftconvolve

from taufit.arrays import Array, Float
from taufit.errors import RecordingError
from taufit.recording.finding import Finding
from taufit.signals.resampling import interpolate
from taufit.signals.uniform_run import UniformRun
from taufit.signals.windows import motion_mask, stretches


def find_period(
    velocity: Float[Array, "n j"], rate_hz: float, *, shortest_s: float = 0.5
) -> float | None:
    """The period of a motion [s], or None where it does not repeat at least once.

    For lag L the mismatch

        d(L) = sum |x(t + L) - x(t)|^2 / sum (|x(t + L)|^2 + |x(t)|^2)

    is 0 for a period and 1 for unrelated motion; the shortest lag with a minimum below 0.02 counts.
    """
    n = len(velocity)
    top = np.max(np.abs(velocity), axis=0)
    x = velocity[:, top > 0.02 * top.max(initial=0.0)] / top[top > 0.02 * top.max(initial=0.0)]
    longest, shortest = n // 2, max(2, int(shortest_s * rate_hz))
    if x.shape[1] == 0 or longest <= shortest + 2:
        return None
    power = np.concatenate([[0.0], np.cumsum(np.sum(np.square(x), axis=1))])
    product = sum(fftconvolve(c, c[::-1])[n - 1 :] for c in x.T)
    lags = np.arange(longest)
    both = (power[n] - power[lags]) + power[n - lags]
    mismatch = 1.0 - 2.0 * product[:longest] / np.maximum(both, 1e-300)
    inner = mismatch[1:-1]
    minima = np.flatnonzero((inner <= mismatch[:-2]) & (inner < mismatch[2:]) & (inner < 0.02)) + 1
    minima = minima[minima >= shortest]
    if len(minima) == 0:
        return None
    best = int(minima[0])
    a, b, c = mismatch[best - 1 : best + 2]
    curvature = a - 2.0 * b + c
    fraction = 0.5 * (a - c) / curvature if curvature > 0 else 0.0
    return float((best + fraction) / rate_hz)


def fold(run: UniformRun, period_s: float, count: int) -> UniformRun:
    """One period of `count` samples: the mean over the whole periods in the motion.

    Whole periods are taken from the end of the motion, where the start has died away.
    """
    rate = (len(run.time) - 1) / (run.time[-1] - run.time[0])
    start, stop = max(
        stretches(motion_mask(run.velocity, rate)), key=lambda s: s[1] - s[0], default=(0, 0)
    )
    duration = (stop - 1 - start) / rate
    periods = int((duration + 0.5 / rate) / period_s)
    if periods < 2:
        raise RecordingError(
            f"{run.name} holds {duration / period_s:.1f} periods of {period_s:.4g} s: there is "
            "nothing to average. Leave average_periods out."
        )
    phase = np.arange(count) * (period_s / count)
    first = run.time[stop - 1] - periods * period_s
    instants = first + phase[None, :] + period_s * np.arange(periods)[:, None]

    def averaged(columns: Float[Array, "n c"]) -> Float[Array, "p c"]:
        values = interpolate(run.time, columns, instants.ravel())
        return values.reshape(periods, count, -1).mean(axis=0)

    scatter = np.sqrt(periods)
    bad = averaged(run.bad.astype(float)) > 0.0
    return replace(
        run,
        time=phase,
        position=averaged(run.position),
        velocity=averaged(run.velocity),
        acceleration=None if run.acceleration is None else averaged(run.acceleration),
        torque=averaged(run.torque),
        temperature=None if run.temperature is None else averaged(run.temperature),
        bad=bad,
        torque_noise=run.torque_noise / scatter,
        velocity_noise=run.velocity_noise / scatter,
        findings=(
            *run.findings,
            Finding(
                "period",
                "info",
                f"the motion of {run.name} repeats every {period_s:.4g} s, {periods} times",
                f"averaged into one period of {count} samples",
            ),
        ),
    )
