"""Outlier robots of a fleet, with reasons.

    friction    friction of a joint, or of the whole robot, by its own data, against the others'
    tool        a mass on the last link that explains the deviation of the links
    mounting    direction of gravity that contradicts the mounting

A robot is reported if its deviation is significant for the whole fleet (false alarm probability
5 % per study) and large enough to matter.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.linalg

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import chi2_upper_quantile
from taufit.fleet.fleet_prior import FleetPrior, RobotEvidence
from taufit.fleet.friction_outliers import MIN_ROBOTS, FrictionOutlier, friction_outliers
from taufit.fleet.levels import FrictionCurve, drive_mask
from taufit.fleet.robot_information import RobotInformation

# False alarm probability of a tool per study; 4.5 % are for friction.
_FALSE_ALARM = 0.005
# Smallest relevant differences: tool [kg], gravity [rad].
_MIN_TOOL_KG, _MIN_TILT = 0.15, np.radians(5.0)
# Largest relative variation of links between robots of one type, except tools.
_LINK_STD = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class FleetOutlier:
    """Deviation of a robot from the others.

    Attributes:
        kind: "friction", "tool" or "mounting".
        joint: Joint from 1, or None.
        message: Description of the deviation.
        size: Deviation in standard deviations.
    """

    kind: str
    joint: int | None
    message: str
    size: float


def find_mounting_outlier(
    robot: RobotInformation, declared: Float[Array, " 3"]
) -> FleetOutlier | None:
    """Outlier if the direction of gravity contradicts the declared mounting; else None."""
    if robot.gravity_weight <= 0.0:
        return None
    direction = robot.gravity_sum / max(float(np.linalg.norm(robot.gravity_sum)), 1e-12)
    angle = float(np.arccos(np.clip(direction @ declared, -1.0, 1.0)))
    std = 1.0 / np.sqrt(robot.gravity_weight)
    if angle < _MIN_TILT or angle < 4.0 * std or not robot.mounting_findings:
        return None
    return FleetOutlier("mounting", None, f"mounting: {robot.mounting_findings[0]}", angle / std)


def describe_friction_outliers(
    curves: Mapping[str, FrictionCurve],
) -> dict[str, list[FleetOutlier]]:
    """Friction outliers of joints and robots, with messages."""
    return {
        name: [_describe(outlier) for outlier in outliers]
        for name, outliers in friction_outliers(curves).items()
    }


def _describe(outlier: FrictionOutlier) -> FleetOutlier:
    is_higher = outlier.factor > 1.0
    difference_text = (
        f"{abs(100 * (outlier.factor - 1.0)):.0f} % {'above' if is_higher else 'below'}"
    )
    if outlier.joint is None:
        cause = "wear, grease, a cold arm, drive gains" if is_higher else "drive gains, a warm arm"
        text = (
            f"friction of all joints together is {difference_text} that of the others: "
            f"look at {cause}"
        )
        return FleetOutlier("friction", None, text, outlier.size)
    cause = "wear, grease, a brake that drags" if is_higher else "the drive gain, grease"
    text = (
        f"friction of joint {outlier.joint + 1} is {difference_text} that of the others: "
        f"look at {cause}"
    )
    return FleetOutlier("friction", outlier.joint + 1, text, outlier.size)


def tool_outliers(
    fleet_prior: FleetPrior, evidences: Mapping[str, RobotEvidence]
) -> dict[str, FleetOutlier]:
    """Robots whose last link carries another mass than the others'.

    With d the mass and first moment added to the last link, and friction of the robot itself,

        chi2(d) = min over theta of |y - W (theta + T d)|^2 / noise^2 + |theta - mu|^2_Lambda.

    A robot is reported if the decrease of chi2 is significant. Model errors affect all robots, so
    the limit is scaled by the median robot.
    """
    if len(evidences) < MIN_ROBOTS:
        return {}
    loads = {
        name: _estimate_added_mass(fleet_prior, evidence) for name, evidence in evidences.items()
    }
    median_gain = float(np.median([gain for _, gain in loads.values()]))
    limit = chi2_upper_quantile(_FALSE_ALARM / len(evidences), 4) * max(
        1.0, median_gain / chi2_upper_quantile(0.5, 4)
    )
    out = {}
    for name, (d, gain) in loads.items():
        mass, moment = float(d[0]), float(np.linalg.norm(d[1:]))
        if gain < limit or (abs(mass) < _MIN_TOOL_KG and moment < 0.1 * _MIN_TOOL_KG):
            continue
        comparison = "more" if mass > 0 else "less"
        out[name] = FleetOutlier(
            "tool",
            None,
            f"the last link carries about {abs(mass):.1f} kg {comparison} than the others': look "
            "at its tool and payload",
            float(np.sqrt(gain)),
        )
    return out


def _estimate_added_mass(
    fleet_prior: FleetPrior, evidence: RobotEvidence
) -> tuple[Float[Array, " 4"], float]:
    """Added mass and moment d, and the decrease of chi2."""
    layout = fleet_prior.model.layout
    last = layout.link(-1)
    tool = np.zeros((layout.size, 4))
    tool[last.start : last.start + 4] = np.eye(4)
    friction_weight = np.where(drive_mask(fleet_prior.model), 0.1, 1.0)
    prior = fleet_prior.limited_precision(_LINK_STD) * np.outer(friction_weight, friction_weight)
    a = evidence.square
    total = a + prior
    size = np.sqrt(np.diag(total))
    factor = scipy.linalg.cho_factor(total / np.outer(size, size) + 1e-12 * np.eye(len(size)))

    def solve(b: Array) -> Array:
        scaled = b / (size[:, None] if b.ndim == 2 else size)
        solution: Array = scipy.linalg.cho_solve(factor, scaled)
        return solution / (size[:, None] if b.ndim == 2 else size)

    # Columns of the tool and target, with theta eliminated.
    residual = evidence.right - a @ fleet_prior.mean
    tool_columns = a @ tool
    square = tool.T @ tool_columns - tool_columns.T @ solve(tool_columns)
    target = tool.T @ residual - tool_columns.T @ solve(residual)
    inverse = np.linalg.pinv(square, rcond=1e-10, hermitian=True)
    d = inverse @ target
    return d, float(target @ d)
