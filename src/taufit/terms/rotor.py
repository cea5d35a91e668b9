"""Rotor inertia of the motors, reflected through the gears."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.input import TermInput
from taufit.terms.term import INERTIAL, Kind, Parameter, Term

if TYPE_CHECKING:
    from taufit.robot import Robot


@dataclass(frozen=True, slots=True)
class Rotor(Term):
    """Torque J a, with a the motor's acceleration reflected to the joint."""

    kind: ClassVar[Kind] = INERTIAL
    block: ClassVar[str] = "rotor"
    filtered: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("rotor", True, "kg m^2"),)
    needs: ClassVar[frozenset[str]] = frozenset({"acceleration"})

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        return np.stack([inputs.acceleration], -1)

    def nominal(self, robot: Robot) -> Float[Array, "j k"]:
        return np.asarray(robot.rotor_inertias, float)[:, None]
