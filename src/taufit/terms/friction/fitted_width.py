"""Friction model with a fitted width of its sign change."""

from __future__ import annotations

from dataclasses import replace

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.wrapper import Wrapper
from taufit.terms.term import ShapeParameter, Term

WIDTH = ShapeParameter("width", (5e-4, 5e-3, 5e-2), 1e-4, 0.5, "rad/s")


@dataclass(frozen=True, slots=True)
class FittedWidth(Wrapper):
    """Smooth sign tanh(v/w) with w as an additional shape parameter of every joint.

    Attributes:
        model: Friction model with a `width`.
    """

    def __post_init__(self) -> None:
        if not hasattr(self.model, "width"):
            raise ValueError(f"{type(self.model).__name__} has no width to fit")

    @property
    def has_smooth_sign(self) -> bool:
        return True

    @property
    def own_shapes(self) -> tuple[ShapeParameter, ...]:
        return (WIDTH,)

    def inner_model(self, wrapper_shape: Float[Array, " o"]) -> Term:
        model: Term = replace(self.model, width=wrapper_shape[0])
        return model
