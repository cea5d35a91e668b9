"""What data say about linear parameters, compressed: it adds up, and every estimator needs no more.

For rows y = W theta + e (already weighted), with W = Q R:

    |y - W theta|^2 = |z - R theta|^2 + residual

whatever theta is, so (R, z, residual, count) is all a least-squares problem has to remember.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """The mergeable square-root form of a linear least-squares problem.

    Attributes:
        names: Of the parameters.
        factor: R, upper triangular.
        target: z.
        residual: Sum of squares no parameter can explain.
        count: Rows seen.
    """

    names: tuple[str, ...]
    factor: Float[Array, "p p"]
    target: Float[Array, " p"]
    residual: float
    count: int

    @classmethod
    def nothing(cls, names: tuple[str, ...]) -> Information:
        p = len(names)
        return cls(names, np.zeros((p, p)), np.zeros(p), 0.0, 0)

    @classmethod
    def of(
        cls, names: tuple[str, ...], rows: Float[Array, "r p"], values: Float[Array, " r"]
    ) -> Information:
        """From weighted rows W and their right-hand side y."""
        return cls.nothing(names).with_rows(rows, values)

    def with_rows(self, rows: Float[Array, "r p"], values: Float[Array, " r"]) -> Information:
        """The same with more rows: one QR of [R z; W y]."""
        p = len(self.names)
        stacked = np.empty((p + len(values), p + 1))
        stacked[:p, :p], stacked[:p, p] = self.factor, self.target
        stacked[p:, :p], stacked[p:, p] = rows, values
        upper = np.linalg.qr(stacked, mode="r")
        padded = np.zeros((p + 1, p + 1))
        padded[: len(upper)] = upper
        return Information(
            self.names,
            padded[:p, :p],
            padded[:p, p],
            self.residual + float(padded[p, p] ** 2),
            self.count + len(values),
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

    def cost(self, theta: Float[Array, " p"]) -> float:
        """|y - W theta|^2."""
        return float(np.sum((self.target - self.factor @ theta) ** 2)) + self.residual
