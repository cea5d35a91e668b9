"""Torque ripple: torque periodic in the joint position."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.terms.input import TermInput
from taufit.terms.term import CONSERVATIVE, WAVE, Kind, Parameter, Term


@dataclass(frozen=True, slots=True)
class Ripple(Term):
    """sum_k A_k sin(o_k q) + B_k cos(o_k q).

    Imperfectly round gears, bearings and torque sensors cause torque that is periodic in the angle
    of the joint, or of the motor if o_k is a multiple of the gear ratio. It is conservative.

    Outside the trained range the angle is held at the edge of the range.

    Attributes:
        orders: Orders o_k, waves per radian of the joint.
        lower, upper: Trained range of every joint, or of one; empty if the angle is not held.
    """

    orders: tuple[float, ...] = (1.0, 2.0, 3.0)
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()

    kind: ClassVar[Kind] = CONSERVATIVE
    needs: ClassVar[frozenset[str]] = frozenset({"position"})

    def __post_init__(self) -> None:
        if not self.orders or min(self.orders) <= 0.0 or len(set(self.orders)) < len(self.orders):
            raise ValueError("orders are positive and differ")
        if len(self.lower) != len(self.upper) or any(
            a > b for a, b in zip(self.lower, self.upper, strict=False)
        ):
            raise ValueError("every joint has a lower and an upper end of its range")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(f"ripple_{wave}_{order:g}", group=WAVE)
            for order in self.orders
            for wave in ("sin", "cos")
        )

    def of_joint(self, joint: int) -> Ripple:
        if len(self.lower) <= 1:
            return self
        return replace(
            self, lower=self.lower[joint : joint + 1], upper=self.upper[joint : joint + 1]
        )

    def restrict_to_range(self, lower: tuple[float, ...], upper: tuple[float, ...]) -> Ripple:
        return Ripple(self.orders, lower, upper)

    def unbounded(self) -> Ripple:
        return Ripple(self.orders)

    def contains(self, position: Float[Array, "n j"]) -> bool:
        if not self.lower:
            return True
        return bool(np.all((position >= self.lower) & (position <= self.upper)))

    def columns_at(self, inputs: TermInput, shape: Float[Array, " s"]) -> Float[Array, "n k"]:
        angle = inputs.position
        if len(self.lower) > 1:
            raise TaufitError("ranges differ from joint to joint: ask `of_joint` for columns.")
        if self.lower:
            angle = np.minimum(np.maximum(angle, self.lower[0]), self.upper[0])
        if isinstance(angle, np.ndarray) and self.orders == tuple(range(1, len(self.orders) + 1)):
            return _harmonics(angle, len(self.orders))
        waves = [wave(order * angle) for order in self.orders for wave in (np.sin, np.cos)]
        return np.stack(waves, -1)


def _harmonics(angle: Float[Array, " n"], count: int) -> Float[Array, "n k"]:
    """sin a, cos a, sin 2 a, cos 2 a, ... by their addition theorem."""
    out = np.empty((2 * count, len(angle)))
    sine, cosine = np.sin(angle, out=out[0]), np.cos(angle, out=out[1])
    for k in range(2, 2 * count, 2):
        out[k] = out[k - 2] * cosine + out[k - 1] * sine
        out[k + 1] = out[k - 1] * cosine - out[k - 2] * sine
    return out.T
