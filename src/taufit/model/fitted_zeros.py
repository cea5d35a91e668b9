"""Joint zero offsets estimated by a fit."""

from __future__ import annotations

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True)
class FittedZero:
    """Zero offset added to one joint's recorded positions.

    Attributes:
        joint: Joint name.
        value: joint = recorded + value, in `unit`.
        std: Standard deviation, in `unit`; that of the prior if not identifiable.
        is_prismatic: Whether the joint is prismatic.
        identifiable: Whether the offset is identifiable from the motion.
    """

    joint: str
    value: float
    std: float
    is_prismatic: bool
    identifiable: bool

    @property
    def unit(self) -> str:
        """Unit of `value` and `std`."""
        return "m" if self.is_prismatic else "rad"

    @property
    def display_values(self) -> tuple[float, float, str]:
        """Value and standard deviation in deg or mm, with that unit."""
        scale, unit = (1e3, "mm") if self.is_prismatic else (180.0 / np.pi, "deg")
        return scale * self.value, scale * self.std, unit

    @property
    def describe(self) -> str:
        """One sentence on the offset."""
        value, std, unit = self.display_values
        if not self.identifiable:
            return (
                f"Zero of {self.joint}: not identifiable from this motion; it stays at "
                f"{value:.2f} {unit}, where it was."
            )
        return (
            f"Zero of {self.joint}: {value:+.2f} {unit} (standard deviation {std:.2f} {unit}) is "
            "added to recorded positions."
        )


def zero_offsets_of_model(model: FittedModel) -> tuple[FittedZero, ...]:
    """Estimated zero offsets, joint by joint; empty if none was estimated."""
    std, robot = model.training.joint_zero_std, model.robot
    if std is None:
        return ()
    values = robot.joint_zeros or (0.0,) * robot.joints
    unobservable = model.training.hidden_zeros
    return tuple(
        FittedZero(name, float(value), float(joint_std), bool(slides), name not in unobservable)
        for name, slides, value, joint_std in zip(
            robot.joint_names, robot.is_prismatic, values, std, strict=True
        )
        if joint_std > 0.0
    )
