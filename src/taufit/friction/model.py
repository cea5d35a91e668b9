"""The contract every friction model keeps: columns that multiply coefficients, and shapes.

A friction model is linear in its terms once its shapes are known:

    tau_f = columns(velocity, shape, load, temperature) @ coefficients          (one joint)

Shapes (exponents, Stribeck velocities) are positive numbers found by variable projection. Columns
are analytic in the shape, so derivatives with respect to it come exactly from a complex step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import TaufitError


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


@runtime_checkable
class FrictionModel(Protocol):
    """Friction of one joint; every joint has its own coefficients and shape."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The linear coefficients, in column order."""
        ...

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The nonlinear parameters; empty for a linear model."""
        ...

    @property
    def uses_load(self) -> bool:
        """Whether `columns` needs the rigid-body torque."""
        ...

    @property
    def uses_temperature(self) -> bool:
        """Whether `columns` needs the joint's temperature."""
        ...

    def columns(
        self,
        velocity: Float[Array, " n"],
        shape: Float[Array, " s"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n k"]:
        """Friction torque per unit of each term.

        Args:
            velocity: Of the joint [rad/s].
            shape: One per entry of `shapes`; may be complex for derivatives.
            load: Rigid-body torque of the joint including any payload [N m].
            temperature: Of the joint [degC].
        """
        ...


def start_shape(model: FrictionModel) -> Float[Array, " s"]:
    """A shape to begin with: the middle of each starting grid."""
    return np.array([shape.start[len(shape.start) // 2] for shape in model.shapes])


def remembers_path(model: FrictionModel | None) -> bool:
    """Whether `columns` also takes `travel`, velocity times the time between two samples."""
    return bool(getattr(model, "uses_travel", False))


def needed(
    quantity: Float[Array, " n"] | None, what: str, model: FrictionModel
) -> Float[Array, " n"]:
    """`quantity`, or an error that says which model needs it."""
    if quantity is None:
        remedy = {
            "load": "Pass the rigid-body torque as `load`.",
            "temperature": "Record joint temperatures, or choose a model without them.",
        }[what]
        raise TaufitError(f"friction model {type(model).__name__} needs the {what}. {remedy}")
    return quantity
