"""Friction at places beside the motors: cables, couplings and bearings of a coupled wrist.

A place moves with several joints, s = r v, and its friction f(s) reaches them all, tau = r' f(s).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.input import TermInput
from taufit.terms.term import DISSIPATIVE, DRAG, LEVEL, Kind, Parameter, Term

if TYPE_CHECKING:
    from taufit.robot import Robot

_PARAMETERS = (
    Parameter("place_coulomb", True, group=LEVEL),
    Parameter("place_viscous", True, "N m s/rad", DRAG),
)


@dataclass(frozen=True, slots=True)
class FrictionPlaces(Term):
    """Coulomb and viscous friction Fc tanh(s/width) + Fv s at one further place per joint.

    Attributes:
        rows: Factors r of the joint speeds, one row per joint; all zero for a joint without place.
        width: Speed over which friction changes its sign [rad/s]; larger is smoother.
    """

    rows: tuple[tuple[float, ...], ...] = ()
    # Chosen on the first 70 % of one dVRK PSM motion (first 50 %, scored on the next 20 %).
    width: float = 0.1

    kind: ClassVar[Kind] = DISSIPATIVE

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return _PARAMETERS if self.rows else ()

    @property
    def place_rows(self) -> tuple[tuple[float, ...], ...]:
        return self.rows

    def of_robot(self, robot: Robot) -> FrictionPlaces:
        return replace(self, rows=robot.drives.place_rows)

    def absent(self, joint: int) -> tuple[str, ...]:
        has_place = bool(self.rows) and any(self.rows[joint])
        return () if has_place else tuple(parameter.name for parameter in self.parameters)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        if not self.rows:
            return np.empty((len(inputs), 0))
        velocity = inputs.velocity
        return np.stack([smooth_sign(velocity, self.width), velocity], -1)
