"""Friction that builds up over a displacement after each reversal, not at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.friction.model import Shape, Term, needed

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

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
            states, _ = dahl_states(travel, self.widths)
            first = states[:, 0]
            slow = [states[:, k] - first for k in range(1, len(self.widths))]
        columns = [first, *slow, velocity]
        if self.quadratic:
            columns.append(np.abs(velocity) * velocity)
        if self.load:
            columns.append(np.abs(needed(load, "load", self)) * first)
        return np.stack(columns, -1)


def dahl_states(
    travel: Float[Array, " n"],
    widths: tuple[float, ...],
    before: float | None = None,
    state: Float[Array, " k"] | None = None,
) -> tuple[Float[Array, "n k"], Float[Array, " k"]]:
    """z of each width at each sample, and the state to go on from.

    Velocity runs straight from one sample to the next. Along a leg of displacement d in one
    direction

        z -> a z + (1 - a) sign(d),      a = exp(-|d| / w),

    is exact; between two samples there is one leg, or two where the joint turns back. Cut
    anywhere and gone on with from the state and the last travel, the scan is the same.

    Args:
        travel: Velocity times the time between two samples, u = v h.
        widths: w, the displacements over which the elements yield.
        before: Travel of the sample before the first; by default the joint had been moving as it
            does there.
        state: z at that sample; 0 by default.
    """
    travel = np.ascontiguousarray(travel, float)
    z = np.zeros(len(widths)) if state is None else np.array(state, float)
    out = np.empty((len(travel), len(widths)))
    if len(travel) == 0:
        return out, z
    start = float(travel[0] if before is None else before)
    if _kernel is not None:
        _kernel.dahl_scan(travel, np.array(widths, float), start, z, out)
        return out, z
    there, back, turns = legs(np.concatenate([[start], travel[:-1]]), travel)
    w = np.array(widths, float)
    grown = -np.expm1(-np.abs(there)[:, None] / w)
    decay, pull = 1.0 - grown, grown * np.sign(there)[:, None]
    grown = -np.expm1(-np.abs(back)[:, None] / w)
    decay[turns] *= 1.0 - grown
    pull[turns] = pull[turns] * (1.0 - grown) + grown * np.sign(back)[:, None]
    from scipy.linalg import solve_banded

    pull[0] += decay[0] * z
    for k in range(len(w)):  # one bidiagonal system each, solved in one pass
        bands = np.ones((2, len(travel)))
        bands[1, :-1] = -decay[1:, k]
        out[:, k] = solve_banded((1, 0), bands, pull[:, k], check_finite=False)
    return out, out[-1].copy()


def dahl_state(travel: Float[Array, " n"], width: float) -> Float[Array, " n"]:
    """z of one width at each sample of a motion, from z = 0."""
    return dahl_states(travel, (width,))[0][:, 0]


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
