"""Periodic motion: its period, and the average over periods."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.fft import irfft, rfft

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding
from taufit.signals.motion_intervals import motion_mask, true_intervals
from taufit.signals.resampling import interpolate
from taufit.signals.uniform_run import UniformRun

# Prime factors of lengths with a fast Fourier transform.
_FACTORS = (2, 3, 5)


@lru_cache(maxsize=256)
def fft_length(minimum: int) -> int:
    """Smallest length >= `minimum` without prime factors above 5."""
    length = max(int(minimum), 1)
    while True:
        cofactor = length
        for factor in _FACTORS:
            while cofactor % factor == 0:
                cofactor //= factor
        if cofactor == 1:
            return length
        length += 1


def find_period(
    velocity: Float[Array, "n j"], rate_hz: float, *, min_period_s: float = 0.5
) -> float | None:
    """Period of a motion [s]; None if it does not repeat.

    For lag L the mismatch

        d(L) = sum |x(t + L) - x(t)|^2 / sum (|x(t + L)|^2 + |x(t)|^2)

    is 0 for a period and 1 for unrelated motion. The shortest lag with a minimum below 0.15 is the
    period if half of all samples repeat within 1 % of the power; start and stop may differ.
    """
    n = len(velocity)
    max_speed = np.max(np.abs(velocity), axis=0, initial=0.0)
    active = max_speed > 0.02 * max_speed.max(initial=0.0)
    x = velocity[:, active] / max_speed[active]
    longest, shortest = n // 2, max(2, int(min_period_s * rate_hz))
    if x.shape[1] == 0 or longest <= shortest + 2:
        return None
    power = np.concatenate([[0.0], np.cumsum(np.sum(np.square(x), axis=1))])
    # Sums of products at all lags, by way of the spectrum.
    size = fft_length(2 * n)
    product = np.sum(irfft(np.abs(rfft(x, size, axis=0)) ** 2, size, axis=0)[:n], axis=1)
    lags = np.arange(longest)
    total_power = (power[n] - power[lags]) + power[n - lags]
    mismatch = 1.0 - 2.0 * product[:longest] / np.maximum(total_power, 1e-300)
    inner = mismatch[1:-1]
    minima = np.flatnonzero((inner <= mismatch[:-2]) & (inner < mismatch[2:]) & (inner < 0.15)) + 1
    for best in minima[minima >= shortest]:
        mismatch_power = np.sum(np.square(x[best:] - x[:-best]), axis=1)
        if np.median(mismatch_power) > 0.01 * 2.0 * power[n] / n:
            continue
        # One Newton step over the samples that repeat, without start and stop.
        repeats = mismatch_power <= 4.0 * np.median(mismatch_power) + 1e-6 * power[n] / n
        slope = (
            0.5 * np.gradient(x, axis=0)[best:][repeats]
            + 0.5 * (np.gradient(x, axis=0)[:-best][repeats])
        )
        error = (x[best:] - x[:-best])[repeats]
        fraction = -np.sum(slope * error) / max(float(np.sum(np.square(slope))), 1e-300)
        return float((best + np.clip(fraction, -1.0, 1.0)) / rate_hz)
    return None


def average_over_periods(run: UniformRun, period_s: float, count: int) -> UniformRun:
    """Average a run over its periods: one period of `count` samples.

    Uses as many whole periods as agree, starting where they repeat best.
    """
    rate = (len(run.time) - 1) / (run.time[-1] - run.time[0])
    start, stop = max(
        true_intervals(motion_mask(run.velocity, rate)), key=lambda s: s[1] - s[0], default=(0, 1)
    )
    first, last = run.time[start], run.time[stop - 1]
    phase = np.arange(count) * (period_s / count)
    max_periods = int((last - first) / period_s + 0.5 / count)
    max_speed = np.max(np.abs(run.velocity), axis=0)
    speed = run.velocity / np.where(max_speed > 0, max_speed, 1.0)
    power = np.mean(np.sum(np.square(speed[start:stop]), axis=1))

    def best_start(periods: int) -> tuple[float, float]:
        """Smallest variance between this many periods, and the start time that gives it [s]."""
        candidates = []
        for begin in np.linspace(first, max(first, last - periods * period_s), 41):
            instants = begin + phase[::8] + period_s * np.arange(periods)[:, None]
            periods_speed = interpolate(run.time, speed, instants.ravel()).reshape(
                *instants.shape, -1
            )
            # Unbiased over the periods, so that few and many compare.
            variance = np.sum(
                np.square(periods_speed - periods_speed.mean(axis=0)), axis=(0, 2)
            ) / (periods - 1)
            candidates.append((float(np.mean(variance)), float(begin)))
        return min(candidates)

    starts = {periods: best_start(periods) for periods in range(2, max_periods + 1)}
    two_period_mismatch = starts[2][0] if starts else np.inf
    agreeing = [p for p, (mismatch, _) in starts.items() if mismatch < 0.01 * power]
    agreeing = [p for p in agreeing if starts[p][0] <= 3.0 * two_period_mismatch + 1e-6 * power]
    if not agreeing:
        raise RecordingError(
            f"{run.name} holds {(last - first) / period_s:.1f} periods of {period_s:.4g} s, and no "
            "two of them agree: there is nothing to average. Leave average_periods out."
        )
    periods = max(agreeing)
    instants = starts[periods][1] + phase[None, :] + period_s * np.arange(periods)[:, None]

    def average(columns: Float[Array, "n c"]) -> Float[Array, "p c"]:
        values = interpolate(run.time, columns, instants.ravel())
        return np.asarray(values.reshape(periods, count, -1).mean(axis=0))

    noise_factor = np.sqrt(periods)
    bad = average(run.bad.astype(float)) > 0.0
    return replace(
        run,
        time=phase,
        position=average(run.position),
        velocity=average(run.velocity),
        acceleration=None if run.acceleration is None else average(run.acceleration),
        torque=average(run.torque),
        channels=run.channels.map(average),
        bad=bad,
        torque_noise=run.torque_noise / noise_factor,
        velocity_noise=run.velocity_noise / noise_factor,
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
