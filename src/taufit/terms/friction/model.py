"""The contract every friction model keeps: columns that multiply coefficients, and shapes.

A friction model is linear in its terms once its shapes are known:

    tau_f = columns(inputs, shape) @ coefficients                               (one joint)

It says in `needs` which inputs it reads. Friction with memory is a recursion over samples,

    columns, state = advance(state, inputs, shape),         state = start(shape) at first,

and may be cut anywhere: a tile's border or a stream's chunk changes nothing.

Shapes (exponents, Stribeck velocities) are positive numbers found by variable projection. Columns
are analytic in the shape, so derivatives with respect to it come exactly from a complex step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.friction.input import FrictionInput


@dataclass(frozen=True, slots=True)
class Term:
    """One linear coefficient of a joint's friction.

    Attributes:
        name: e.g. "coulomb".
        nonnegative: Whether physics wants it >= 0.
        unit: In SI, for reports.
    """

    name: str
    nonnegative: bool = False
    unit: str = "N m"


@dataclass(frozen=True, slots=True)
class Shape:
    """One nonlinear, positive parameter of a joint's friction.

    Attributes:
        name: e.g. "alpha".
        start: Grid of starting values for the outer search.
        lower: Smallest value that makes sense.
        upper: Largest value that makes sense.
        unit: In SI, for reports.
    """

    name: str
    start: tuple[float, ...]
    lower: float
    upper: float
    unit: str = ""


# What a model remembers between two calls of `advance`: its own business, None without memory.
State = Any
VELOCITY = frozenset({"velocity"})


@runtime_checkable
class FrictionModel(Protocol):
    """Friction of one joint; every joint has its own coefficients, shape and state."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The linear coefficients, in column order."""
        ...

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The nonlinear parameters; empty for a linear model."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """The parts of `FrictionInput` it reads."""
        ...

    @property
    def memory(self) -> tuple[float, ...]:
        """Displacements over which its memory fades, shortest first; empty without memory."""
        ...

    def start(self, shape: Float[Array, " s"]) -> State:
        """The state before the first sample."""
        ...

    def advance(
        self, state: State, inputs: FrictionInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        """Friction torque per unit of each term at the next n samples, and the state after them.

        Args:
            state: From `start` or the call before.
            inputs: Of the joint.
            shape: One per entry of `shapes`; may be complex for derivatives.
        """
        ...

    def columns(self, inputs: FrictionInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        """Of a whole run: `advance` from `start`."""
        ...

    def steady(self) -> FrictionModel:
        """The same terms and shapes without memory: friction at constant speed."""
        ...


class Friction:
    """What friction models share; one without memory has only `terms` and `at` to write.

    A model with memory writes `memory`, `start`, `scan` and `steady` instead of `at`.
    """

    __slots__ = ()

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return ()

    @property
    def needs(self) -> frozenset[str]:
        return VELOCITY

    @property
    def memory(self) -> tuple[float, ...]:
        return ()

    @property
    def by_load(self) -> tuple[int, ...] | None:
        """Columns that are |load| times what they are at a load of one; no other depends on it.

        None where that is not so: then all are made anew for every load.
        """
        return None if "load" in self.needs else ()

    def at(self, inputs: FrictionInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        """Columns that depend on the inputs of the moment alone."""
        raise NotImplementedError

    def scan(
        self, state: State, inputs: FrictionInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        """`advance`, for inputs that know who reads them."""
        return self.at(inputs, shape), state

    def start(self, shape: Float[Array, " s"]) -> State:
        return None

    def advance(
        self, state: State, inputs: FrictionInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        return self.scan(state, inputs.read_by(self), shape)

    def columns(self, inputs: FrictionInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        return self.advance(self.start(shape), inputs, shape)[0]

    def steady(self) -> Any:
        return self

    def of_joint(self, joint: int) -> Any:
        """The same for one joint, where joints differ in more than coefficients and shape."""
        return self

    def level(self) -> Any:
        """`steady`, of friction alone: no term that depends on position."""
        return self.steady()


def of_joint(model: FrictionModel, joint: int) -> FrictionModel:
    """Friction of one joint; models of your own need not know joints apart."""
    own: FrictionModel = model.of_joint(joint) if hasattr(model, "of_joint") else model
    return own


def level(model: FrictionModel) -> FrictionModel:
    """Friction alone at constant speed, whatever else comes with the model."""
    own: FrictionModel = model.level() if hasattr(model, "level") else model.steady()
    return own


def level_columns(
    model: FrictionModel, velocity: Float[Array, " n"], shape: Float[Array, " s"]
) -> Float[Array, "n k"]:
    """Columns of `level` at the model's reference temperature, without load."""
    own = level(model)
    nothing = np.zeros_like(velocity)
    warm = np.full_like(velocity, getattr(own, "reference", 25.0))
    inputs = FrictionInput(velocity, position=nothing, load=nothing, temperature=warm)
    return own.columns(inputs, shape)


def start_shape(model: FrictionModel) -> Float[Array, " s"]:
    """A shape to begin with: the middle of each starting grid."""
    return np.array([shape.start[len(shape.start) // 2] for shape in model.shapes])


def needs(model: FrictionModel | None, part: str) -> bool:
    """Whether friction reads a part of its input; no friction reads nothing."""
    return model is not None and part in model.needs


def remembers(model: FrictionModel | None) -> bool:
    """Whether friction depends on the path that led to a sample."""
    return model is not None and bool(model.memory)
