"""Friction outliers of a fleet: single joints, or a robot as a whole.

With x the logarithms of a joint's friction at a few speeds relative to the median robot, robots
differ by x ~ N(0, C): C is the covariance between robots, estimated robustly, plus the uncertainty
of a robot's data. Wear multiplies the whole curve, x = d (1, 1, ...) + e; the best estimate of d

    d = 1' C^-1 x / 1' C^-1 1,          var d = 1 / 1' C^-1 1

is compared with zero. The combined d of a robot's joints tests the robot as a whole. Tails are
Student's with the degrees of freedom of C, and the false alarm probability is that of the whole
fleet: all joints of all robots are tested.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import chi2_upper_quantile, student_t_upper_quantile
from taufit.fleet.levels import FrictionCurve

# False alarm probability of a study of a fleet without outliers: for friction above that of the
# others (wear), and below.
FALSE_ALARM_ABOVE, FALSE_ALARM_BELOW = 0.04, 0.005
# Smallest number of robots for a comparison.
MIN_ROBOTS = 4
# Smallest relevant difference [relative].
_MIN_DIFFERENCE = 0.2
# Largest uncertainty of friction for a test [relative].
_MAX_UNCERTAINTY = 0.5
# Weight of the covariance pooled over joints, in robots.
_POOLED_ROBOTS = 6.0
# Degrees of freedom of the robust covariance per robot, which grow with their number. Calibrated
# with simulated fleets of 5, 8, 12, 20, 40 and 200 robots without outliers.
_FREEDOM_PER_ROBOT, _FREEDOM_SCALE = 0.57, 200.0
# Quantile beyond which robots are excluded from the covariance.
_CLIP_QUANTILE = 0.0027
# One-sided 95 % quantile of the normal distribution.
_NORMAL_95_ONE_SIDED = 1.645
_ROUNDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class FrictionOutlier:
    """Friction that differs from that of the fleet.

    Attributes:
        joint: Joint from 0; None for all joints.
        factor: Ratio to the fleet's friction.
        size: Difference in standard deviations.
    """

    joint: int | None
    factor: float
    size: float


def friction_outliers(curves: Mapping[str, FrictionCurve]) -> dict[str, list[FrictionOutlier]]:
    """Friction outliers of each robot."""
    out: dict[str, list[FrictionOutlier]] = {name: [] for name in curves}
    if len(curves) < MIN_ROBOTS:
        return out
    shift, std, uncertainty = common_factors(list(curves.values()))
    robots, joints = shift.shape
    upper_limit, lower_limit = (
        _limit(p, robots, joints) for p in (FALSE_ALARM_ABOVE, FALSE_ALARM_BELOW)
    )

    def is_outlier(d: Array, size: Array) -> Array:
        return ((size > upper_limit) | (size < -lower_limit)) & (
            np.abs(d) > np.log1p(_MIN_DIFFERENCE)
        )

    size = shift / std
    is_joint_outlier = is_outlier(shift, size) & (uncertainty < _MAX_UNCERTAINTY)
    common_shift, common_size = _robot_shift(
        shift, std, ~is_joint_outlier & (uncertainty < _MAX_UNCERTAINTY)
    )
    is_robot_outlier = (
        is_outlier(common_shift, common_size) if joints > 1 else np.zeros(robots, bool)
    )
    for r, name in enumerate(curves):
        out[name] += [
            FrictionOutlier(int(j), float(np.exp(shift[r, j])), float(abs(size[r, j])))
            for j in np.flatnonzero(is_joint_outlier[r])
        ]
        if is_robot_outlier[r]:
            out[name].append(
                FrictionOutlier(None, float(np.exp(common_shift[r])), float(abs(common_size[r])))
            )
    return out


def detectable_friction_rise(curves_by_robot: Mapping[str, FrictionCurve]) -> Float[Array, " j"]:
    """Rise of friction that is detected in each joint on 19 of 20 robots, as a factor.

    A joint with little initial friction must wear more to be detected: on the logarithmic scale,
    the limit plus 1.64 standard deviations between robots. Infinite with too few robots.
    """
    curves = list(curves_by_robot.values())
    if len(curves) < MIN_ROBOTS:
        return np.full(len(curves[0].value) if curves else 0, np.inf)
    joints = len(curves[0].value)
    _, std, uncertainty = common_factors(curves)
    upper_limit = _limit(FALSE_ALARM_ABOVE, len(curves), joints)
    factor = np.maximum(
        np.exp((upper_limit + _NORMAL_95_ONE_SIDED) * np.median(std, axis=0)), 1.0 + _MIN_DIFFERENCE
    )
    return np.where(np.median(uncertainty, axis=0) < _MAX_UNCERTAINTY, factor, np.inf)


def _limit(chance: float, robots: int, joints: int) -> float:
    """Limit in standard deviations for a false alarm probability over all joints and robots."""
    robots_known = robots - 1.0 + _POOLED_ROBOTS * (joints > 1)
    freedom = robots_known * (_FREEDOM_PER_ROBOT + robots_known / _FREEDOM_SCALE)
    return student_t_upper_quantile(chance / (robots * (joints + (joints > 1))), freedom)


def common_factors(
    curves: list[FrictionCurve],
) -> tuple[Float[Array, "r j"], Float[Array, "r j"], Float[Array, "r j"]]:
    """Shift d of every robot and joint, its standard deviation, and the part from a robot's
    data.
    """
    x = np.log(np.stack([covariance.value for covariance in curves]))
    x = x - np.median(x, axis=0)
    noise = np.stack([covariance.covariance for covariance in curves])
    median_noise = np.median(noise, axis=0)
    shape = x.shape[:2]
    joints = shape[1]
    covariances = [_robust_covariance(x[:, j]) for j in range(joints)]
    pooled = np.mean(covariances, axis=0)
    n = len(curves)
    shift, std, uncertainty = np.empty(shape), np.empty(shape), np.empty(shape)
    ones = np.ones(x.shape[-1])
    for j, covariance in enumerate(covariances):
        variation = (
            covariance
            if joints == 1
            else (n * covariance + _POOLED_ROBOTS * pooled) / (n + _POOLED_ROBOTS)
        )
        for r in range(n):
            # Robots with less data than the median are more uncertain.
            total = variation + _positive_part(noise[r, j] - median_noise[j])
            row = np.linalg.solve(total + 1e-12 * np.eye(len(ones)), ones)
            shift[r, j] = row @ x[r, j] / row.sum()
            std[r, j] = 1.0 / np.sqrt(row.sum())
            row = row / row.sum()
            uncertainty[r, j] = np.sqrt(max(row @ noise[r, j] @ row, 0.0))
    return shift - np.median(shift, axis=0), std, uncertainty


def _robot_shift(
    shift: Float[Array, "r j"], std: Float[Array, "r j"], included: Bool[Array, "r j"]
) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
    """Common shift of all joints of a robot, and its size in standard deviations.

    Joints of a robot may share causes such as a cold morning: the variation between robots is used
    instead of that of independent joints.
    """
    weight = np.where(included, 1.0 / std**2, 0.0)
    total = np.maximum(weight.sum(axis=1), 1e-12)
    mean = (weight * shift).sum(axis=1) / total
    mean = mean - np.median(mean)
    normalised = mean * np.sqrt(total)
    inflation = np.sqrt(max(1.0, float(_robust_covariance(normalised[:, None])[0, 0])))
    return mean, normalised / inflation


def _robust_covariance(x: Float[Array, "n k"]) -> Float[Array, "k k"]:
    """Covariance without outliers, corrected for their exclusion."""
    n, k = x.shape
    median_scale = 1.4826 * np.median(np.abs(x), axis=0) * (1.0 + 0.8 / max(n - 0.8, 1.0))
    scale = np.maximum(median_scale, 1e-9)
    # Correlation from signs of pairs, robust against outliers.
    signs = np.sign(x).T @ np.sign(x) / n
    correlation = np.sin(0.5 * np.pi * np.clip(signs, -0.99, 0.99))
    np.fill_diagonal(correlation, 1.0)
    covariance = _positive_part(correlation * np.outer(scale, scale)) + 1e-4 * np.diag(scale**2)
    limit = chi2_upper_quantile(_CLIP_QUANTILE, k)
    # Ratio of the second moments of a truncated normal distribution to the complete one.
    consistency = chi2_cumulative(limit, k + 2) / chi2_cumulative(limit, k)
    for _ in range(_ROUNDS):
        distances = np.einsum("nk,kl,nl->n", x, np.linalg.inv(covariance), x)
        inliers = x[distances <= limit]
        if len(inliers) <= k + 2:
            break
        deviations = inliers - inliers.mean(axis=0)
        updated = deviations.T @ deviations / (len(inliers) - 1) / consistency
        covariance = updated + 1e-9 * np.diag(scale**2)
    return covariance


def chi2_cumulative(value: float, freedom: int) -> float:
    """Cumulative distribution function of the chi-square distribution."""
    from scipy.special import chdtr

    return float(chdtr(freedom, value))


def _positive_part(matrix: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """Positive semidefinite part of a matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
