"""Information share of data against prior, for each link and friction term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.codec import Limits
from taufit.core.dataclasses import dataclass
from taufit.terms import DISSIPATIVE

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True, eq=False)
class InformationShare:
    """Information shares from 0 (prior) to 1 (data).

    With C the posterior and C0 the prior covariance of some parameters, their share is the mean of
    the diagonal of 1 - C0^-1 C: the effective number of parameters determined by data, over their
    number.

    Attributes:
        links: Share of the ten parameters of each link.
        terms: Share of each friction term of each joint; 0 where it is fixed at zero.
    """

    links: Annotated[Float[Array, " l"], Limits(low=0.0)]
    terms: Annotated[Float[Array, "j k"], Limits(low=0.0)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for files and JSON, to three digits."""
        return {
            "links": np.round(self.links, 3).tolist(),
            "terms": np.round(self.terms, 3).tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSpeedRange:
    """Largest measured speed of friction, and rated speed of the joints.

    Attributes:
        measured: Largest speed in training [rad/s or m/s].
        rated: Limit of the robot; infinite if unknown.
        units: "rad/s", or "m/s" for prismatic joints.
    """

    measured: Float[Array, " j"]
    rated: Float[Array, " j"]
    units: tuple[str, ...]

    @property
    def extrapolated_joints(self) -> tuple[int, ...]:
        """Joints, counted from 0, whose friction at rated speed is extrapolated."""
        return tuple(int(j) for j in np.flatnonzero(self.measured < 0.95 * self.rated))

    @property
    def describe(self) -> str:
        """One sentence; empty if friction was measured at all speeds."""
        joints = self.extrapolated_joints
        if not joints:
            return ""
        numbers = ", ".join(str(j + 1) for j in joints)
        speeds = ", ".join(f"{self.measured[j]:.2g} {self.units[j]}" for j in joints)
        plural = "s" if len(joints) > 1 else ""
        return (
            f"Friction of joint{plural} {numbers} is a guess beyond the fastest motion recorded "
            f"({speeds}); it takes energy up to the rated speed whatever it is."
        )


def measured_speed_range(model: FittedModel) -> MeasuredSpeedRange | None:
    """Speed range of a fitted model's friction; None without friction or training speeds."""
    measured = model.training.ranges.velocity
    if measured is None or not model.layout.of_kind(DISSIPATIVE).any():
        return None
    rated = np.asarray(model.robot.limits.velocity, float)
    rated = np.where(np.isfinite(rated) & (rated > 0.0), rated, np.inf)
    units = tuple("m/s" if slides else "rad/s" for slides in model.robot.is_prismatic)
    return MeasuredSpeedRange(np.asarray(measured.largest, float), rated, units)
