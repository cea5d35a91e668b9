"""A sum that forgets small changes and remembers lasting ones, with a known rate of false alarms.

    S_n = max(0, S_(n-1) + z_n - slack),        alarm where S_n > threshold,

z being the index in standard deviations of healthy runs. After an alarm the sum starts anew. A
sudden change is found sooner: two runs in a row with z beyond a limit are an alarm by themselves.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtr

from taufit.core.arrays import Array, Float, Int

SLACK = 0.75
# With more, changes of one and a half standard deviations would never be seen.
MAX_SLACK = 1.5
# One strange run is no wear: what it can add is limited [standard deviations].
MAX_Z = 4.0

_THRESHOLDS = np.linspace(2.0, 14.0, 25)
_SIMULATED_BASELINES = 3000
_SIMULATED_RUNS = 300


def cusum(
    z: Float[Array, "n j"], threshold: float, slack: float = SLACK, sudden: float = np.inf
) -> tuple[Float[Array, "n j"], tuple[tuple[int, int], ...]]:
    """The sums run by run, and (run, joint) of every alarm; a sum that alarmed starts anew.

    Args:
        z: Index of every run, in standard deviations of healthy ones.
        threshold: Of the sum.
        slack: That every run is forgiven.
        sudden: Two runs in a row beyond this are an alarm.
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
    """The threshold with this rate of false alarms per run, over all joints together.

    Centre and scale are estimated from a limited number of healthy runs, which makes alarms more
    frequent than textbooks say: the threshold comes from simulating baselines of that length, with
    a fixed seed, and leaves a factor of two in hand.

    Args:
        rate: False alarms per healthy run, e.g. 0.001.
        joints: Watched at the same time.
        healthy_runs: In the baseline.
        slack: Of the sum.
        fitted: Parameters estimated per joint besides the scale.
    """
    rng = np.random.default_rng(1)
    centre, scale = _simulate_baselines(rng, healthy_runs, fitted)
    total = np.zeros((_SIMULATED_BASELINES, len(_THRESHOLDS)))
    count: Int[Array, " h"] = np.zeros(len(_THRESHOLDS), np.int64)
    for _ in range(_SIMULATED_RUNS):
        z = np.minimum((rng.normal(size=_SIMULATED_BASELINES) - centre) / scale, MAX_Z)
        total = np.maximum(0.0, total + (z - slack)[:, None])
        is_alarm = total > _THRESHOLDS
        count += is_alarm.sum(axis=0)
        total[is_alarm] = 0.0
    simulated_rate = np.maximum(count, 0.5) / (_SIMULATED_BASELINES * _SIMULATED_RUNS)
    required_rate = 0.5 * rate / joints
    # The logarithm of the rate falls nearly linearly; beyond what was counted it goes on so.
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
    """Beyond which two healthy runs in a row hardly ever are: a tenth of the rate, all together.

    Over baselines of that length, with centre c and scale s estimated from them, the chance of a
    pair is the mean of P(x > c + s limit)^2.
    """
    centre, scale = _simulate_baselines(np.random.default_rng(2), healthy_runs, fitted)
    limits = np.linspace(2.0, 30.0, 281)
    probability = np.array([np.mean(ndtr(-(centre + scale * limit)) ** 2) for limit in limits])
    allowed = np.flatnonzero(probability <= 0.1 * rate / joints)
    return float(limits[allowed[0]]) if len(allowed) else float(limits[-1])


def _simulate_baselines(
    rng: np.random.Generator, healthy_runs: int, fitted: int
) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """Centres and scales as baselines of that length estimate them, where 0 and 1 are true."""
    degrees_of_freedom = max(healthy_runs - fitted, 1)
    centre = rng.normal(size=_SIMULATED_BASELINES) / np.sqrt(healthy_runs)
    scale = np.sqrt(rng.chisquare(degrees_of_freedom, _SIMULATED_BASELINES) / degrees_of_freedom)
    return centre, scale * np.sqrt(1.0 + fitted / healthy_runs)
