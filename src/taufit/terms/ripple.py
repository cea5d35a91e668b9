"""Torque ripple: torque periodic in the joint position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.terms.input import TermInput
from taufit.terms.term import CONSERVATIVE, WAVE, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class Ripple(Term):
    """sum_k A_k sin(o_k q) + B_k cos(o_k q).

    Imperfectly round gears, bearings and torque sensors cause torque that is periodic in the angle
    of the joint, or of the motor if o_k is a multiple of the gear ratio. It is conservative.

    Attributes:
        orders: Orders o_k, waves per radian of the joint.
    """

    orders: tuple[float, ...] = (1.0, 2.0, 3.0)

    kind: ClassVar[Kind] = CONSERVATIVE
    needs: ClassVar[frozenset[str]] = frozenset({"position"})

    def __post_init__(self) -> None:
        if not self.orders or min(self.orders) <= 0.0 or len(set(self.orders)) < len(self.orders):
            raise ValueError("orders are positive and differ")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(f"ripple_{wave}_{order:g}", group=WAVE)
            for order in self.orders
            for wave in ("sin", "cos")
        )

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        angle = inputs.position
        waves = [wave(order * angle) for order in self.orders for wave in (np.sin, np.cos)]
        return np.stack(waves, -1)
