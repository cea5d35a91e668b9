"""Coulomb and viscous friction: Fc s(v) + Fv v, with s = sign or a smooth tanh(v/width)."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.parameters import COULOMB, viscous_parameter
from taufit.terms.input import TermInput
from taufit.terms.term import Parameter


def smooth_sign(velocity: Float[Array, " n"], width: float | complex) -> Float[Array, " n"]:
    """Smooth sign: sign(v) for width 0, else tanh(v/width)."""
    return np.sign(velocity) if width == 0.0 else np.tanh(velocity / width)


@dataclass(frozen=True, slots=True)
class Linear(Friction):
    """Fc s(v) + Fv v.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
            `FittedWidth` fits it to data.
    """

    width: float = 0.0

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (COULOMB, viscous_parameter(1, nonnegative=True))

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        return np.stack([smooth_sign(velocity, self.width), velocity], -1)
