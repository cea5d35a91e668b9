"""Wrapper of a friction model: the inner model, except for overridden properties.

Its terms and shapes follow those of the inner model, so indices of the inner model are valid for
the wrapper.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, cast

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.linear import Linear
from taufit.terms.input import TermInput
from taufit.terms.term import Parameter, ShapeParameter, State, Term


@dataclass(frozen=True, slots=True)
class Wrapper(Friction):
    """columns = changed(columns of the model inside).

    A subclass writes what it has of its own: `own_parameters`, `own_shapes`, `own_needs`,
    `transform_columns`, and `inner_model` where its shape goes into the inner model's settings.

    Attributes:
        model: Inner friction model.
    """

    model: Any = field(default_factory=Linear)

    @property
    def own_parameters(self) -> tuple[Parameter, ...]:
        """Additional parameters after those of the inner model."""
        return ()

    @property
    def own_shapes(self) -> tuple[ShapeParameter, ...]:
        """Additional shapes after those of the inner model."""
        return ()

    @property
    def own_needs(self) -> frozenset[str]:
        """Additional inputs that it reads."""
        return frozenset()

    def inner_model(self, wrapper_shape: Float[Array, " o"]) -> Term:
        """Inner model, given the wrapper's shape parameters."""
        return cast(Term, self.model)

    def transform_columns(
        self, inner: Float[Array, "n k"], inputs: TermInput, wrapper_shape: Float[Array, " o"]
    ) -> Float[Array, "n m"]:
        """Columns of all terms, from those of the inner model and the wrapper's shape."""
        return inner

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (*self.model.parameters, *self.own_parameters)

    @property
    def shapes(self) -> tuple[ShapeParameter, ...]:
        return (*self.model.shapes, *self.own_shapes)

    @property
    def needs(self) -> frozenset[str]:
        inputs: frozenset[str] = self.model.needs | self.own_needs
        return inputs

    @property
    def memory(self) -> tuple[float, ...]:
        inner: tuple[float, ...] = self.model.memory
        return inner

    @property
    def by_load(self) -> tuple[int, ...] | None:
        inner: tuple[int, ...] | None = self.model.by_load
        return inner

    def start(self, shape: Float[Array, " s"]) -> State:
        first = len(self.model.shapes)
        return self.inner_model(shape[first:]).start(shape[:first])

    def scan(
        self, state: State, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        first = len(self.model.shapes)
        inner, state = self.inner_model(shape[first:]).advance(state, inputs, shape[:first])
        return self.transform_columns(inner, inputs, shape[first:]), state

    def steady_state(self) -> Any:
        return replace(self, model=self.model.steady_state())

    def without_load(self) -> Any:
        inner = self.model.without_load()
        return None if inner is None else replace(self, model=inner)

    def with_memory(self, widths: tuple[float, ...]) -> Any:
        return replace(self, model=self.model.with_memory(widths))

    def typical_value(self, channel: str) -> float | None:
        inner: float | None = self.model.typical_value(channel)
        return inner
