"""Viscous friction as a cubic in speed: fv1 v + fv2 s v^2 + fv3 v^3 + fc s(v)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.parameters import COULOMB, viscous_parameter
from taufit.terms.input import TermInput
from taufit.terms.term import Parameter

VISCOUS = (
    viscous_parameter(1),
    viscous_parameter(2),
    viscous_parameter(3),
)


def viscous_columns(
    velocity: Float[Array, " n"], sign: Float[Array, " n"], degree: int
) -> list[Float[Array, " n"]]:
    """Columns v, s v^2, v^3 up to `degree`; odd in v, so without preferred direction."""
    return [velocity, sign * velocity**2, velocity**3][:degree]


@dataclass(frozen=True, slots=True)
class Polynomial(Friction):
    """fv1 v + fv2 s v^2 + fv3 v^3 + fc s(v); linear in everything.

    A cubic must not be extrapolated beyond the largest recorded speed.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
    """

    width: float = 0.0

    parameters: ClassVar[tuple[Parameter, ...]] = (*VISCOUS, COULOMB)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        return np.stack([*viscous_columns(velocity, s, 3), s], -1)
