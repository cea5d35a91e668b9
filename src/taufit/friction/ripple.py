"""Any friction model with a torque that repeats with the joint's own angle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.friction.input import FrictionInput
from taufit.friction.linear import Linear
from taufit.friction.model import Friction, Shape, State, Term


@dataclass(frozen=True, slots=True)
class Ripple(Friction):
    """f(v, ...) + sum_k A_k sin(o_k q) + B_k cos(o_k q).

    Gears, bearings and torque sensors that are not perfectly round give a torque that comes back at
    the same angle: at whole multiples of the joint's angle, or of the motor's where o_k is a
    multiple of the gear ratio. It stores no energy over a turn and takes none.

    Attributes:
        model: Friction without it.
        orders: o_k, waves per radian of the joint.
    """

    model: Any = field(default_factory=Linear)
    orders: tuple[float, ...] = (1.0, 2.0, 3.0)

    def __post_init__(self) -> None:
        if not self.orders or min(self.orders) <= 0.0 or len(set(self.orders)) < len(self.orders):
            raise ValueError("orders are positive and differ")

    @property
    def terms(self) -> tuple[Term, ...]:
        waves = (
            Term(f"ripple_{wave}_{order:g}") for order in self.orders for wave in ("sin", "cos")
        )
        return (*self.model.terms, *waves)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return self.model.shapes

    @property
    def needs(self) -> frozenset[str]:
        return self.model.needs | {"position"}

    @property
    def memory(self) -> tuple[float, ...]:
        return self.model.memory

    @property
    def by_load(self) -> tuple[int, ...] | None:
        inner: tuple[int, ...] | None = self.model.by_load
        return inner

    def start(self, shape: Float[Array, " s"]) -> State:
        return self.model.start(shape)

    def scan(
        self, state: State, inputs: FrictionInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], State]:
        inner, state = self.model.advance(state, inputs, shape)
        waves = self._waves(inputs)
        return np.concatenate([inner, np.stack(waves, -1)], -1), state

    def steady(self) -> Ripple:
        return MeanRipple(self.model.steady(), self.orders)

    def _waves(self, inputs: FrictionInput) -> list[Any]:
        angle = inputs.position
        return [wave(order * angle) for order in self.orders for wave in (np.sin, np.cos)]


@dataclass(frozen=True, slots=True)
class MeanRipple(Ripple):
    """`Ripple` at constant speed, averaged over a turn: its waves are zero."""

    @property
    def needs(self) -> frozenset[str]:
        return self.model.needs

    def _waves(self, inputs: FrictionInput) -> list[Any]:
        return [0.0 * inputs.velocity for _ in range(2 * len(self.orders))]

    def steady(self) -> Ripple:
        return replace(self, model=self.model.steady())
