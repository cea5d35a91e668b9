"""Robots that are unlike their siblings, and why.

    friction    a joint's friction, or all of a robot's, by its own data, against the others'
    tool        a mass on the last link that would explain what the links are off by
    mounting    gravity does not come from where the mounting says

A robot is named when chance would name any robot of the whole fleet in one of twenty such studies,
and the difference is large enough to matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from taufit.core.arrays import Array, Float
from taufit.core.statistics import chi2_upper_quantile
from taufit.fleet.fleet_prior import FleetPrior, RobotEvidence
from taufit.fleet.friction_outliers import FEWEST, FrictionOutlier, friction_outliers
from taufit.fleet.levels import FrictionCurve, friction_of
from taufit.fleet.robot_information import RobotInformation

# How often a study of a fleet without any surprise may name a tool; 4.5 % are for friction.
_CHANCE = 0.005
# Smaller differences do not matter: tool [kg], gravity [rad].
_LEAST_TOOL, _LEAST_TILT = 0.15, np.radians(5.0)
# Links of robots of one type differ by no more than this, tools apart.
_LINKS = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class FleetOutlier:
    """One way in which a robot is unlike the others.

    Attributes:
        kind: "friction", "tool" or "mounting".
        joint: From 1, or None.
        message: In words.
        size: By how many standard deviations.
    """

    kind: str
    joint: int | None
    message: str
    size: float


def tilted(own: RobotInformation, declared: Float[Array, " 3"]) -> FleetOutlier | None:
    """Whether gravity says that a robot is mounted otherwise."""
    if own.weight <= 0.0:
        return None
    direction = own.gravity / max(float(np.linalg.norm(own.gravity)), 1e-12)
    angle = float(np.arccos(np.clip(direction @ declared, -1.0, 1.0)))
    std = 1.0 / np.sqrt(own.weight)
    if angle < _LEAST_TILT or angle < 4.0 * std or not own.tilted:
        return None
    return FleetOutlier("mounting", None, f"mounting: {own.tilted[0]}", angle / std)


def friction_surprises(each: Mapping[str, FrictionCurve]) -> dict[str, list[FleetOutlier]]:
    """Joints, and robots as a whole, whose friction is not that of the others', in words."""
    return {
        name: [_in_words(one) for one in found] for name, found in friction_outliers(each).items()
    }


def _in_words(one: FrictionOutlier) -> FleetOutlier:
    more = one.factor > 1.0
    share = f"{abs(100 * (one.factor - 1.0)):.0f} % {'above' if more else 'below'}"
    if one.joint is None:
        cause = "wear, grease, a cold arm, drive gains" if more else "drive gains, a warm arm"
        text = f"friction of all joints together is {share} that of the others: look at {cause}"
        return FleetOutlier("friction", None, text, one.size)
    cause = "wear, grease, a brake that drags" if more else "the drive gain, grease"
    text = f"friction of joint {one.joint + 1} is {share} that of the others: look at {cause}"
    return FleetOutlier("friction", one.joint + 1, text, one.size)


def tool_outliers(
    siblings: FleetPrior, each: Mapping[str, RobotEvidence]
) -> dict[str, FleetOutlier]:
    """Robots whose last link carries another mass than the others'.

    With d the mass and first moment that are added to the last link, friction the robot's own,

        chi2(d) = min over theta of |y - W (theta + T d)|^2 / noise^2 + |theta - mu|^2_Lambda.

    A robot is named when chi2 falls by more than chance would make it. What no model explains makes
    all robots look as if they carried something, so chance is what it is for the middle of them.
    """
    if len(each) < FEWEST:
        return {}
    found = {name: _added_mass(siblings, own) for name, own in each.items()}
    usual = float(np.median([gain for _, gain in found.values()]))
    limit = chi2_upper_quantile(_CHANCE / len(each), 4) * max(
        1.0, usual / chi2_upper_quantile(0.5, 4)
    )
    out = {}
    for name, (d, gain) in found.items():
        mass, moment = float(d[0]), float(np.linalg.norm(d[1:]))
        if gain < limit or (abs(mass) < _LEAST_TOOL and moment < 0.1 * _LEAST_TOOL):
            continue
        more = "more" if mass > 0 else "less"
        out[name] = FleetOutlier(
            "tool",
            None,
            f"the last link carries about {abs(mass):.1f} kg {more} than the others': look at its "
            "tool and payload",
            float(np.sqrt(gain)),
        )
    return out


def _added_mass(siblings: FleetPrior, evidence: RobotEvidence) -> tuple[Float[Array, " 4"], float]:
    """d, and by how much chi2 falls."""
    layout = siblings.model.layout
    last = layout.link(-1)
    tool = np.zeros((layout.size, 4))
    tool[last.start : last.start + 4] = np.eye(4)
    loose = np.where(friction_of(siblings.model), 0.1, 1.0)
    prior = siblings.alike(_LINKS) * np.outer(loose, loose)
    a = evidence.square
    total = a + prior
    size = np.sqrt(np.diag(total))
    factor = scipy.linalg.cho_factor(total / np.outer(size, size) + 1e-12 * np.eye(len(size)))

    def solved(b: Array) -> Array:
        scaled = b / (size[:, None] if b.ndim == 2 else size)
        found: Array = scipy.linalg.cho_solve(factor, scaled)
        return found / (size[:, None] if b.ndim == 2 else size)

    # The tool's columns and the target, with what theta can explain of them taken out.
    right = evidence.right - a @ siblings.mean
    at = a @ tool
    square = tool.T @ at - at.T @ solved(at)
    aim = tool.T @ right - at.T @ solved(right)
    inverse = np.linalg.pinv(square, rcond=1e-10, hermitian=True)
    d = inverse @ aim
    return d, float(aim @ d)
