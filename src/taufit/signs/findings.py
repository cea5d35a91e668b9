"""Result of a sign search, with its certainty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.signals import Samples
from taufit.signs.samples import with_signs


@dataclass(frozen=True, slots=True)
class SignedSegment:
    """One segment of one joint with its recovered sign.

    Attributes:
        joint: Joint index, from 0.
        run: Run index, from 0.
        t0, t1: Start and end within the run [s], interpolated at zero crossings.
        first, last: First and last sample in the whole set, inclusive.
        sign: +1 or -1.
        margin: Extra cost of the best choice with this sign reversed, in noise variances; infinite
            if above the search radius.
        ambiguous: Whether the sign is uncertain.
        reason: Reason for the ambiguity, else "".
    """

    joint: int
    run: int
    t0: float
    t1: float
    first: int
    last: int
    sign: int
    margin: float
    ambiguous: bool
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, joints and runs from 1."""
        return {
            "joint": self.joint + 1,
            "run": self.run + 1,
            "t0": self.t0,
            "t1": self.t1,
            "sign": self.sign,
            "margin": self.margin if np.isfinite(self.margin) else None,
            "ambiguous": self.ambiguous,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class KnownSignInterval:
    """Interval in which the sign of a joint's torque is certain and constant.

    Attributes:
        joint: Joint index, from 0.
        run: Run index, from 0.
        t0, t1: Times of first and last sample within the run [s].
        sign: +1 or -1.
    """

    joint: int
    run: int
    t0: float
    t1: float
    sign: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, joints and runs from 1."""
        return {
            "joint": self.joint + 1,
            "run": self.run + 1,
            "t0": self.t0,
            "t1": self.t1,
            "sign": self.sign,
        }


@dataclass(frozen=True, slots=True, eq=False)
class RecoveredSigns:
    """Torque signs recovered from magnitudes.

    Attributes:
        segments: Segments with their signs, sorted by joint, then time.
        sample_sign: Sign of every sample, +1 or -1.
        sample_sure: Samples with a certain sign: those of segments that are not ambiguous, and
            others whose magnitude the model explains with only one sign.
        samples: Input samples with signed torque; samples with uncertain motion (ends of runs
            where derivatives have not settled) are no longer used.
        expected: Expected signed torque of every sample, before any low-pass: near zero, where a
            magnitude does not determine its sign, both signs count with their probability [N m].
        certified: Whether it is proven that no other signs fit better.
        chi2_per_dof: chi2 of the residual per degree of freedom: 1 for a correct model.
        joint_chi2: chi2 per degree of freedom of each joint.
        noise: Standard deviation of the residual per joint [N m].
        confident: Whether the signs are reliable as a whole.
        warnings: Uncertainties and remedies.
        nodes: Number of partial sign vectors visited.
        method: "exact" or "tree".
        values: Least-squares parameters of the search (not physically consistent).
        recorded: Per joint, whether the sign was recorded.
        predicted: Torque predicted by `values` [N m].
        has_sign: Samples whose sign was recorded, or given and clear of the noise.
        noisy: Per joint, whether noise exceeds its torque.
        joint_confident: Per joint, whether its signs are reliable.
    """

    segments: tuple[SignedSegment, ...]
    sample_sign: Int[Array, "n j"]
    sample_sure: Bool[Array, "n j"]
    samples: Samples
    expected: Float[Array, "n j"]
    certified: bool
    chi2_per_dof: float
    joint_chi2: Float[Array, " j"]
    noise: Float[Array, " j"]
    confident: bool
    warnings: tuple[str, ...]
    nodes: int
    method: str
    values: Float[Array, " p"]
    recorded: Bool[Array, " j"]
    predicted: Float[Array, "n j"]
    has_sign: Bool[Array, "n j"]
    noisy: Bool[Array, " j"]
    joint_confident: Bool[Array, " j"]

    @property
    def fit_samples(self) -> Samples:
        """Samples for a fit: torque is `expected`, which does not bias the model near zero."""
        return with_signs(replace(self.samples, signed=self.recorded), self.expected)

    @property
    def signs(self) -> Int[Array, " s"]:
        return np.array([segment.sign for segment in self.segments], np.int64)

    @property
    def ambiguous(self) -> Bool[Array, " s"]:
        return np.array([segment.ambiguous for segment in self.segments], bool)

    def to_dict(self) -> dict[str, Any]:
        """JSON data of `taufit fit --torque-signs unknown --json`."""
        return {
            "segments": [segment.to_dict() for segment in self.segments],
            "signs": self.signs.tolist(),
            "ambiguous": self.ambiguous.tolist(),
            "certified": self.certified,
            "chi2_per_dof": self.chi2_per_dof,
            "signs_confident": self.confident,
            "confident": self.joint_confident.tolist(),
            "joint_chi2": self.joint_chi2.tolist(),
            "sure": [interval.to_dict() for interval in self.sure_intervals()],
        }

    def sure_intervals(self) -> tuple[KnownSignInterval, ...]:
        """Intervals without a gap in which every sample of a joint has the same certain sign."""
        run, time, intervals = self.samples.run, self.samples.time, []
        starts_run = np.diff(run, prepend=run[:1]) != 0
        for joint in range(self.samples.joints):
            value = np.where(self.sample_sure[:, joint], self.sample_sign[:, joint], 0)
            starts = np.flatnonzero((np.diff(value, prepend=2) != 0) | starts_run)
            for first, stop in zip(starts, np.append(starts[1:], len(value)), strict=True):
                if value[first]:
                    intervals.append(
                        KnownSignInterval(
                            joint,
                            int(run[first]),
                            float(time[first]),
                            float(time[stop - 1]),
                            int(value[first]),
                        )
                    )
        return tuple(intervals)
