"""Regression rows of one part of the data, for repeated passes with other weights.

Columns are filtered like the torque: rigid-body columns are computed from the filtered motion,
friction columns from the unfiltered velocity and low-passed afterwards (friction is nonlinear in
velocity, so it must be filtered after evaluation).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, TaufitError
from taufit.dynamics.batch import RegressorEngine
from taufit.model.columns import select_channels
from taufit.model.torque_model import TorqueModel
from taufit.regression.accumulate import Batch, accumulate_by_joint, columns_by_joint
from taufit.regression.information import Information
from taufit.regression.weights import Weights
from taufit.signals.samples import Samples
from taufit.terms import MOTION, needs, terms_in

BLOCK = 4096
# Samples from which normal equations are worth the test of what columns they can tell apart.
_NORMAL_EQUATIONS_FROM = 4096

# Gear torque for load-dependent friction: none, the measured torque, or the rigid-body torque of
# these parameters.
Load = Literal["measured"] | Float[Array, " p"] | None


class RegressionRows(ABC):
    """Rows y = W theta + e of every sample and joint, block by block.

    Attributes:
        names: Parameter names.
        torque: y; 0 where not kept.
        keep: Rows that count.
        run: Index of the run of each sample, nondecreasing.
        rate_hz: Sampling rate [Hz].
        stride: Thinning of samples that loses no information on columns.
    """

    names: tuple[str, ...]
    torque: Float[Array, "n j"]
    keep: Bool[Array, "n j"]
    run: Int[Array, " n"]
    rate_hz: float = 1.0
    stride: int = 1

    @abstractmethod
    def block(self, first: int, last: int, stride: int = 1) -> Float[Array, "n j p"]:
        """Regressor W of every stride-th of the samples first <= t < last."""

    @property
    def joints(self) -> int:
        return int(self.torque.shape[1])

    def __len__(self) -> int:
        return len(self.torque)

    def blocks(self, size: int = BLOCK) -> list[tuple[int, int]]:
        """Ranges of samples that fit in the cache, never across the end of a run."""
        ends = [0, *(np.flatnonzero(np.diff(self.run)) + 1).tolist(), len(self)]
        return [
            (first, min(first + size, stop))
            for start, stop in pairwise(ends)
            for first in range(start, stop, size)
        ]

    def active_columns(self, joint: int) -> Int[Array, " c"]:
        """Columns that can be nonzero in a joint's rows."""
        return np.arange(len(self.names))

    def information_by_joint(
        self,
        first: int,
        last: int,
        columns: Int[Array, " b"],
        weights: Weights | None = None,
    ) -> tuple[Information, ...]:
        """Information of samples first <= t < last about some columns, joint by joint.

        Whitened rows count for the first joint they mix.
        """
        names = tuple(self.names[c] for c in columns)
        out = [Information.empty(names) for _ in range(self.joints)]
        for a, b in self.blocks():
            a, b = max(a, first), min(b, last)
            if a >= b:
                continue
            rows, torque = self._apply_weights(a, b, columns, weights)
            for i in range(self.joints):
                keep = np.any(rows[:, i], axis=1) | (torque[:, i] != 0.0)
                out[i] = out[i].with_rows(rows[keep, i], torque[keep, i])
        count = self.keep[first:last].sum(axis=0)
        return tuple(
            Information(
                names,
                joint_information.factor,
                joint_information.target,
                joint_information.residual,
                int(n),
            )
            for joint_information, n in zip(out, count, strict=True)
        )

    def joint_columns(
        self, first: int, last: int, stride: int, columns: Int[Array, " b"]
    ) -> list[tuple[Int[Array, " c"], Float[Array, "c n"]]]:
        """Some columns of every stride-th sample, joint by joint, 0 where a row does not count.

        Entry i is (which, values): values[k] is column columns[which[k]] of joint i's rows; the
        others are zero.
        """
        block = self.block(first, last, stride)
        out = []
        for i in range(self.joints):
            indices = np.flatnonzero(np.isin(columns, self.active_columns(i)))
            keep = self.keep[first:last:stride, i, None]
            out.append((indices, np.ascontiguousarray((block[:, i][:, columns[indices]] * keep).T)))
        return out

    def _apply_weights(
        self, first: int, last: int, columns: Int[Array, " b"], weights: Weights | None
    ) -> tuple[Float[Array, "n j b"], Float[Array, "n j"]]:
        factor, whitening = self.factors(first, last, weights)
        rows = self.block(first, last)[..., columns] * factor[..., None]
        torque = self.torque[first:last] * factor
        if whitening is None:
            return rows, torque
        return whitening @ rows, (whitening @ torque[..., None])[..., 0]

    def factors(
        self, first: int, last: int, weights: Weights | None
    ) -> tuple[Float[Array, "n j"], Float[Array, "... j j"] | None]:
        """Factor of each row, 0 for those that do not count, and whitening between joints."""
        keep = self.keep[first:last]
        factor = keep.astype(float)
        if weights is None:
            return factor, None
        if weights.rows is not None:
            factor = factor * weights.rows(self)[first:last]
        if weights.whitener is None:
            return factor * weights.joint, None
        # A sample with missing joints is whitened by the covariance of the valid ones.
        patterns, pattern_index = np.unique(keep, axis=0, return_inverse=True)
        if len(patterns) == 1 and np.all(patterns):
            return factor, weights.whitener
        whiteners = np.stack([_partial_whitener(weights.whitener, valid) for valid in patterns])
        return factor, whiteners[pattern_index.ravel()]

    @cached_property
    def by_joint(self) -> tuple[Information, ...]:
        """Information of all rows about all columns, joint by joint."""
        return self.information_by_joint(0, len(self), np.arange(len(self.names)))

    def information(self, weights: Weights | None = None) -> Information:
        """Weighted information of all rows about all columns."""
        weights = weights or Weights.equal(self.joints)
        if weights.rows is None and weights.whitener is None:
            return sum_expression(self.by_joint, weights.joint)
        parts = self.information_by_joint(0, len(self), np.arange(len(self.names)), weights)
        return sum_expression(parts, np.ones(self.joints))

    def predict(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        """Predicted torque W theta of all samples."""
        out = np.empty_like(self.torque)
        for first, last in self.blocks():
            out[first:last] = self.block(first, last) @ theta
        return out

    def residuals(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        """Residuals y - W theta of all samples."""
        return np.asarray(self.torque - self.predict(theta))


class ArrayRows(RegressionRows):
    """Rows given as arrays."""

    def __init__(
        self,
        names: tuple[str, ...],
        rows: Float[Array, "n j p"],
        torque: Float[Array, "n j"],
        *,
        keep: Bool[Array, "n j"] | None = None,
        run: Int[Array, " n"] | None = None,
    ) -> None:
        self.names, self.rows, self.torque = names, rows, torque
        self.keep = np.ones(torque.shape, bool) if keep is None else keep
        self.run = np.zeros(len(torque), np.int64) if run is None else run
        bad = ~(np.isfinite(torque) & np.all(np.isfinite(rows), axis=-1)) & self.keep
        if np.any(bad):
            sample, joint = np.argwhere(bad)[0]
            raise RecordingError(
                f"the rows of joint {joint + 1} are not finite at sample {sample}. "
                "Leave such samples out of the fit."
            )

    def block(self, first: int, last: int, stride: int = 1) -> Float[Array, "n j p"]:
        return self.rows[first:last:stride]


class SampleRows(RegressionRows):
    """Rows of a torque model at samples.

    Args:
        model: Torque model with fixed shape parameters.
        samples: Motion and torque of one or several runs.
        load: Gear torque for load-dependent friction.
        dropped: Names of parameters fixed at zero: their columns are excluded.
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        *,
        load: Load = None,
        dropped: tuple[str, ...] = (),
    ) -> None:
        self.model, self.samples, self.load, self.dropped = model, samples, load, dropped
        self.columns = model.columns
        self.names = model.names
        self.keep, self.run, self.rate_hz = samples.keep, samples.run, samples.rate_hz
        _require_samples(model, samples)
        # Columns have no power above the cut-off; five samples per period of it suffice.
        self.stride = max(1, int(samples.rate_hz / (5.0 * samples.cutoff_hz)))
        self.torque = np.where(samples.keep, samples.torque, 0.0)
        self._is_dropped = np.isin(self.names, dropped)

    @cached_property
    def gear_load(self) -> Float[Array, "n j"] | None:
        """Gear torque of every sample; None if no term needs it."""
        if self.load is None or not needs(self.model.term_sum, "load"):
            return None
        if isinstance(self.load, str):
            return np.where(np.isfinite(self.samples.torque), self.samples.torque, 0.0)
        return self.rigid_torque(self.load)

    @cached_property
    def friction(self) -> Float[Array, "n j k"]:
        """Filtered drive columns of each motor."""
        return self.columns.drive_at(self.samples, load=self.gear_load)

    def block(self, first: int, last: int, stride: int = 1) -> Float[Array, "n j p"]:
        s, part = self.samples, slice(first, last, stride)
        position, velocity, acceleration = (
            np.ascontiguousarray(x[part]) for x in (s.position, s.velocity, s.acceleration)
        )
        out = self.columns.dense(position, velocity, acceleration, self.friction[part])
        if self.dropped:
            out[..., self._is_dropped] = 0.0
        return out

    def active_columns(self, joint: int) -> Int[Array, " c"]:
        return self.model.layout.active_columns(joint, self.model.robot.drives.coupling)

    def information_by_joint(
        self,
        first: int,
        last: int,
        columns: Int[Array, " b"],
        weights: Weights | None = None,
    ) -> tuple[Information, ...]:
        s, rows = self.samples, slice(first, last)
        names = tuple(self.names[c] for c in columns)
        included = np.flatnonzero(~self._is_dropped[columns])
        factor, whitening = self.factors(first, last, weights)
        batch = Batch(
            s.position[rows],
            s.velocity[rows],
            s.acceleration[rows],
            self.torque[rows],
            factor,
            whitening,
            self.friction[rows],
        )
        parts = accumulate_by_joint(
            self.model,
            batch,
            columns=columns[included],
            normal_equations=len(batch) >= _NORMAL_EQUATIONS_FROM,
        )
        count = self.keep[rows].sum(axis=0)
        return tuple(
            _with_count(pad_information(part, names, included), int(n))
            for part, n in zip(parts, count, strict=True)
        )

    def joint_columns(
        self, first: int, last: int, stride: int, columns: Int[Array, " b"]
    ) -> list[tuple[Int[Array, " c"], Float[Array, "c n"]]]:
        s, part = self.samples, slice(first, last, stride)
        included = np.flatnonzero(~self._is_dropped[columns])
        batch = Batch(
            s.position[part],
            s.velocity[part],
            s.acceleration[part],
            self.torque[part],
            self.keep[part].astype(float),
            None,
            self.friction[part],
        )
        active = columns_by_joint(self.model, batch, columns[included])
        return [(included[indices], values) for indices, values in active]

    def predict(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        included = np.where(self._is_dropped, 0.0, theta)
        term_torque = self.columns.term_torque(included, self.samples.acceleration, self.friction)
        return np.asarray(self.rigid_torque(included) + term_torque)

    def rigid_torque(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        """Rigid-body torque of the links [N m]."""
        s = self.samples
        links = np.ascontiguousarray(theta[self.model.layout.links], float)
        return _rigid_body_engine(self.model, links.tobytes()).inverse_dynamics(
            s.position, s.velocity, s.acceleration
        )


@lru_cache(maxsize=8)
def _rigid_body_engine(model: TorqueModel, parameters: bytes) -> RegressorEngine:
    """Engine with given link parameters; cached, since a pass uses the same at every part."""
    return RegressorEngine(model.robot, parameters=np.frombuffer(parameters))


@dataclass(frozen=True, slots=True, eq=False)
class RowBuilder:
    """Build the rows of a model at given samples."""

    model: TorqueModel
    load: Load = None
    dropped: tuple[str, ...] = ()

    def __call__(self, part: Samples) -> SampleRows:
        return SampleRows(self.model, part, load=self.load, dropped=self.dropped)


def add_information(
    a: tuple[Information, ...], b: tuple[Information, ...]
) -> tuple[Information, ...]:
    """Sum of the information of equal joints from two sets of rows."""
    return tuple(_sum((x, y), (1.0, 1.0)) for x, y in zip(a, b, strict=True))


def sum_expression(parts: tuple[Information, ...], weights: Float[Array, " j"]) -> Information:
    """Sum of independent information, part i with factor weights[i]."""
    return _sum(parts, tuple(float(w) for w in weights))


def _sum(parts: tuple[Information, ...], weights: tuple[float, ...]) -> Information:
    names = parts[0].names
    rows = np.concatenate([w * part.factor for w, part in zip(weights, parts, strict=True)])
    values = np.concatenate([w * part.target for w, part in zip(weights, parts, strict=True)])
    # A row without columns but with a target is part of the residual and must stay.
    nonzero_rows = np.any(rows, axis=1) | (values != 0.0)
    active = np.flatnonzero(np.any(rows, axis=0))
    merged = Information.from_rows(
        tuple(names[c] for c in active), rows[np.ix_(nonzero_rows, active)], values[nonzero_rows]
    )
    merged = pad_information(merged, names, active)
    return Information(
        names,
        merged.factor,
        merged.target,
        merged.residual + sum(w**2 * part.residual for w, part in zip(weights, parts, strict=True)),
        sum(part.count for part in parts),
    )


def _with_count(information: Information, count: int) -> Information:
    return Information(
        information.names, information.factor, information.target, information.residual, count
    )


def pad_information(
    information: Information, names: tuple[str, ...], columns: Int[Array, " c"]
) -> Information:
    """Extend information to more names, with zero information on the additional ones."""
    p = len(names)
    if len(columns) == p:
        return information
    factor = np.zeros((p, p))
    target = np.zeros(p)
    # Rows keep their place by leading column, so the factor stays upper triangular.
    factor[np.ix_(columns, columns)] = information.factor
    target[columns] = information.target
    return Information(names, factor, target, information.residual, information.count)


def _partial_whitener(
    whitener: Float[Array, "j j"], valid: Bool[Array, " j"]
) -> Float[Array, "j j"]:
    if np.all(valid):
        return whitener
    out = np.zeros_like(whitener)
    if np.any(valid):
        lower = np.linalg.inv(whitener)
        part = (lower @ lower.T)[np.ix_(valid, valid)]
        out[np.ix_(valid, valid)] = np.linalg.inv(np.linalg.cholesky(part))
    return out


def _require_samples(model: TorqueModel, samples: Samples) -> None:
    if samples.joints != model.robot.joints:
        raise TaufitError(
            f"the samples have {samples.joints} joints, robot {model.robot.name} has "
            f"{model.robot.joints}. Use the recording's own robot."
        )
    channels = model.term_sum.needs - {*MOTION}
    for channel in sorted(channels - select_channels(samples, channels).keys()):
        term = next(type(t).__name__ for t in terms_in(model.term_sum) if channel in t.needs)
        channel_text = (
            "joint temperatures" if channel == "temperature" else f"the channel {channel!r}"
        )
        raise TaufitError(
            f"{term} needs {channel_text}, and the recording has none. Record them, or choose a "
            f"model without {channel}."
        )
    for quantity in ("position", "velocity", "acceleration", "friction_velocity", "torque"):
        values = getattr(samples, quantity)
        bad = ~np.isfinite(values)
        if quantity == "torque":
            bad &= samples.keep
        if np.any(bad):
            sample, joint = np.argwhere(bad)[0]
            run = samples.names[int(samples.run[sample])]
            raise RecordingError(
                f"{run}: {quantity} of joint {joint + 1} is not finite at sample {sample}. "
                "Repair the recording or cut that segment out."
            )
