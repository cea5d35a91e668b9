"""CUSUM test for a lasting increase, with a known false alarm rate.

    S_n = max(0, S_(n-1) + z_n - slack),        alarm if S_n > threshold,

z being the index in standard deviations of healthy runs. After an alarm the sum restarts at zero.
Sudden changes are detected sooner: two consecutive runs with z above a limit raise an alarm.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtr

from taufit.core.arrays import Array, Float, Int
from taufit.regression.pooled_scatter import pooled_scatter

SLACK = 0.75
# Upper limit of the slack: with more, changes of 1.5 standard deviations are never detected.
MAX_SLACK = 1.5
# Limit of the contribution of a single run [standard deviations].
MAX_Z = 4.0

_THRESHOLDS = np.linspace(2.0, 14.0, 25)
_SIMULATED_BASELINES = 3000
_SIMULATED_RUNS = 300
# Spread of the joints' relative scatter about their mean: standard deviation of its logarithm.
_SCALE_SPREAD = 0.3


def cusum(
    z: Float[Array, "n j"], threshold: float, slack: float = SLACK, sudden: float = np.inf
) -> tuple[Float[Array, "n j"], tuple[tuple[int, int], ...]]:
    """CUSUM of every run, and (run, joint) of every alarm; the sum restarts after an alarm.

    Args:
        z: Index of every run, in standard deviations of healthy runs.
        threshold: Alarm threshold of the sum. Larger values give fewer and later alarms.
        slack: Amount subtracted from every run. Larger values ignore larger changes.
        sudden: Limit of z for two consecutive runs.
    """
    total = np.zeros(z.shape[1] if z.ndim > 1 else 1)
    sums = np.zeros(z.shape)
    alarms: list[tuple[int, int]] = []
    was_sudden = np.zeros(len(total), bool)
    for n, row in enumerate(z):
        total = np.maximum(0.0, total + np.nan_to_num(np.minimum(row, MAX_Z)) - slack)
        sums[n] = total
        is_sudden = np.nan_to_num(row) > sudden
        is_alarm = (total > threshold) | (is_sudden & was_sudden)
        for j in np.flatnonzero(is_alarm):
            alarms.append((n, int(j)))
            total[j] = 0.0
        was_sudden = is_sudden & ~is_alarm
    return sums, tuple(alarms)


@cache
def cusum_threshold(
    rate: float, joints: int, healthy_runs: int, slack: float = SLACK, fitted: int = 1
) -> float:
    """Threshold with a given false alarm rate per run, over all joints together.

    Centre and scale are estimated from few healthy runs, which makes alarms more frequent than with
    known values: the threshold comes from a simulation of baselines of that length, with scales
    pooled over the joints, a fixed seed and a safety factor of two.

    Args:
        rate: False alarms per healthy run, e.g. 0.001.
        joints: Number of joints monitored together.
        healthy_runs: Number of runs in the baseline.
        slack: Slack of the CUSUM.
        fitted: Number of parameters estimated per joint besides the scale.
    """
    rng = np.random.default_rng(1)
    centre, scale = _simulate_baselines(rng, joints, healthy_runs, fitted)
    total = np.zeros((len(centre), len(_THRESHOLDS)))
    count: Int[Array, " h"] = np.zeros(len(_THRESHOLDS), np.int64)
    for _ in range(_SIMULATED_RUNS):
        z = np.minimum((rng.normal(size=len(centre)) - centre) / scale, MAX_Z)
        total = np.maximum(0.0, total + (z - slack)[:, None])
        is_alarm = total > _THRESHOLDS
        count += is_alarm.sum(axis=0)
        total[is_alarm] = 0.0
    simulated_rate = np.maximum(count, 0.5) / (len(centre) * _SIMULATED_RUNS)
    required_rate = 0.5 * rate / joints
    # The logarithm of the rate is nearly linear in the threshold: extrapolate.
    is_counted = count >= 10
    if np.count_nonzero(is_counted) < 2:
        return float(_THRESHOLDS[0])
    slope, start = np.polyfit(
        _THRESHOLDS[is_counted][-6:], np.log(simulated_rate[is_counted][-6:]), 1
    )
    if required_rate < simulated_rate[is_counted][-1]:
        return float((np.log(required_rate) - start) / slope)
    return float(
        np.interp(
            -np.log(required_rate), -np.log(simulated_rate[is_counted]), _THRESHOLDS[is_counted]
        )
    )


@cache
def sudden_limit(rate: float, joints: int, healthy_runs: int, fitted: int = 1) -> float:
    """Limit that two consecutive healthy runs exceed at a tenth of the rate, all joints together.

    Over baselines of that length, with estimated centre c and scale s, the probability of a pair is
    the mean of P(x > c + s limit)^2.
    """
    centre, scale = _simulate_baselines(np.random.default_rng(2), joints, healthy_runs, fitted)
    limits = np.linspace(2.0, 30.0, 281)
    probability = np.array([np.mean(ndtr(-(centre + scale * limit)) ** 2) for limit in limits])
    allowed = np.flatnonzero(probability <= 0.1 * rate / joints)
    return float(limits[allowed[0]]) if len(allowed) else float(limits[-1])


def _simulate_baselines(
    rng: np.random.Generator, joints: int, healthy_runs: int, fitted: int
) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """Estimated centres and scales of simulated joints, in units of their true scales."""
    size = (-(-_SIMULATED_BASELINES // joints), joints)
    freedom = max(healthy_runs - fitted, 1)
    true_scale = np.exp(_SCALE_SPREAD * rng.normal(size=size))
    squares = true_scale**2 * rng.chisquare(freedom, size)
    scale = pooled_scatter(squares, float(freedom)) / true_scale
    centre = rng.normal(size=size) / np.sqrt(healthy_runs)
    return centre.ravel(), (scale * np.sqrt(1.0 + fitted / healthy_runs)).ravel()
