"""Stribeck friction with load dependence, in two forms."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import smooth_sign
from taufit.terms.friction.parameters import BY_LOAD, COULOMB, STATIC
from taufit.terms.friction.polynomial import VISCOUS
from taufit.terms.friction.stribeck import STRIBECK_SHAPES, Stribeck, stribeck_decay
from taufit.terms.input import TermInput
from taufit.terms.term import LOAD, Parameter, ShapeParameter


@dataclass(frozen=True, slots=True)
class StribeckLoad(Friction):
    """Stribeck plus (ft |tau| + ft1 exp(-ft2 |tau|/|v|)) s(v), tau the rigid-body torque.

    Without load the second term does not vanish: it adds ft1 s(v). `StribeckLoadSmooth` does not
    have this effect.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
        degree: Degree of the viscous polynomial, 1 to 3.
    """

    width: float = 0.0
    degree: int = 3

    shapes: ClassVar[tuple[ShapeParameter, ...]] = (
        *STRIBECK_SHAPES,
        ShapeParameter("load_rate", (1e-4, 2e-3, 2e-2), 1e-5, 1.0, "rad/(N m s)"),
    )
    needs: ClassVar[frozenset[str]] = frozenset({"velocity", "load"})

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (
            *VISCOUS[: self.degree],
            COULOMB,
            STATIC,
            BY_LOAD,
            Parameter("load_static", group=LOAD, optional="load", modifies="static"),
        )

    def without_load(self) -> Stribeck:
        return Stribeck(self.width, self.degree)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        load_magnitude = np.abs(inputs.load)
        # At standstill the ratio is bounded and the exponential is 0 under any load.
        per_speed = load_magnitude / np.maximum(np.abs(velocity), np.finfo(float).tiny ** 0.5)
        stribeck = Stribeck(self.width, self.degree).columns_at(inputs, shape[:2])
        with np.errstate(under="ignore"):
            decay = np.exp(-shape[2] * per_speed)
        return np.concatenate([stribeck, np.stack([load_magnitude * s, decay * s], -1)], -1)


@dataclass(frozen=True, slots=True)
class StribeckLoadSmooth(Friction):
    """Stribeck plus (ft + ft1 exp(-(v/vt)^2)) |tau| s(v): no additional friction without load.

    Attributes:
        width: Velocity scale of the smooth sign tanh(v/width) [rad/s]; 0 for a hard sign.
        degree: Degree of the viscous polynomial, 1 to 3.
    """

    width: float = 0.0
    degree: int = 3

    shapes: ClassVar[tuple[ShapeParameter, ...]] = (
        *STRIBECK_SHAPES,
        ShapeParameter("load_velocity", (0.005, 0.03, 0.2), 3e-4, 3.0, "rad/s"),
    )
    needs: ClassVar[frozenset[str]] = frozenset({"velocity", "load"})

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (
            *VISCOUS[: self.degree],
            COULOMB,
            STATIC,
            BY_LOAD,
            Parameter("load_static", False, "1", LOAD, "load", modifies="static"),
        )

    @property
    def by_load(self) -> tuple[int, ...]:
        return tuple(i for i, parameter in enumerate(self.parameters) if parameter.group == LOAD)

    def without_load(self) -> Stribeck:
        return Stribeck(self.width, self.degree)

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        velocity = inputs.velocity
        s = smooth_sign(velocity, self.width)
        load_column = np.abs(inputs.load) * s
        stribeck = Stribeck(self.width, self.degree).columns_at(inputs, shape[:2])
        load_columns = np.stack([load_column, load_column * stribeck_decay(velocity, shape[2])], -1)
        return np.concatenate([stribeck, load_columns], -1)
