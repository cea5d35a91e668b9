"""Coulomb friction that grows with what the gear carries: (Fc + k |tau|) s(v) + Fv v."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.friction.input import FrictionInput
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.model import Friction, Term


@dataclass(frozen=True, slots=True)
class LinearLoad(Friction):
    """(Fc + k |tau|) s(v) + Fv v, tau the rigid-body torque with any payload.

    Attributes:
        width: Velocity over which the sign turns over [rad/s]; 0 is a hard sign.
        quadratic: Adds Fv2 s v^2, the drag of grease at speed.
    """

    width: float = 0.0
    quadratic: bool = False

    needs: ClassVar[frozenset[str]] = frozenset({"velocity", "load"})

    @property
    def terms(self) -> tuple[Term, ...]:
        always = (
            Term("coulomb", True),
            Term("viscous", True, "N m s/rad"),
            Term("load", True, "1"),
        )
        return (*always, Term("viscous2", False, "N m s^2/rad^2")) if self.quadratic else always

    @property
    def by_load(self) -> tuple[int, ...]:
        return tuple(i for i, term in enumerate(self.terms) if term.name == "load")

    def at(self, inputs: FrictionInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        columns = [s, velocity, np.abs(inputs.load) * s]
        if self.quadratic:
            columns.append(s * velocity**2)
        return np.stack(columns, -1)
