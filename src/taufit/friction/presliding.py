"""Friction that builds up over a displacement after each reversal, not at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.friction.model import Shape, Term, needed

# A decade apart from a few seconds of arc to a fifth of a turn: what grease, teeth, flexsplines
# and torque sensors show. The data decide how much of each there is.
WIDTHS = (3e-5, 3e-4, 3e-3, 3e-2, 0.3)


@dataclass(frozen=True, slots=True)
class Presliding:
    """F z_1 + sum_k P_k (z_k - z_1) + Fv v + Fv2 v |v| + k |tau| z_1.

    z_k in [-1, 1] is Dahl's state of an element that yields over a displacement w_k: along the
    path x of the joint

        dz/dx = (1 - z sign(dx)) / w,       so z -> sign(v) after a few w in one direction.

    F is the Coulomb friction of steady motion; the P_k say how much of it builds up slowly. Where
    only velocities are known (`travel` is None) every z is sign(v) and the P_k have no effect.

    Attributes:
        widths: w_1 < w_2 < ..., displacement over which each element yields [rad or m].
        load: Whether Coulomb friction grows with the torque the gear carries (k).
        quadratic: Whether drag grows with the square of velocity (Fv2).
    """

    widths: tuple[float, ...] = WIDTHS
    load: bool = True
    quadratic: bool = True

    shapes: ClassVar[tuple[Shape, ...]] = ()
    uses_temperature: ClassVar[bool] = False
    uses_travel: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) <= 0.0 or sorted(self.widths) != list(self.widths):
            raise ValueError("widths are positive and rise")

    @property
    def uses_load(self) -> bool:
        return self.load

    @property
    def terms(self) -> tuple[Term, ...]:
        return (
            Term("coulomb", True),
            *(Term(f"presliding_{k}", True) for k in range(2, len(self.widths) + 1)),
            Term("viscous", True, "N m s/rad"),
            *((Term("viscous2", False, "N m s^2/rad^2"),) if self.quadratic else ()),
            *((Term("load", True, "1"),) if self.load else ()),
        )

    def columns(
        self,
        velocity: Float[Array, " n"],
        shape: Float[Array, " s"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
        travel: Float[Array, " n"] | None = None,
    ) -> Float[Array, "n k"]:
        if travel is None:
            first: Any = np.sign(velocity)
            slow = [0.0 * velocity for _ in self.widths[1:]]
        else:
            first = dahl_state(travel, self.widths[0])
            slow = [dahl_state(travel, width) - first for width in self.widths[1:]]
        columns = [first, *slow, velocity]
        if self.quadratic:
            columns.append(np.abs(velocity) * velocity)
        if self.load:
            columns.append(np.abs(needed(load, "load", self)) * first)
        return np.stack(columns, -1)


def dahl_state(travel: Float[Array, " n"], width: float) -> Float[Array, " n"]:
    """z at each sample of a motion whose velocity runs straight from one sample to the next.

    From z = 0 at the first sample of a joint that had been moving as it does there. Along a leg of
    displacement d in one direction

        z -> a z + (1 - a) sign(d),      a = exp(-|d| / w),

    is exact; between two samples there is one leg, or two where the joint turns back. One
    bidiagonal system, solved in one pass.

    Args:
        travel: Velocity times the time between two samples, u = v h.
        width: w, the displacement over which the element yields.
    """
    from scipy.linalg import solve_banded

    travel = np.asarray(travel, float)
    if len(travel) == 0:
        return np.zeros(0)
    there, back, turns = legs(np.concatenate([travel[:1], travel[:-1]]), travel)
    grown = -np.expm1(-np.abs(there) / width)
    decay, pull = 1.0 - grown, grown * np.sign(there)
    grown = -np.expm1(-np.abs(back) / width)
    decay[turns] *= 1.0 - grown
    pull[turns] = pull[turns] * (1.0 - grown) + grown * np.sign(back)
    bands = np.ones((2, len(travel)))
    bands[1, :-1] = -decay[1:]
    return solve_banded((1, 0), bands, pull, check_finite=False)


def legs(
    before: Float[Array, "*n"], after: Float[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, " t"], tuple[Int[Array, " t"], ...]]:
    """The way between two samples: up to a reversal, on from it, and where there is one.

    With velocity straight in time from u to u' (in displacements per step) the way is (u + u')/2,
    or, where they have opposite signs, u|u| / (2 (|u| + |u'|)) there and u'|u'| / (2 (|u| + |u'|))
    back.
    """
    there = 0.5 * (before + after)
    turns = np.nonzero(before * after < 0.0)
    u, on = before[turns], after[turns]
    span = 2.0 * (np.abs(u) + np.abs(on))
    there[turns] = u * np.abs(u) / span
    return there, on * np.abs(on) / span, turns
