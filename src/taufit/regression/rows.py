"""Regression rows that can be gone through again with other weights: the source of information.

Columns are filtered as the torque was: rigid-body columns come from the filtered motion, friction
columns from the unfiltered velocity and are low-passed afterwards (friction is not linear in
velocity, so filtering it is not the same as filtering velocity).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from itertools import pairwise

import numpy as np

from taufit.arrays import Array, Bool, Float, Int
from taufit.dynamics import regressor
from taufit.errors import RecordingError, TaufitError
from taufit.model.columns import filtered_friction
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.regression.weights import Weights
from taufit.signals.samples import Samples

BLOCK = 4096


class Rows(ABC):
    """Rows y = W theta + e of every sample and joint, block by block.

    Attributes:
        names: Of the parameters.
        torque: y; 0 where not kept.
        keep: Which rows count.
        run: Index of the run of each sample, nondecreasing.
    """

    names: tuple[str, ...]
    torque: Float[Array, "n j"]
    keep: Bool[Array, "n j"]
    run: Int[Array, " n"]

    @abstractmethod
    def block(self, first: int, last: int) -> Float[Array, "n j p"]:
        """W of samples first <= t < last."""

    @property
    def joints(self) -> int:
        return self.torque.shape[1]

    def __len__(self) -> int:
        return len(self.torque)

    def blocks(self) -> list[tuple[int, int]]:
        """Spans of samples that fit in the cache, never across the end of a run."""
        ends = [0, *(np.flatnonzero(np.diff(self.run)) + 1).tolist(), len(self)]
        return [
            (first, min(first + BLOCK, stop))
            for start, stop in pairwise(ends)
            for first in range(start, stop, BLOCK)
        ]

    def live(self, joint: int) -> Int[Array, " c"]:
        """Columns that can be nonzero in a joint's rows."""
        return np.arange(len(self.names))

    @cached_property
    def by_joint(self) -> tuple[Information, ...]:
        return self._joint_information(self.blocks())

    def _joint_information(self, spans: list[tuple[int, int]]) -> tuple[Information, ...]:
        totals = []
        live = [self.live(i) for i in range(self.joints)]
        for i in range(self.joints):
            totals.append(Information.nothing(tuple(self.names[c] for c in live[i])))
        for first, last in spans:
            rows = self.block(first, last)
            for i in range(self.joints):
                keep = self.keep[first:last, i]
                if np.any(keep):
                    part = rows[keep, i][:, live[i]]
                    totals[i] = totals[i].with_rows(part, self.torque[first:last, i][keep])
        return tuple(
            _widened(total, self.names, columns)
            for total, columns in zip(totals, live, strict=True)
        )

    def information(self, weights: Weights | None = None) -> Information:
        """What all rows say together, under weights."""
        weights = weights or Weights.one(self.joints)
        if weights.rows is None and weights.whitener is None:
            return weighted_sum(self.by_joint, weights.joint)
        total = Information.nothing(self.names)
        for first, last in self.blocks():
            rows, torque = self.weighted(first, last, weights)
            p = len(self.names)
            keep = np.any(rows.reshape(-1, p), axis=1)
            total = total.with_rows(rows.reshape(-1, p)[keep], torque.reshape(-1)[keep])
        count = int(self.keep.sum())
        return Information(self.names, total.factor, total.target, total.residual, count)

    def weighted(
        self, first: int, last: int, weights: Weights
    ) -> tuple[Float[Array, "n j p"], Float[Array, "n j"]]:
        """Rows and torque of samples first <= t < last as they enter the sum of squares."""
        rows, torque = self.block(first, last), self.torque[first:last]
        keep = self.keep[first:last]
        factor = keep.astype(float)
        if weights.rows is not None:
            factor = factor * weights.rows[first:last]
        if weights.whitener is None:
            factor = factor * weights.joint
            return rows * factor[..., None], torque * factor
        # A sample with missing joints is whitened by the covariance of those that are there.
        rows, torque = rows * factor[..., None], torque * factor
        out, right = np.empty_like(rows), np.empty_like(torque)
        patterns, which = np.unique(keep, axis=0, return_inverse=True)
        for k, there in enumerate(patterns):
            whitener = _whitener_of(weights.whitener, there)
            at = which.ravel() == k
            out[at] = whitener @ rows[at]
            right[at] = torque[at] @ whitener.T
        return out, right

    def residuals(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        """y - W theta, everywhere."""
        out = np.empty_like(self.torque)
        for first, last in self.blocks():
            out[first:last] = self.torque[first:last] - self.block(first, last) @ theta
        return out

    def folds(self, count: int = 5) -> tuple[tuple[Information, ...], ...]:
        """By-joint information of parts to be left out in turn: the runs, or stretches of one."""
        spans = self.blocks()
        runs = np.unique(self.run)
        if len(runs) >= 3:
            parts = [[s for s in spans if self.run[s[0]] == run] for run in runs]
        else:
            cuts = np.linspace(0, len(self), count + 1).astype(int)
            parts = [
                [(max(a, lo), min(b, hi)) for a, b in spans if max(a, lo) < min(b, hi)]
                for lo, hi in pairwise(cuts.tolist())
            ]
        return tuple(self._joint_information(part) for part in parts)


class ArrayRows(Rows):
    """Rows that are at hand as arrays."""

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

    def block(self, first: int, last: int) -> Float[Array, "n j p"]:
        return self.rows[first:last]


class SampleRows(Rows):
    """Rows of a torque model at samples.

    Args:
        model: What explains the torque; its shape is used as it is.
        samples: Motion and torque.
        load: Rigid-body torque for load-dependent friction [N m].
        dropped: Names of parameters held at zero: their columns are left out.
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        *,
        load: Float[Array, "n j"] | None = None,
        dropped: tuple[str, ...] = (),
    ) -> None:
        self.model, self.samples, self.load, self.dropped = model, samples, load, dropped
        self.names = model.names
        self.keep, self.run = samples.keep, samples.run
        _check_samples(model, samples)
        self.torque = np.where(samples.keep, samples.torque, 0.0)
        self._gone = np.isin(self.names, dropped)

    @cached_property
    def friction(self) -> Float[Array, "n j k"]:
        """Filtered friction columns of each motor's own terms."""
        return filtered_friction(self.model, self.samples, load=self.load)

    def block(self, first: int, last: int) -> Float[Array, "n j p"]:
        s, model, part = self.samples, self.model, slice(first, last)
        n, joints = last - first, model.robot.joints
        parts = [regressor(model.robot, s.position[part], s.velocity[part], s.acceleration[part])]
        if model.rotor_inertia:
            parts.append(model.rotor_columns(s.acceleration[part]))
        parts.append(model.to_joints(self.friction[part]))
        if model.offset:
            parts.append(np.broadcast_to(np.eye(joints), (n, joints, joints)))
        out = np.concatenate(parts, -1)
        if self.dropped:
            out[..., self._gone] = 0.0
        return out

    def live(self, joint: int) -> Int[Array, " c"]:
        return self.model.layout.live_columns(joint, self.model.robot.drives.coupling)

    def rigid(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        """Torque of the links alone."""
        s, links = self.samples, self.model.layout.links
        out = np.empty_like(self.torque)
        for first, last in self.blocks():
            part = slice(first, last)
            out[part] = (
                regressor(
                    self.model.robot, s.position[part], s.velocity[part], s.acceleration[part]
                )
                @ theta[links]
            )
        return out


def weighted_sum(parts: tuple[Information, ...], weights: Float[Array, " j"]) -> Information:
    """The sum of independent information, part i counted with factor weights[i]."""
    names = parts[0].names
    factors = [w * part.factor for w, part in zip(weights, parts, strict=True)]
    targets = [w * part.target for w, part in zip(weights, parts, strict=True)]
    merged = Information.of(names, np.concatenate(factors), np.concatenate(targets))
    return Information(
        names,
        merged.factor,
        merged.target,
        merged.residual
        + sum(float(w) ** 2 * part.residual for w, part in zip(weights, parts, strict=True)),
        sum(part.count for part in parts),
    )


def _widened(
    information: Information, names: tuple[str, ...], columns: Int[Array, " c"]
) -> Information:
    """The same on more names, of which it says nothing."""
    p = len(names)
    if len(columns) == p:
        return information
    factor = np.zeros((p, p))
    target = np.zeros(p)
    # Rows keep their place by leading column, so the factor stays upper triangular.
    factor[np.ix_(columns, columns)] = information.factor
    target[columns] = information.target
    return Information(names, factor, target, information.residual, information.count)


def _whitener_of(whitener: Float[Array, "j j"], there: Bool[Array, " j"]) -> Float[Array, "j j"]:
    if np.all(there):
        return whitener
    out = np.zeros_like(whitener)
    if np.any(there):
        lower = np.linalg.inv(whitener)
        part = (lower @ lower.T)[np.ix_(there, there)]
        out[np.ix_(there, there)] = np.linalg.inv(np.linalg.cholesky(part))
    return out


def _check_samples(model: TorqueModel, samples: Samples) -> None:
    if samples.joints != model.robot.joints:
        raise TaufitError(
            f"the samples have {samples.joints} joints, robot {model.robot.name} has "
            f"{model.robot.joints}. Use the recording's own robot."
        )
    warm = model.friction is not None and model.friction.uses_temperature
    if warm and samples.temperature is None:
        raise TaufitError(
            f"friction model {type(model.friction).__name__} needs joint temperatures, and the "
            "recording has none. Record them, or choose a model without temperature."
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
                "Repair the recording or cut that stretch out."
            )
    if not np.any(samples.keep):
        raise RecordingError(
            "no sample is left to fit: every one was set aside as standing still or an outlier. "
            "Record the arm in motion."
        )
