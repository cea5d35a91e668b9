"""Friction that is not the siblings': of single joints, or of a robot as a whole.

With x the logarithms of a joint's friction at a few speeds, less what is usual, robots differ by
x ~ N(0, C): C is the robots' own covariance, found from those that are alike, and what a robot's
data leave uncertain. Wear multiplies the whole curve, x = d (1, 1, ...) + e; the best estimate of d

    d = 1' C^-1 x / 1' C^-1 1,          var d = 1 / 1' C^-1 1

is compared with zero. The d of a robot's joints together say whether all of it is off. Tails are
Student's with as many degrees of freedom as there were robots to find C from, and the chance is
that of the whole fleet: all joints of all robots are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.statistics import chi2_upper_quantile, student_t_upper_quantile
from taufit.fleet.levels import FrictionCurve

# How often a study of a fleet without any surprise may name one: for friction above the others',
# which wear makes, and for friction below.
ABOVE, BELOW = 0.04, 0.005
# Fewer robots have no usual friction.
FEWEST = 4
# Smaller differences do not matter [relative].
_LEAST = 0.2
# Friction that a robot's data leave more uncertain than this is not judged [relative].
_MOST_UNCERTAIN = 0.5
# A joint's covariance leans on that of all joints as if so many robots had shown it.
_WORTH = 6.0
# A covariance that leaves out who is far out is less certain than a plain one, unless there are
# many. With these degrees of freedom per robot, one of simulated fleets of 5, 8, 12, 20, 40 and 200
# robots without surprises is named about as often as it may be.
_FREEDOM, _MANY = 0.57, 200.0
# Robots beyond this quantile do not say what the spread is.
_CLIP = 0.0027
# 19 of 20 of a normal distribution are above minus this.
_NINETEEN_OF_20 = 1.645
_ROUNDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class FrictionOutlier:
    """Friction that is not the others'.

    Attributes:
        joint: From 0; None for all of them.
        factor: How many times the usual.
        size: Standard deviations.
    """

    joint: int | None
    factor: float
    size: float


def friction_outliers(each: Mapping[str, FrictionCurve]) -> dict[str, list[FrictionOutlier]]:
    """Who has other friction than the others."""
    out: dict[str, list[FrictionOutlier]] = {name: [] for name in each}
    if len(each) < FEWEST:
        return out
    shift, std, uncertain = common_factors(list(each.values()))
    robots, joints = shift.shape
    above, below = (_limit(p, robots, joints) for p in (ABOVE, BELOW))

    def named(d: Array, size: Array) -> Array:
        return ((size > above) | (size < -below)) & (np.abs(d) > np.log1p(_LEAST))

    size = shift / std
    single = named(shift, size) & (uncertain < _MOST_UNCERTAIN)
    together, overall = _together(shift, std, ~single & (uncertain < _MOST_UNCERTAIN))
    whole = named(together, overall) if joints > 1 else np.zeros(robots, bool)
    for r, name in enumerate(each):
        out[name] += [
            FrictionOutlier(int(j), float(np.exp(shift[r, j])), float(abs(size[r, j])))
            for j in np.flatnonzero(single[r])
        ]
        if whole[r]:
            out[name].append(
                FrictionOutlier(None, float(np.exp(together[r])), float(abs(overall[r])))
            )
    return out


def detectable_friction_rise(each: Mapping[str, FrictionCurve]) -> Float[Array, " j"]:
    """Friction over a robot's own from which each joint is named on 19 of 20 robots.

    A joint that had less friction than usual must wear more until it stands out: on the
    logarithmic scale the limit and 1.64 standard deviations of the robots' own differences.
    Infinite where there are too few robots to compare.
    """
    curves = list(each.values())
    if len(curves) < FEWEST:
        return np.full(len(curves[0].value) if curves else 0, np.inf)
    joints = len(curves[0].value)
    _, std, uncertain = common_factors(curves)
    above = _limit(ABOVE, len(curves), joints)
    factor = np.maximum(np.exp((above + _NINETEEN_OF_20) * np.median(std, axis=0)), 1.0 + _LEAST)
    return np.where(np.median(uncertain, axis=0) < _MOST_UNCERTAIN, factor, np.inf)


def _limit(chance: float, robots: int, joints: int) -> float:
    """Standard deviations that one of all joints and robots passes by chance so often."""
    known = robots - 1.0 + _WORTH * (joints > 1)
    freedom = known * (_FREEDOM + known / _MANY)
    return student_t_upper_quantile(chance / (robots * (joints + (joints > 1))), freedom)


def common_factors(
    each: list[FrictionCurve],
) -> tuple[Float[Array, "r j"], Float[Array, "r j"], Float[Array, "r j"]]:
    """d of every robot and joint, its standard deviation among robots, and by a robot's data."""
    x = np.log(np.stack([own.value for own in each]))
    x = x - np.median(x, axis=0)
    noise = np.stack([own.covariance for own in each])
    usual = np.median(noise, axis=0)
    shape = x.shape[:2]
    joints = shape[1]
    found = [_covariance(x[:, j]) for j in range(joints)]
    pooled = np.mean(found, axis=0)
    n = len(each)
    shift, std, uncertain = np.empty(shape), np.empty(shape), np.empty(shape)
    one = np.ones(x.shape[-1])
    for j, own in enumerate(found):
        spread = own if joints == 1 else (n * own + _WORTH * pooled) / (n + _WORTH)
        for r in range(n):
            # Robots with less to go by than usual are so much more uncertain.
            total = spread + _positive(noise[r, j] - usual[j])
            row = np.linalg.solve(total + 1e-12 * np.eye(len(one)), one)
            shift[r, j] = row @ x[r, j] / row.sum()
            std[r, j] = 1.0 / np.sqrt(row.sum())
            row = row / row.sum()
            uncertain[r, j] = np.sqrt(max(row @ noise[r, j] @ row, 0.0))
    return shift - np.median(shift, axis=0), std, uncertain


def _together(
    shift: Float[Array, "r j"], std: Float[Array, "r j"], used: Bool[Array, "r j"]
) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
    """The same of all joints of a robot, and in its standard deviations.

    Joints of a robot may have something in common, such as a cold morning: the spread is that of
    the robots, not what independent joints would have.
    """
    weight = np.where(used, 1.0 / std**2, 0.0)
    total = np.maximum(weight.sum(axis=1), 1e-12)
    mean = (weight * shift).sum(axis=1) / total
    mean = mean - np.median(mean)
    alone = mean * np.sqrt(total)
    inflated = np.sqrt(max(1.0, float(_covariance(alone[:, None])[0, 0])))
    return mean, alone / inflated


def _covariance(x: Float[Array, "n k"]) -> Float[Array, "k k"]:
    """Of most: those far out by what the others say are left out, which is made up for."""
    n, k = x.shape
    middle = 1.4826 * np.median(np.abs(x), axis=0) * (1.0 + 0.8 / max(n - 0.8, 1.0))
    scale = np.maximum(middle, 1e-9)
    # Signs of pairs say how far values go together, whoever is far out.
    signs = np.sign(x).T @ np.sign(x) / n
    together = np.sin(0.5 * np.pi * np.clip(signs, -0.99, 0.99))
    np.fill_diagonal(together, 1.0)
    found = _positive(together * np.outer(scale, scale)) + 1e-4 * np.diag(scale**2)
    limit = chi2_upper_quantile(_CLIP, k)
    # Second moments of a normal distribution within the limit, over those of all of it.
    kept = chi2_share(limit, k + 2) / chi2_share(limit, k)
    for _ in range(_ROUNDS):
        far = np.einsum("nk,kl,nl->n", x, np.linalg.inv(found), x)
        most = x[far <= limit]
        if len(most) <= k + 2:
            break
        off = most - most.mean(axis=0)
        again = off.T @ off / (len(most) - 1) / kept
        found = again + 1e-9 * np.diag(scale**2)
    return found


def chi2_share(value: float, freedom: int) -> float:
    """How much of a chi-square distribution is below a value."""
    from scipy.special import chdtr

    return float(chdtr(freedom, value))


def _positive(matrix: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """Without the part that is negative."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
