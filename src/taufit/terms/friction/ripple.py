"""Any friction model with a torque that repeats with the joint's own angle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.friction.input import FrictionInput
from taufit.terms.friction.model import Term
from taufit.terms.friction.wrapper import Wrapper


@dataclass(frozen=True, slots=True)
class Ripple(Wrapper):
    """f(v, ...) + sum_k A_k sin(o_k q) + B_k cos(o_k q).

    Gears, bearings and torque sensors that are not perfectly round give a torque that comes back at
    the same angle: at whole multiples of the joint's angle, or of the motor's where o_k is a
    multiple of the gear ratio. It stores no energy over a turn and takes none.

    Attributes:
        model: Friction without it.
        orders: o_k, waves per radian of the joint.
    """

    orders: tuple[float, ...] = (1.0, 2.0, 3.0)

    def __post_init__(self) -> None:
        if not self.orders or min(self.orders) <= 0.0 or len(set(self.orders)) < len(self.orders):
            raise ValueError("orders are positive and differ")

    @property
    def own_terms(self) -> tuple[Term, ...]:
        return tuple(
            Term(f"ripple_{wave}_{order:g}") for order in self.orders for wave in ("sin", "cos")
        )

    @property
    def own_needs(self) -> frozenset[str]:
        return frozenset({"position"})

    def changed(
        self, inner: Float[Array, "n k"], inputs: FrictionInput, own: Float[Array, " o"]
    ) -> Float[Array, "n m"]:
        return np.concatenate([inner, np.stack(self._waves(inputs), -1)], -1)

    def steady(self) -> Ripple:
        return MeanRipple(self.model.steady(), self.orders)

    def _waves(self, inputs: FrictionInput) -> list[Any]:
        angle = inputs.position
        return [wave(order * angle) for order in self.orders for wave in (np.sin, np.cos)]


@dataclass(frozen=True, slots=True)
class MeanRipple(Ripple):
    """`Ripple` at constant speed, averaged over a turn: its waves are zero."""

    @property
    def own_needs(self) -> frozenset[str]:
        return frozenset()

    def _waves(self, inputs: FrictionInput) -> list[Any]:
        return [0.0 * inputs.velocity for _ in range(2 * len(self.orders))]

    def steady(self) -> Ripple:
        return replace(self, model=self.model.steady())
