"""Any friction model with the width of its sign change found from data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from taufit.arrays import Array, Float
from taufit.friction.linear import Linear
from taufit.friction.model import FrictionModel, Shape, Term

WIDTH = Shape("width", (5e-4, 5e-3, 5e-2), 1e-4, 0.5, "rad/s")


@dataclass(frozen=True, slots=True)
class FittedWidth:
    """tanh(v/w) for the sign, with w one more shape of every joint.

    Attributes:
        model: Any model with a `width`.
    """

    model: Any = field(default_factory=Linear)

    def __post_init__(self) -> None:
        if not hasattr(self.model, "width"):
            raise ValueError(f"{type(self.model).__name__} has no width to fit")

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.model.terms

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return (*self.model.shapes, WIDTH)

    @property
    def uses_load(self) -> bool:
        return self.model.uses_load

    @property
    def uses_temperature(self) -> bool:
        return self.model.uses_temperature

    def columns(
        self,
        velocity: Float[Array, " n"],
        shape: Float[Array, " s"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n k"]:
        model: FrictionModel = replace(self.model, width=shape[-1])
        return model.columns(velocity, shape[:-1], load, temperature)
