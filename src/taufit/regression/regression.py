"""Least squares over any number of recordings: passes over parts and their sums.

A pass builds the rows of one part after the other and accumulates the information of each joint and
fold. Only columns of base parameters are used (W = W_b B, so nothing is lost): factors of dependent
columns would hold rounding errors in place of residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.dynamics import BaseParameters
from taufit.regression.information import Information
from taufit.regression.rows import RegressionRows, RowBuilder, add_information, sum_expression
from taufit.regression.weights import TorqueSums, Weights, joint_noise_covariance
from taufit.signals.sample_source import Add, Fold, SampleSource, fold_plan

# Largest number of residuals in a median.
_MEDIAN_SAMPLES = 200_000


class Regression:
    """Rows of a model over a source of samples.

    Attributes:
        names: Parameter names.
        base: Base parameters.
    """

    def __init__(
        self,
        source: SampleSource,
        row_builder: RowBuilder,
        base: BaseParameters,
    ) -> None:
        self._source, self._row_builder, self.base = source, row_builder, base
        self.names: tuple[str, ...] = base.parameter_names
        self.joints = source.joints
        if not np.any(source.summary.kept_rows):
            raise RecordingError(
                "no sample is left to fit: every one was set aside as standing still or an "
                "outlier. Record the arm in motion."
            )

    def map_parts(
        self, step: Callable[..., Any], arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """Results of step(rows) for all parts, in order; one pass."""
        return self._source.map_parts(_StepOnRows(self._row_builder, step), arguments)

    def total(self, step: Callable[..., Any], add: Add) -> Any:
        """Sum of step(rows) over all parts; one pass."""
        return self.totals(step, add, [range(len(self._source))])[0]

    def totals(
        self, step: Callable[..., Any], add: Add, groups: Sequence[Sequence[int]]
    ) -> list[Any]:
        """Sum over each of several groups of parts; one pass."""
        return self._source.group_totals(_StepOnRows(self._row_builder, step), add, groups)

    def reuse_if_close(self, name: Any, value: Any, is_close: Callable[[Any, Any], bool]) -> Any:
        """`value`, or a close one for which results are cached."""
        full_name = (name, self._row_builder.model, self._row_builder.dropped)
        return self._source.reuse_if_close(full_name, value, is_close)

    @cached_property
    def excerpt(self) -> RegressionRows:
        """Rows in memory: all of them, or enough to estimate the noise."""
        return self._row_builder(self._source.excerpt)

    @property
    def excerpt_is_all(self) -> bool:
        return self._source.excerpt_is_all

    @property
    def samples(self) -> int:
        return self._source.summary.samples

    @property
    def rate_hz(self) -> float:
        return self._source.rate_hz

    @property
    def runs(self) -> int:
        """Number of recordings, or of their parts that are processed separately."""
        return len(self._source)

    def _plan(self) -> list[list[Fold]]:
        return fold_plan(self._source)

    @cached_property
    def _by_fold(self) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        return self._pass(self._plan())

    @cached_property
    def _pooled(self) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        return self._pass([[Fold(0, -np.inf, np.inf)]] * len(self._plan()))

    def _pass(
        self, plan: list[list[Fold]]
    ) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """By-joint information of each fold on base columns, and the largest torque per joint."""
        if all(fold.is_whole_part for part_folds in plan for fold in part_folds):
            return self._pass_of_whole_parts([part_folds[0].index for part_folds in plan])
        folds: dict[int, tuple[Information, ...]] = {}
        largest = np.zeros(self.joints)
        for part_information, largest_in_part in self.map_parts(
            _FoldInformation(self.base.columns), plan
        ):
            largest = np.maximum(largest, largest_in_part)
            for index, information in part_information:
                fold_information = folds.get(index)
                folds[index] = (
                    information
                    if fold_information is None
                    else add_information(fold_information, information)
                )
        return tuple(folds[k] for k in sorted(folds)), largest

    def _pass_of_whole_parts(
        self, index: list[int]
    ) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """`_pass` where every part belongs to a single fold."""
        groups = [
            [k for k, fold_index in enumerate(index) if fold_index == fold]
            for fold in sorted(set(index))
        ]
        fold_totals = self.totals(
            _PartInformation(self.base.columns), _add_part_information, groups
        )
        largest = np.max([largest_torque for _, largest_torque in fold_totals], axis=0)
        return tuple(information for information, _ in fold_totals), largest

    @property
    def by_fold(self) -> tuple[tuple[Information, ...], ...]:
        """Information of each fold about the base columns, joint by joint."""
        return self._by_fold[0]

    @property
    def _latest_pass(self) -> tuple[tuple[tuple[Information, ...], ...], Float[Array, " j"]]:
        """The pass by folds if already made, else one without folds."""
        return self._by_fold if "_by_fold" in self.__dict__ else self._pooled

    def accumulate_by_fold(self) -> None:
        """Make the single pass by folds where runs are folds, so that no second one is needed."""
        if self.runs >= 3:
            _ = self._by_fold

    @cached_property
    def by_joint(self) -> tuple[Information, ...]:
        """Information of all rows about the base columns, joint by joint."""
        total, *other_folds = self._latest_pass[0]
        for fold in other_folds:
            total = add_information(total, fold)
        return total

    @cached_property
    def torque(self) -> TorqueSums:
        zero = np.zeros(self.base.rank)
        return TorqueSums(
            np.array([part.count for part in self.by_joint]),
            np.array([part.cost(zero) for part in self.by_joint]),
            self._latest_pass[1],
        )

    def base_information(self, weights: Weights) -> Information:
        """Weighted information of all rows about the base columns."""
        if weights.rows is None and weights.whitener is None:
            return sum_expression(self.by_joint, weights.joint)
        total = self.total(_WeightedInformation(self.base.columns, weights), add_information)
        return sum_expression(total, np.ones(self.joints))

    def information(self, weights: Weights) -> Information:
        """Weighted information of all rows about all parameters."""
        return expand_to_standard_parameters(self.base_information(weights), self.base)

    def folds(self, weights: Weights) -> tuple[Information, ...]:
        """Information of each fold about all parameters, with joint weights only."""
        return tuple(
            expand_to_standard_parameters(sum_expression(fold, weights.joint), self.base)
            for fold in self.by_fold
        )

    def residual_squares(self, theta: Float[Array, " p"]) -> Float[Array, " j"]:
        """Sum of squared residuals per joint, from the triangular factors."""
        base_values = self.base.mapping @ theta
        return np.array([part.cost(base_values) for part in self.by_joint])

    def residuals(self, theta: Float[Array, " p"]) -> ResidualSums:
        return ResidualSums(self, theta)


@dataclass(frozen=True, slots=True, eq=False)
class ResidualSums:
    """Residuals of a fit over all parts, as the weighting rules use them."""

    regression: Regression
    theta: Float[Array, " p"]

    @property
    def parameters_per_joint(self) -> float:
        """Base parameters per joint, to correct the variance for degrees of freedom."""
        return self.regression.base.rank / self.regression.joints

    @property
    def std(self) -> Float[Array, " j"]:
        count = self.regression.torque.count
        squares = self.regression.residual_squares(self.theta)
        return np.sqrt(squares / np.maximum(count - self.parameters_per_joint, 1.0))

    def covariance(self) -> Float[Array, "j j"]:
        joints = self.regression.joints
        products, count = np.zeros((joints, joints)), 0
        for square, n in self.regression.map_parts(_JointProducts(self.theta)):
            products, count = products + square, count + n
        return joint_noise_covariance(products, count, self.std, self.parameters_per_joint)

    def robust_scale(self) -> Float[Array, " j"]:
        stride = max(1, -(-int(self.regression.torque.count.max()) // _MEDIAN_SAMPLES))
        magnitudes = list(self.regression.map_parts(_ResidualMagnitudes(self.theta, stride)))
        scale = np.full(self.regression.joints, np.nan)
        for i in range(len(scale)):
            joint_magnitudes = np.concatenate([part[i] for part in magnitudes])
            if len(joint_magnitudes):
                scale[i] = 1.4826 * np.median(joint_magnitudes)
        return scale


def expand_to_standard_parameters(information: Information, base: BaseParameters) -> Information:
    """Convert information on base parameters to all parameters: R theta_b = (R B) theta."""
    p = len(base.parameter_names)
    factor, target = np.zeros((p, p)), np.zeros(p)
    factor[: base.rank] = information.factor @ base.mapping
    target[: base.rank] = information.target
    return Information(
        base.parameter_names, factor, target, information.residual, information.count
    )


@dataclass(frozen=True, slots=True, eq=False)
class _StepOnRows:
    row_builder: Callable[[Any], RegressionRows]
    step: Callable[..., Any]

    def __call__(self, part: Any, *arguments: Any) -> Any:
        return self.step(self.row_builder(part), *arguments)


@dataclass(frozen=True, slots=True, eq=False)
class _FoldInformation:
    columns: Int[Array, " b"]

    def __call__(
        self, rows: RegressionRows, folds: list[Fold]
    ) -> tuple[list[tuple[int, tuple[Information, ...]]], Float[Array, " j"]]:
        used = np.asarray(rows.keep.any(axis=1))
        fold_information = []
        for fold in folds:
            first, last = fold.index_range(used)
            if first < last:
                fold_information.append(
                    (fold.index, rows.information_by_joint(first, last, self.columns))
                )
        return fold_information, np.abs(rows.torque).max(axis=0, initial=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _PartInformation:
    columns: Int[Array, " b"]

    def __call__(self, rows: RegressionRows) -> tuple[tuple[Information, ...], Float[Array, " j"]]:
        largest_torque = np.abs(rows.torque).max(axis=0, initial=0.0)
        return rows.information_by_joint(0, len(rows), self.columns), largest_torque


def _add_part_information(
    a: tuple[tuple[Information, ...], Float[Array, " j"]],
    b: tuple[tuple[Information, ...], Float[Array, " j"]],
) -> tuple[tuple[Information, ...], Float[Array, " j"]]:
    return add_information(a[0], b[0]), np.maximum(a[1], b[1])


@dataclass(frozen=True, slots=True, eq=False)
class _WeightedInformation:
    columns: Int[Array, " b"]
    weights: Weights

    def __call__(self, rows: RegressionRows) -> tuple[Information, ...]:
        return rows.information_by_joint(0, len(rows), self.columns, self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _JointProducts:
    theta: Float[Array, " p"]

    def __call__(self, rows: RegressionRows) -> tuple[Float[Array, "j j"], int]:
        complete = np.all(rows.keep, axis=1)
        e = rows.residuals(self.theta)[complete]
        return e.T @ e, len(e)


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualMagnitudes:
    theta: Float[Array, " p"]
    stride: int
    small: ClassVar[bool] = False

    def __call__(self, rows: RegressionRows) -> list[Float[Array, " n"]]:
        magnitudes = np.abs(rows.residuals(self.theta))
        return [magnitudes[rows.keep[:, i], i][:: self.stride] for i in range(rows.joints)]


class RowsInMemory(Regression):
    """Regression on rows that are already in memory."""

    def __init__(self, rows: RegressionRows, base: BaseParameters, sections: int = 6) -> None:
        self.rows, self.base, self.sections = rows, base, sections
        self.names, self.joints = rows.names, rows.joints

    def map_parts(
        self, step: Callable[..., Any], arguments: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        yield step(self.rows) if arguments is None else step(self.rows, arguments[0])

    def total(self, step: Callable[..., Any], add: Add) -> Any:
        return step(self.rows)

    def totals(
        self, step: Callable[..., Any], add: Add, groups: Sequence[Sequence[int]]
    ) -> list[Any]:
        return [step(self.rows) for _ in groups]

    def reuse_if_close(self, name: Any, value: Any, is_close: Callable[[Any, Any], bool]) -> Any:
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
