"""Coulomb friction that grows with what the gear carries: (Fc + k |tau|) s(v) + Fv v."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.arrays import Array, Float
from taufit.friction.linear import smooth_sign
from taufit.friction.model import Shape, Term, needed


@dataclass(frozen=True, slots=True)
class LinearLoad:
    """(Fc + k |tau|) s(v) + Fv v, tau the rigid-body torque with any payload.

    Attributes:
        width: Velocity over which the sign turns over [rad/s]; 0 is a hard sign.
        quadratic: Adds Fv2 s v^2, the drag of grease at speed.
    """

    width: float = 0.0
    quadratic: bool = False

    shapes: ClassVar[tuple[Shape, ...]] = ()
    uses_load: ClassVar[bool] = True
    uses_temperature: ClassVar[bool] = False

    @property
    def terms(self) -> tuple[Term, ...]:
        always = (
            Term("coulomb", True),
            Term("viscous", True, "N m s/rad"),
            Term("load", True, "1"),
        )
        return (*always, Term("viscous2", False, "N m s^2/rad^2")) if self.quadratic else always

    def columns(
        self,
        velocity: Float[Array, " n"],
        shape: Float[Array, " s"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n k"]:
        s = smooth_sign(velocity, self.width)
        columns = [s, velocity, np.abs(needed(load, "load", self)) * s]
        if self.quadratic:
            columns.append(s * velocity**2)
        return np.stack(columns, -1)
