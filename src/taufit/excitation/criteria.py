"""Optimality criteria of a motion, as functions of its information matrix.

M = W'W/N is the mean over samples of the products of the weighted base regressor. Each criterion is
a smooth function of M to be minimised, with its exact derivative with respect to M.

A low condition number is not information: it can be reached by shrinking large columns. Criteria
"a" and "d" minimise standard deviations instead.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass

Gradient = Float[Array, "b b"]


@runtime_checkable
class Criterion(Protocol):
    """Function of the information matrix to be minimised."""

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        """Value and derivative: d value = sum(gradient * dM)."""
        ...


def _eigen(matrix: Float[Array, "b b"]) -> tuple[Float[Array, " b"], Float[Array, "b b"]]:
    values, vectors = np.linalg.eigh(matrix)
    # Unexcited directions get a finite value, so that a search can leave them.
    return np.maximum(values, 1e-14 * values[-1]), vectors


def _inverse(matrix: Float[Array, "b b"]) -> tuple[Float[Array, "b b"], float]:
    """M^-1 and ln det M; finite also for unexcited directions."""
    from scipy.linalg import lapack

    root = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    factor, status = lapack.dpotrf(matrix * np.outer(root, root), lower=1)
    diagonal = np.diag(factor)
    if status == 0 and diagonal.min() > 1e-5:
        half, _ = lapack.dpotri(factor, lower=1)
        lower = np.tril(half)
        inverse = (lower + np.tril(half, -1).T) * np.outer(root, root)
        return inverse, float(2.0 * np.sum(np.log(diagonal)) - 2.0 * np.sum(np.log(root)))
    values, vectors = _eigen(matrix)
    return (vectors / values) @ vectors.T, float(np.sum(np.log(values)))


def condition_number(matrix: Float[Array, "b b"]) -> float:
    """Condition number of the regressor, the square root of that of M."""
    values = np.linalg.eigvalsh(matrix)
    return float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else np.inf


def scale_to_unit_columns(matrix: Float[Array, "b b"]) -> Float[Array, "b b"]:
    """M with every column of the regressor scaled to unit length."""
    inverse = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return matrix * np.outer(inverse, inverse)


def log_determinant(matrix: Float[Array, "b b"]) -> float:
    """ln det M; -inf if a parameter is not excited."""
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else -np.inf


@dataclass(frozen=True, slots=True)
class ConditionCriterion:
    """ln of the condition number, smoothed: (ln |lambda|_P + ln |1/lambda|_P)/2.

    Attributes:
        norm: P. Larger values are closer to the true condition number and less smooth.
        columns_scaled: Scale the columns of the regressor to unit length first.
    """

    norm: float = 32.0
    columns_scaled: bool = False

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        if self.columns_scaled:
            root = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
            unit = matrix * np.outer(root, root)
            value, inner = self._evaluate_unscaled(unit)
            gradient = inner * np.outer(root, root)
            # d root_i = -root_i^3/2 dM_ii, and unit_ik has root_i in row and column i.
            gradient[np.diag_indices(len(matrix))] -= np.sum(inner * unit, 1) * root**2
            return value, gradient
        return self._evaluate_unscaled(matrix)

    def _evaluate_unscaled(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        values, vectors = _eigen(matrix)
        half = 0.5 * self.norm
        up, down = values / values[-1], values[0] / values
        sum_up, sum_down = np.sum(up**half), np.sum(down**half)
        value = 0.5 * (
            np.log(values[-1]) + np.log(sum_up) / half - np.log(values[0]) + np.log(sum_down) / half
        )
        slope = 0.5 * (up**half / sum_up - down**half / sum_down) / values
        return float(value), (vectors * slope) @ vectors.T


@dataclass(frozen=True, slots=True)
class DOptimal:
    """-ln det M: volume of the confidence ellipsoid, independent of units."""

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        inverse, log_det = _inverse(matrix)
        return -log_det, -inverse


@dataclass(frozen=True, slots=True, eq=False)
class AOptimal:
    """ln of the mean variance, in units of `scale`.

    Attributes:
        scale: Unit of each parameter's standard deviation; None: ones.
        focus: Indices of the parameters of interest, the others being nuisance; None: all.
    """

    scale: Float[Array, " b"] | None = None
    focus: tuple[int, ...] | None = None

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        inverse, _ = _inverse(matrix)
        weight = np.ones(len(matrix)) if self.scale is None else self.scale**-2.0
        if self.focus is not None:
            is_focus = np.zeros(len(matrix))
            is_focus[list(self.focus)] = 1.0
            weight = weight * is_focus
        total = float(np.sum(weight * np.diag(inverse)))
        gradient = -(inverse * weight) @ inverse / total
        return float(np.log(total)), gradient


@dataclass(frozen=True, slots=True)
class ColumnNormProduct:
    """-sum of ln column norms: upper bound on the information, quick and coarse (paper F)."""

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        norms = np.maximum(np.diag(matrix), 1e-300)
        return float(-0.5 * np.sum(np.log(norms))), np.diag(-0.5 / norms)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedBlocks:
    """10 cond(J) + 5 cond(J_inertia) + cond(J_moment) + cond(J_friction), as in paper U.

    Attributes:
        blocks: Parameter indices of inertias, first moments (and masses), joint terms.
        norm: Norm P of the smoothed condition number.
    """

    blocks: tuple[tuple[int, ...], ...]
    norm: float = 32.0

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        smooth = ConditionCriterion(self.norm)
        everything = tuple(range(len(matrix)))
        total, gradient = 0.0, np.zeros_like(matrix)
        for weight, block in zip((10.0, 5.0, 1.0, 1.0), (everything, *self.blocks), strict=True):
            if len(block) < 2:
                continue
            index = np.ix_(block, block)
            value, inner = smooth.evaluate(matrix[index])
            condition = np.exp(value)
            total += weight * condition
            gradient[index] += weight * condition * inner
        return float(np.log(total)), gradient / total


@dataclass(frozen=True, slots=True, eq=False)
class ConditionAbove:
    """Smoothed condition number plus a penalty for ln det M below `floor`.

    Second stage of paper F: minimise cond while ln det stays at least that of stage one.

    Attributes:
        floor: Minimum ln det M.
        norm: Norm P of the smoothed condition number.
    """

    floor: float
    norm: float = 32.0

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        value, gradient = ConditionCriterion(self.norm).evaluate(matrix)
        information, slope = DOptimal().evaluate(matrix)
        shortfall = max(0.0, self.floor + information)
        return value + 0.5 * shortfall**2, gradient + shortfall * slope


@dataclass(frozen=True, slots=True, eq=False)
class ConditionLimited:
    """Criterion with a penalty on a large column-scaled condition number.

    Attributes:
        criterion: Criterion to be minimised.
        ceiling: Condition number of the regressor with unit columns from which the penalty grows.
    """

    criterion: Criterion
    ceiling: float

    def evaluate(self, matrix: Float[Array, "b b"]) -> tuple[float, Gradient]:
        value, gradient = self.criterion.evaluate(matrix)
        if condition_number(scale_to_unit_columns(matrix)) < 0.7 * self.ceiling:
            return value, gradient
        height, slope = ConditionCriterion(32.0, columns_scaled=True).evaluate(matrix)
        excess = max(0.0, height - float(np.log(self.ceiling)))
        return value + 10.0 * excess**2, gradient + 20.0 * excess * slope


CRITERIA = (
    "a",
    "d",
    "cond",
    "cond_scaled",
    "product",
    "three_stage",
    "weighted_blocks",
    "worst_case",
)
