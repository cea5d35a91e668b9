"""Stribeck friction: static friction that decreases to Coulomb friction, and viscous friction."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.parameters import COULOMB, STATIC
from taufit.terms.friction.polynomial import VISCOUS, viscous_columns
from taufit.terms.input import TermInput
from taufit.terms.term import Parameter, ShapeParameter

# Speeds at which gears leave boundary lubrication lie between a tenth of a degree per second and a
# few tens of degrees per second; the grid spans that.
STRIBECK_SHAPES = (
    ShapeParameter("coulomb_velocity", (0.005, 0.02, 0.1), 3e-4, 3.0, "rad/s"),
    ShapeParameter("stribeck_velocity", (0.005, 0.03, 0.2), 3e-4, 3.0, "rad/s"),
)


def stribeck_decay(velocity: Float[Array, " n"], speed: float | complex) -> Float[Array, " n"]:
    """Stribeck decay exp(-(v/speed)^2)."""
    return np.exp(-((velocity / speed) ** 2))


@dataclass(frozen=True, slots=True)
class Stribeck(Friction):
    """fv1 v + fv2 s v^2 + fv3 v^3 + fc s (1 - exp(-(v/fc1)^2)) + fs s exp(-(v/fs1)^2).

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
        degree: Degree of the viscous polynomial, 1 to 3.
    """

    width: float = 0.0
    degree: int = 3

    shapes: ClassVar[tuple[ShapeParameter, ...]] = STRIBECK_SHAPES

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (*VISCOUS[: self.degree], COULOMB, STATIC)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        return np.stack(
            [
                *viscous_columns(velocity, s, self.degree),
                s * (1.0 - stribeck_decay(velocity, shape[0])),
                s * stribeck_decay(velocity, shape[1]),
            ],
            -1,
        )
