"""Load-dependent Coulomb friction: (Fc + k |tau|) s(v) + Fv v."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import Linear, smooth_sign
from taufit.terms.friction.parameters import BY_LOAD, COULOMB, viscous_parameter
from taufit.terms.input import TermInput
from taufit.terms.term import LOAD, Parameter


@dataclass(frozen=True, slots=True)
class LinearLoad(Friction):
    """(Fc + k |tau|) s(v) + Fv v, tau the rigid-body torque with any payload.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
        quadratic: Whether to add Fv2 s v^2, the nonlinear viscous friction of grease.
    """

    width: float = 0.0
    quadratic: bool = False

    needs: ClassVar[frozenset[str]] = frozenset({"velocity", "load"})

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        required = (
            COULOMB,
            viscous_parameter(1, nonnegative=True),
            BY_LOAD,
        )
        return (*required, viscous_parameter(2)) if self.quadratic else required

    @property
    def by_load(self) -> tuple[int, ...]:
        return tuple(i for i, parameter in enumerate(self.parameters) if parameter.group == LOAD)

    def without_load(self) -> Linear:
        return Linear(self.width)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        columns = [s, velocity, np.abs(inputs.load) * s]
        if self.quadratic:
            columns.append(s * velocity**2)
        return np.stack(columns, -1)
