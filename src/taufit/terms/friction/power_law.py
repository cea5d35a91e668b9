"""Coulomb friction plus a power of speed: (Fc + Fv |v|^alpha) s(v)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.parameters import COULOMB, viscous_parameter
from taufit.terms.input import TermInput
from taufit.terms.term import Parameter, ShapeParameter


@dataclass(frozen=True, slots=True)
class PowerLaw(Friction):
    """(Fc + Fv |v|^alpha) s(v), alpha in (0, 1.5].

    alpha = 1 is the linear model; below it friction rises steeply first and then flattens.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
    """

    width: float = 0.0

    parameters: ClassVar[tuple[Parameter, ...]] = (
        COULOMB,
        viscous_parameter(1, nonnegative=True, unit="N m (s/rad)^alpha"),
    )
    shapes: ClassVar[tuple[ShapeParameter, ...]] = (
        ShapeParameter("alpha", (0.3, 0.7, 1.2), 0.05, 1.5, "1"),
    )

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        # log |v| instead of |v|^alpha keeps the column analytic in alpha at v = 0, where s is 0.
        speed = np.maximum(np.abs(velocity), np.finfo(float).tiny)
        return np.stack([s, s * np.exp(shape[0] * np.log(speed))], -1)
