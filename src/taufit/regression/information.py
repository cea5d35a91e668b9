"""Information of a linear least-squares problem: sums that merge and suffice for every estimator.

For rows y = W theta + e (already weighted), with W = Q R:

    |y - W theta|^2 = |z - R theta|^2 + residual

for any theta, so (R, z, residual, count) determines the least-squares problem.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.names import RenamedAttribute

# Rows per QR: enough to make the triangle on top of them cheap, few enough for the cache.
_ROWS = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """The mergeable square-root form of a linear least-squares problem.

    Attributes:
        names: Parameter names.
        factor: R, upper triangular.
        target: z.
        residual: Sum of squares that no parameter values explain.
        count: Number of rows.
    """

    names: tuple[str, ...]
    factor: Float[Array, "p p"]
    target: Float[Array, " p"]
    residual: float
    count: int

    def __getstate__(self) -> tuple[Any, ...]:
        """Stored form: the nonzero rows and columns of R, packed."""
        nonzero = np.any(self.factor, axis=0) | (self.target != 0.0)
        if np.any(self.factor[~nonzero]) or np.any(self.factor[_strict_upper(len(nonzero)).T]):
            return self.names, None, self.factor, self.target, self.residual, self.count
        live = np.flatnonzero(nonzero)
        packed = self.factor[np.ix_(live, live)][~_strict_upper(len(live)).T]
        return self.names, live, packed, self.target[live], self.residual, self.count

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        names, live, factor, target, residual, count = state
        if live is not None:
            p, small = len(names), np.zeros((len(live), len(live)))
            small[~_strict_upper(len(live)).T] = factor
            factor, packed = np.zeros((p, p)), target
            factor[np.ix_(live, live)] = small
            target = np.zeros(p)
            target[live] = packed
        for name, value in zip(
            ("names", "factor", "target", "residual", "count"),
            (names, factor, target, residual, count),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    # Former names of 0.1, accepted with a warning until 0.3.
    nothing = RenamedAttribute("empty")
    of = RenamedAttribute("from_rows")
    unexplained = RenamedAttribute("minimum_cost")

    @classmethod
    def empty(cls, names: tuple[str, ...]) -> Information:
        p = len(names)
        return cls(names, np.zeros((p, p)), np.zeros(p), 0.0, 0)

    @classmethod
    def from_rows(
        cls, names: tuple[str, ...], rows: Float[Array, "r p"], values: Float[Array, " r"]
    ) -> Information:
        """Information of weighted rows W and right-hand side y."""
        return cls.empty(names).with_rows(rows, values)

    def with_rows(self, rows: Float[Array, "r p"], values: Float[Array, " r"]) -> Information:
        """Information with further rows: the QR of [R z; W y], a block of rows at a time."""
        p, r = len(self.names), len(values)
        span = min(r, max(_ROWS, 4 * p))
        # Columns contiguous, so that the QR works in place; rows 0..p hold [R z; 0 sqrt(residual)].
        stacked = np.zeros((p + 1, p + 1 + span))
        stacked[:p, :p], stacked[p, :p] = self.factor.T, self.target
        for first in range(0, r, max(span, 1)):
            part = slice(first, first + span)
            used = p + 1 + len(values[part])
            stacked[:p, p + 1 : used], stacked[p, p + 1 : used] = rows[part].T, values[part]
            stacked[:, used:] = 0.0
            triangularise(stacked)
        return Information(
            self.names,
            stacked[:p, :p].T.copy(),
            stacked[p, :p].copy(),
            self.residual + float(stacked[p, p] ** 2),
            self.count + r,
        )

    def __add__(self, other: Information) -> Information:
        if self.names != other.names:
            raise ValueError("only information on the same parameters adds up")
        merged = self.with_rows(other.factor, other.target)
        return Information(
            self.names,
            merged.factor,
            merged.target,
            merged.residual + other.residual,
            self.count + other.count,
        )

    def minimum_cost(self, columns: Int[Array, " b"]) -> float:
        """Smallest |y - W theta|^2 over the values of independent columns.

        `residual` alone is smaller where columns are dependent: their pivots are rounding errors
        and move an arbitrary part of it into `target`.
        """
        q, _ = np.linalg.qr(self.factor[:, columns])
        residual = self.target - q @ (q.T @ self.target)
        return self.residual + float(residual @ residual)

    def cost(self, theta: Float[Array, " p"]) -> float:
        """|y - W theta|^2."""
        return float(np.sum((self.target - self.factor @ theta) ** 2)) + self.residual


def triangularise(columns: Float[Array, "c m"]) -> None:
    """Replace a matrix A = columns.T by the factor R of its QR, in place.

    Afterwards columns.T[:c] is R and the other entries are undefined. Panels of eight columns:
    measured twice as fast as LAPACK's plain QR on a thousand rows of forty.
    """
    from taufit.core.lapack import dgeqrt

    c = len(columns)
    if columns.shape[1] == 0 or c == 0:
        return
    _, _, status = dgeqrt(min(8, *columns.shape), columns.T, overwrite_a=1)
    assert status == 0 and columns.flags.c_contiguous  # else LAPACK worked on a copy
    columns[:, :c][_strict_upper(c)] = 0.0


@lru_cache(maxsize=64)
def _strict_upper(c: int) -> Bool[Array, "c c"]:
    return np.triu(np.ones((c, c), dtype=bool), 1)
