"""Least squares over any number of recordings: passes over parts, and what they add up to.

A pass makes the rows of one part after the other and keeps a triangle per joint and fold. Only
columns of base parameters go in (W = W_b B, so nothing is lost): triangles of columns that depend
on others would hold rounding noise where residual belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import RecordingError
from taufit.dynamics import BaseParameters
from taufit.regression.information import Information
from taufit.regression.rows import RegressionRows, RowBuilder, add_information, weighted_sum
from taufit.regression.weights import TorqueSums, Weights, joint_noise_covariance
from taufit.signals.sample_source import Add, Fold, SampleSource, fold_plan

# Magnitudes a median is taken of, at most.
_MEDIAN_OF = 200_000


class Regression:
    """Rows of a model over a source of samples.

    Attributes:
        names: Of the parameters.
        base: Their base parameters.
    """

    def __init__(
        self,
        source: SampleSource,
        rows_of: RowBuilder,
        base: BaseParameters,
    ) -> None:
        self._source, self._rows_of, self.base = source, rows_of, base
        self.names: tuple[str, ...] = base.parameter_names
        self.joints = source.joints
        if not np.any(source.summary.kept_rows):
            raise RecordingError(
                "no sample is left to fit: every one was set aside as standing still or an "
                "outlier. Record the arm in motion."
            )

    def each(self, step: Callable[..., Any], given: Sequence[Any] | None = None) -> Iterator[Any]:
        """step(rows) of every part, in order; one pass."""
        return self._source.map_parts(_OnRows(self._rows_of, step), given)

    def total(self, step: Callable[..., Any], add: Add) -> Any:
        """The sum of step(rows) over all parts; one pass."""
        return self.totals(step, add, [range(len(self._source))])[0]

    def totals(
        self, step: Callable[..., Any], add: Add, groups: Sequence[Sequence[int]]
    ) -> list[Any]:
        """The sum over each of several groups of parts; one pass."""
        return self._source.totals(_OnRows(self._rows_of, step), add, groups)

    def settled(self, name: Any, value: Any, near: Callable[[Any, Any], bool]) -> Any:
        """`value`, or one near it that results are kept for."""
        own = (name, self._rows_of.model, self._rows_of.dropped)
        return self._source.reuse_if_close(own, value, near)

    @cached_property
    def excerpt(self) -> RegressionRows:
        """Rows in memory: all of them, or as many as are enough to know the noise by."""
        return self._rows_of(self._source.excerpt)

    @property
    def excerpt_is_all(self) -> bool:
        return self._source.excerpt_is_all

    @property
    def samples(self) -> int:
        return self._source.summary.samples

    @property
    def runs(self) -> int:
        """Recordings, or parts of them that were gone through apart."""
        return len(self._source)

    def _plan(self) -> list[list[Fold]]:
        return fold_plan(self._source)

    @cached_property
    def _by_fold(self) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        return self._pass(self._plan())

    @cached_property
    def _together(self) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        return self._pass([[Fold(0, -np.inf, np.inf)]] * len(self._plan()))

    def _pass(
        self, plan: list[list[Fold]]
    ) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """By-joint information of each fold on base columns, and the largest torque per joint."""
        if all(fold.is_whole_part for own in plan for fold in own):
            return self._pass_of_wholes([own[0].index for own in plan])
        folds: dict[int, tuple[Information, ...]] = {}
        largest = np.zeros(self.joints)
        for found, top in self.each(_FoldTriangles(self.base.columns), plan):
            largest = np.maximum(largest, top)
            for index, information in found:
                known = folds.get(index)
                folds[index] = information if known is None else add_information(known, information)
        return tuple(folds[k] for k in sorted(folds)), largest

    def _pass_of_wholes(
        self, index: list[int]
    ) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """The same where every part belongs to one fold as a whole."""
        groups = [[k for k, own in enumerate(index) if own == fold] for fold in sorted(set(index))]
        found = self.totals(_Whole(self.base.columns), _joined, groups)
        largest = np.max([top for _, top in found], axis=0)
        return tuple(information for information, _ in found), largest

    @property
    def by_fold(self) -> tuple[tuple[Information, ...], ...]:
        """What each fold's rows say about the base columns, joint by joint."""
        return self._by_fold[0]

    @property
    def _known(self) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """Whatever pass was made already; folds are kept apart only for who asks for them."""
        return self._by_fold if "_by_fold" in self.__dict__ else self._together

    def keep_runs_apart(self) -> None:
        """Make the one pass by folds where runs are folds: who asks for them needs no other."""
        if self.runs >= 3:
            _ = self._by_fold

    @cached_property
    def by_joint(self) -> tuple[Information, ...]:
        """What all rows say about the base columns, joint by joint."""
        total, *rest = self._known[0]
        for fold in rest:
            total = add_information(total, fold)
        return total

    @cached_property
    def torque(self) -> TorqueSums:
        zero = np.zeros(self.base.rank)
        return TorqueSums(
            np.array([part.count for part in self.by_joint]),
            np.array([part.cost(zero) for part in self.by_joint]),
            self._known[1],
        )

    def base_information(self, weights: Weights) -> Information:
        """What all rows say about the base columns, under weights."""
        if weights.rows is None and weights.whitener is None:
            return weighted_sum(self.by_joint, weights.joint)
        total = self.total(_Weighted(self.base.columns, weights), add_information)
        return weighted_sum(total, np.ones(self.joints))

    def information(self, weights: Weights) -> Information:
        """The same about all parameters."""
        return expand_to_standard_parameters(self.base_information(weights), self.base)

    def folds(self, weights: Weights) -> tuple[Information, ...]:
        """The same of each fold; with the joints' weights alone."""
        return tuple(
            expand_to_standard_parameters(weighted_sum(fold, weights.joint), self.base)
            for fold in self.by_fold
        )

    def squares(self, theta: Float[Array, " p"]) -> Float[Array, " j"]:
        """Sum of squared residuals per joint, from the triangles."""
        own = self.base.mapping @ theta
        return np.array([part.cost(own) for part in self.by_joint])

    def residuals(self, theta: Float[Array, " p"]) -> ResidualSums:
        return ResidualSums(self, theta)


@dataclass(frozen=True, slots=True, eq=False)
class ResidualSums:
    """Residuals of a fit over all parts, as weights want to know them."""

    regression: Regression
    theta: Float[Array, " p"]

    @property
    def freedom(self) -> float:
        """Parameters per joint."""
        return self.regression.base.rank / self.regression.joints

    @property
    def std(self) -> Float[Array, " j"]:
        count = self.regression.torque.count
        squares = self.regression.squares(self.theta)
        return np.sqrt(squares / np.maximum(count - self.freedom, 1.0))

    def covariance(self) -> Float[Array, "j j"]:
        joints = self.regression.joints
        products, count = np.zeros((joints, joints)), 0
        for square, n in self.regression.each(_Products(self.theta)):
            products, count = products + square, count + n
        return joint_noise_covariance(products, count, self.std, self.freedom)

    def robust_scale(self) -> Float[Array, " j"]:
        every = max(1, -(-int(self.regression.torque.count.max()) // _MEDIAN_OF))
        found = list(self.regression.each(_Magnitudes(self.theta, every)))
        scale = np.full(self.regression.joints, np.nan)
        for i in range(len(scale)):
            own = np.concatenate([part[i] for part in found])
            if len(own):
                scale[i] = 1.4826 * np.median(own)
        return scale


def expand_to_standard_parameters(information: Information, base: BaseParameters) -> Information:
    """Information on base parameters as information on all: R theta_b = (R B) theta."""
    p = len(base.parameter_names)
    factor, target = np.zeros((p, p)), np.zeros(p)
    factor[: base.rank] = information.factor @ base.mapping
    target[: base.rank] = information.target
    return Information(
        base.parameter_names, factor, target, information.residual, information.count
    )


@dataclass(frozen=True, slots=True, eq=False)
class _OnRows:
    rows_of: Callable[[Any], RegressionRows]
    step: Callable[..., Any]

    def __call__(self, part: Any, *given: Any) -> Any:
        return self.step(self.rows_of(part), *given)


@dataclass(frozen=True, slots=True, eq=False)
class _FoldTriangles:
    columns: Int[Array, " b"]

    def __call__(
        self, rows: RegressionRows, folds: list[Fold]
    ) -> tuple[list[tuple[int, tuple[Information, ...]]], Float[Array, " j"]]:
        used = np.asarray(rows.keep.any(axis=1))
        found = []
        for fold in folds:
            first, last = fold.index_range(used)
            if first < last:
                found.append((fold.index, rows.triangles(first, last, self.columns)))
        return found, np.abs(rows.torque).max(axis=0, initial=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    columns: Int[Array, " b"]

    def __call__(self, rows: RegressionRows) -> tuple[tuple[Information, ...], Float[Array, " j"]]:
        top = np.abs(rows.torque).max(axis=0, initial=0.0)
        return rows.triangles(0, len(rows), self.columns), top


def _joined(
    a: tuple[tuple[Information, ...], Float[Array, " j"]],
    b: tuple[tuple[Information, ...], Float[Array, " j"]],
) -> tuple[tuple[Information, ...], Float[Array, " j"]]:
    return add_information(a[0], b[0]), np.maximum(a[1], b[1])


@dataclass(frozen=True, slots=True, eq=False)
class _Weighted:
    columns: Int[Array, " b"]
    weights: Weights

    def __call__(self, rows: RegressionRows) -> tuple[Information, ...]:
        return rows.triangles(0, len(rows), self.columns, self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Products:
    theta: Float[Array, " p"]

    def __call__(self, rows: RegressionRows) -> tuple[Float[Array, "j j"], int]:
        whole = np.all(rows.keep, axis=1)
        e = rows.residuals(self.theta)[whole]
        return e.T @ e, len(e)


@dataclass(frozen=True, slots=True, eq=False)
class _Magnitudes:
    theta: Float[Array, " p"]
    every: int
    small: ClassVar[bool] = False

    def __call__(self, rows: RegressionRows) -> list[Float[Array, " n"]]:
        each = np.abs(rows.residuals(self.theta))
        return [each[rows.keep[:, i], i][:: self.every] for i in range(rows.joints)]


class RowsInMemory(Regression):
    """The same over rows that are in memory already."""

    def __init__(self, rows: RegressionRows, base: BaseParameters, sections: int = 6) -> None:
        self.rows, self.base, self.sections = rows, base, sections
        self.names, self.joints = rows.names, rows.joints

    def each(self, step: Callable[..., Any], given: Sequence[Any] | None = None) -> Iterator[Any]:
        yield step(self.rows) if given is None else step(self.rows, given[0])

    def total(self, step: Callable[..., Any], add: Add) -> Any:
        return step(self.rows)

    def totals(
        self, step: Callable[..., Any], add: Add, groups: Sequence[Sequence[int]]
    ) -> list[Any]:
        return [step(self.rows) for _ in groups]

    def settled(self, name: Any, value: Any, near: Callable[[Any, Any], bool]) -> Any:
        return value

    @property
    def excerpt(self) -> RegressionRows:
        return self.rows

    @property
    def excerpt_is_all(self) -> bool:
        return True

    @property
    def samples(self) -> int:
        return len(self.rows)

    @property
    def runs(self) -> int:
        return 1

    def _plan(self) -> list[list[Fold]]:
        used = float(np.count_nonzero(self.rows.keep.any(axis=1)))
        edges = np.linspace(0.0, used, self.sections + 1)
        edges[0], edges[-1] = -np.inf, np.inf
        return [[Fold(k, edges[k], edges[k + 1]) for k in range(self.sections)]]
