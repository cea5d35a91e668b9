"""Gravity compensators: springs and gas cylinders that support part of the robot's weight.

A compensator is conservative. Its torque depends on one joint's angle and is linear in its
coefficients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.terms.input import TermInput
from taufit.terms.term import CONSERVATIVE, Kind, Parameter, Term

if TYPE_CHECKING:
    from taufit.robot import Robot
    from taufit.robot.compensator import Compensator

PARAMETERS = {
    "spring": (Parameter("balance_rate", unit="N/m"), Parameter("balance_force", unit="N")),
    "gas": (Parameter("balance_gas", unit="N"),),
    "unknown": (Parameter("balance_sin"), Parameter("balance_cos")),
}


def compensator_columns(compensator: Compensator, angle: Any) -> list[Any]:
    """Torque per unit of each parameter of a compensator, in the order of `PARAMETERS`.

    spring: k (l - l0) dl/dx = k a b sin x + F dl/dx, so rate and force are two linear terms. gas:
    F0 (1 + (l - l_zero) / g)^-n dl/dx. unknown: sin q and cos q.
    """
    if compensator.kind == "unknown":
        return [np.sin(angle), np.cos(angle)]
    a, b = compensator.base_arm, compensator.link_arm
    x = angle + compensator.angle
    sine = np.sin(x)
    length = np.sqrt((a * a + b * b) - (2.0 * a * b) * np.cos(x))
    lever = (a * b) * sine / length
    if compensator.kind == "spring":
        return [(a * b) * sine, lever]
    volume = 1.0 + (length - compensator.length_at_zero) / compensator.gas_length
    return [np.exp(-compensator.exponent * np.log(volume)) * lever]


@dataclass(frozen=True, slots=True)
class GravityCompensator(Term):
    """Torque of gravity compensators at the joints that have one.

    Joints have different compensators, so columns come from `of_joint(k)`. All joints have equal
    parameters; those of a compensator that a joint does not have are zero there.

    Attributes:
        compensators: Compensators, at most one per joint.
    """

    compensators: tuple[Compensator, ...] = ()

    kind: ClassVar[Kind] = CONSERVATIVE
    needs: ClassVar[frozenset[str]] = frozenset({"position"})

    def __post_init__(self) -> None:
        joints = [compensator.joint for compensator in self.compensators]
        if len(set(joints)) < len(joints):
            raise ValueError("a joint has one compensator at most")

    @property
    def forms(self) -> tuple[str, ...]:
        """Kinds of compensators that occur, in a fixed order."""
        return tuple(form for form in PARAMETERS if any(c.kind == form for c in self.compensators))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameter for form in self.forms for parameter in PARAMETERS[form])

    def of_joint(self, joint: int) -> GravityCompensator:
        return _JointCompensator(self.compensators, joint)

    def of_robot(self, robot: Robot) -> GravityCompensator:
        return GravityCompensator(robot.compensators)

    def absent(self, joint: int) -> tuple[str, ...]:
        joint_kind = {item.joint: item.kind for item in self.compensators}.get(joint)
        return tuple(
            item.name for form in self.forms if form != joint_kind for item in PARAMETERS[form]
        )

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        if not self.compensators:
            return np.empty((len(inputs), 0))
        raise TaufitError("compensators differ from joint to joint: ask `of_joint` for columns.")


@dataclass(frozen=True, slots=True)
class _JointCompensator(GravityCompensator):
    """Compensator of one joint."""

    joint: int = 0

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        if not self.compensators:
            return np.empty((len(inputs), 0))
        angle = inputs.position
        joint_compensator = next(
            (compensator for compensator in self.compensators if compensator.joint == self.joint),
            None,
        )
        columns: list[Any] = []
        for form in self.forms:
            if joint_compensator is not None and joint_compensator.kind == form:
                columns += compensator_columns(joint_compensator, angle)
            else:
                columns += [0.0 * angle for _ in PARAMETERS[form]]
        return np.stack(columns, -1)
