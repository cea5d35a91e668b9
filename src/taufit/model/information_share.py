"""How much of each link and friction term came from the data, how much from what was believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.codec import Limits
from taufit.terms import DISSIPATIVE

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True, eq=False)
class InformationShare:
    """Shares from 0 (as believed before) to 1 (as the recordings say).

    With C the covariance of the parameters after the fit and C0 that before it, the share of some
    of them is the mean of the diagonal of 1 - C0^-1 C: the number of parameters that the data
    determine, over their number.

    Attributes:
        links: Of the ten parameters of each link.
        terms: Of each friction term of each joint; 0 where it is held at zero.
    """

    links: Annotated[Float[Array, " j"], Limits(low=0.0)]
    terms: Annotated[Float[Array, "j k"], Limits(low=0.0)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for files and JSON, to three digits."""
        return {
            "links": np.round(self.links, 3).tolist(),
            "terms": np.round(self.terms, 3).tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSpeedRange:
    """Up to which speed friction was measured, and how fast the joints may turn.

    Attributes:
        measured: Fastest in training [rad/s or m/s].
        rated: The robot's limit; infinite where it has none.
        units: "rad/s", or "m/s" for joints that slide.
    """

    measured: Float[Array, " j"]
    rated: Float[Array, " j"]
    units: tuple[str, ...]

    @property
    def extrapolated_joints(self) -> tuple[int, ...]:
        """Joints, counted from 0, whose friction is a guess at their rated speed."""
        return tuple(int(j) for j in np.flatnonzero(self.measured < 0.95 * self.rated))

    @property
    def describe(self) -> str:
        """One sentence; empty where friction was seen at all speeds."""
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
    """Of a fitted model; None without friction, or where its training's speeds are not known."""
    measured = model.training.ranges.velocity
    if measured is None or not model.layout.of_kind(DISSIPATIVE).any():
        return None
    rated = np.asarray(model.robot.limits.velocity, float)
    rated = np.where(np.isfinite(rated) & (rated > 0.0), rated, np.inf)
    units = tuple("m/s" if link.prismatic else "rad/s" for link in model.robot.links)
    return MeasuredSpeedRange(np.asarray(measured.largest, float), rated, units)
