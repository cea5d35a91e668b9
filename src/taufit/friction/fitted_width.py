"""Any friction model with the width of its sign change found from data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from taufit.arrays import Array, Float
from taufit.friction.input import FrictionInput
from taufit.friction.linear import Linear
from taufit.friction.model import Friction, FrictionModel, Shape, State, Term

WIDTH = Shape("width", (5e-4, 5e-3, 5e-2), 1e-4, 0.5, "rad/s")


@dataclass(frozen=True, slots=True)
class FittedWidth(Friction):
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
    def needs(self) -> frozenset[str]:
        return self.model.needs

    @property
    def memory(self) -> tuple[float, ...]:
        return self.model.memory

    @property
    def by_load(self) -> tuple[int, ...] | None:
        inner: tuple[int, ...] | None = self.model.by_load
        return inner

    def start(self, shape: Float[Array, " s"]) -> State:
        return self._at_width(shape).start(shape[:-1])

    def scan(
        self, state: State, inputs: FrictionInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        return self._at_width(shape).advance(state, inputs, shape[:-1])

    def steady(self) -> FittedWidth:
        return replace(self, model=self.model.steady())

    def _at_width(self, shape: Float[Array, " s"]) -> FrictionModel:
        model: FrictionModel = replace(self.model, width=shape[-1])
        return model
