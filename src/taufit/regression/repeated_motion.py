"""Residuals that repeat with a periodic motion.

Averaging over n repeats of a motion reduces noise, but not model errors: unmodelled friction or
ripple is equal in every period. Its power is concentrated at the frequencies of the regressor,
which an autoregression smooths. With S the power of the residuals and S_between that of their
differences from period to period, the effective power in a fit is

    S_fit = S_between + n (S - S_between).
"""

from __future__ import annotations

import numpy as np
from numpy.fft import rfft, rfftfreq

from taufit.core.arrays import Array, Bool, Float
from taufit.signals.estimates.periodicity import find_period
from taufit.signals.samples import Samples

# Frequency band of motions, in which noise is evaluated [Hz].
BAND_HZ = 2.0
MIN_DURATION_S = 4.0
# Runs repeat one motion if positions differ by less than this fraction of their range and the
# ratio of their lengths is above the second value.
_POSITION_TOLERANCE = 0.03
_MIN_LENGTH_RATIO = 0.97


def power_with_repeats(
    values: Float[Array, " n"],
    valid: Bool[Array, " n"],
    lag: int,
    rate_hz: float,
    band_hz: float,
    equal_runs: int = 1,
) -> tuple[float, float] | None:
    """Power S and effective power S_fit of one joint's residuals in a run.

    Returns None if the run is too short.

    Args:
        values: Residuals, 0 where not valid.
        valid: Samples that count.
        lag: Samples per period, 0 for a motion that does not repeat.
        rate_hz: Sampling rate [Hz].
        band_hz: Upper limit of the frequency band [Hz].
        equal_runs: Number of runs of this motion, this one included.
    """
    if np.count_nonzero(valid) < MIN_DURATION_S * rate_hz:
        return None
    total = between = _power(values, valid, rate_hz, band_hz)
    repeats = 1.0
    if 0 < lag <= len(values) // 2:
        valid_pairs = valid[lag:] & valid[:-lag]
        difference = np.where(valid_pairs, values[lag:] - values[:-lag], 0.0) / np.sqrt(2.0)
        if np.count_nonzero(valid_pairs) >= MIN_DURATION_S * rate_hz:
            between = min(_power(difference, valid_pairs, rate_hz, band_hz), total)
            repeats = equal_runs * len(values) / lag
    return total, between + repeats * (total - between)


def repeat_power_ratio(
    residuals: Float[Array, "n j"], keep: Bool[Array, "n j"], samples: Samples
) -> Float[Array, " j"]:
    """Ratio S_fit / S of every joint, at least 1; runs of equal motion count as repeats."""
    joints = residuals.shape[1]
    total, fit = np.zeros(joints), np.zeros(joints)
    band = min(BAND_HZ, samples.cutoff_hz)
    rate = samples.rate_hz
    for runs in _group_equal_motions(samples):
        period = find_period(samples.velocity[runs[0]], rate)
        lag = 0 if period is None else round(period * rate)
        if lag == 0 and len(runs) > 1:
            # Runs in sequence form a periodic motion.
            lag = min(run.stop - run.start for run in runs)
            indices = np.concatenate([np.arange(run.start, run.start + lag) for run in runs])
            equal_runs, weight = 1, 1
        else:
            indices = np.arange(runs[0].start, runs[0].stop)
            equal_runs = weight = len(runs)
        for j in range(joints):
            valid = keep[indices, j]
            power = power_with_repeats(residuals[indices, j], valid, lag, rate, band, equal_runs)
            if power is not None:
                seconds = weight * np.count_nonzero(valid) / rate
                total[j] += seconds * power[0]
                fit[j] += seconds * power[1]
    return np.maximum(np.where(total > 0.0, fit / np.where(total > 0.0, total, 1.0), 1.0), 1.0)


def has_repeated_runs(samples: Samples) -> bool:
    """Whether any runs repeat one motion."""
    return any(len(runs) > 1 for runs in _group_equal_motions(samples))


def average_over_repeats(columns: Float[Array, "c n"], samples: Samples) -> Float[Array, "c n"]:
    """Average columns over runs of equal motion, on which a repeatable residual acts."""
    out = columns.copy()
    for runs in _group_equal_motions(samples):
        n = min(run.stop - run.start for run in runs)
        mean = sum(columns[:, run.start : run.start + n] for run in runs) / len(runs)
        for run in runs:
            out[:, run.start : run.start + n] = mean
    return out


def _group_equal_motions(samples: Samples) -> list[list[slice]]:
    """Group runs of equal length and nearly equal positions."""
    groups: list[list[slice]] = []
    for run in samples.run_slices():
        position = samples.position[run]
        tolerance = (
            _POSITION_TOLERANCE * np.maximum(np.ptp(position, axis=0), 1e-6)
            if len(position)
            else 0.0
        )
        for group in groups:
            n = min(len(position), group[0].stop - group[0].start)
            longest = max(len(position), group[0].stop - group[0].start)
            reference = samples.position[group[0]]
            if n >= _MIN_LENGTH_RATIO * longest and np.all(
                np.abs(position[:n] - reference[:n]) <= tolerance
            ):
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def _power(values: Array, valid: Array, rate_hz: float, band_hz: float) -> float:
    """Mean over the band of |integral of r exp(-iwt)|^2, per valid second."""
    spectrum = np.abs(rfft(values) / rate_hz) ** 2
    frequency = rfftfreq(len(values), 1.0 / rate_hz)
    band = (frequency > 0.0) & (frequency <= band_hz)
    return float(spectrum[band].mean()) * rate_hz / np.count_nonzero(valid)
