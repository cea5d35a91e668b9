"""What a search for torque signs found, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.signals import Samples
from taufit.signs.samples import signed_samples


@dataclass(frozen=True, slots=True)
class SignedSegment:
    """One segment of one joint, the sign found for it, and how sure it is.

    Attributes:
        joint: Counted from 0.
        run: Counted from 0.
        t0, t1: Within the run [s], between samples where the crossing lies between them.
        first, last: Samples of the whole set, inclusive.
        sign: +1 or -1.
        margin: Extra cost of the best choice with this sign reversed, in noise variances; infinite
            where it is beyond what was searched.
        ambiguous: Whether the data cannot be trusted to tell.
        reason: Why it is ambiguous, else "".
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
        """Plain data, joints and runs counted from 1 as users do."""
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
class SureInterval:
    """An interval in which a joint's torque has one sign for certain.

    Attributes:
        joint: Counted from 0.
        run: Counted from 0.
        t0, t1: First and last sample, within the run [s].
        sign: +1 or -1.
    """

    joint: int
    run: int
    t0: float
    t1: float
    sign: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data, joints and runs counted from 1 as users do."""
        return {
            "joint": self.joint + 1,
            "run": self.run + 1,
            "t0": self.t0,
            "t1": self.t1,
            "sign": self.sign,
        }


@dataclass(frozen=True, slots=True, eq=False)
class FoundSigns:
    """Torque signs recovered from magnitudes.

    Attributes:
        segments: Segments with their signs, joint after joint, in time order.
        sample_sign: Sign of every sample, +1 or -1.
        sample_sure: Which of them can be relied on: those of segments that are not ambiguous, and
            others whose magnitude the model explains with only one sign.
        samples: The samples given, torque signed; samples whose motion is uncertain (the ends of
            runs where derivatives have not settled) are no longer kept.
        expected: Expected signed torque of every sample, on the grid and before any low-pass: near
            zero, where a magnitude does not tell its sign, both signs count with their probability.
        certified: Whether no other choice of signs fits better, proven.
        chi2_per_dof: Unexplained torque against the noise of the recording: 1 for a right model.
        joint_chi2: The same joint by joint.
        noise: Unexplained torque per joint, standard deviation [N m].
        confident: Whether the signs deserve trust as a whole.
        warnings: What is uncertain and what to record or change.
        nodes: Partial sign vectors the search visited.
        method: "exact" or "tree".
        values: Least-squares parameters of the model used in the search (not made consistent).
        recorded: Per joint, whether the sign was recorded.
        predicted: Torque by `values`, of every sample.
        known: Samples whose sign was recorded, or given and clear of the noise.
        noisy: Per joint, whether noise drowns its torque.
        joint_confident: Per joint, whether its signs deserve trust.
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
    known: Bool[Array, "n j"]
    noisy: Bool[Array, " j"]
    joint_confident: Bool[Array, " j"]

    @property
    def fit_samples(self) -> Samples:
        """The samples to fit: torque is `expected`, which does not bias the model near zero."""
        return signed_samples(replace(self.samples, signed=self.recorded), self.expected)

    @property
    def signs(self) -> Int[Array, " s"]:
        return np.array([segment.sign for segment in self.segments], np.int64)

    @property
    def ambiguous(self) -> Bool[Array, " s"]:
        return np.array([segment.ambiguous for segment in self.segments], bool)

    def to_dict(self) -> dict[str, Any]:
        """What `taufit fit --torque-signs unknown --json` adds."""
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

    def sure_intervals(self) -> tuple[SureInterval, ...]:
        """Intervals without a gap in which every sample of a joint is sure and has one sign."""
        run, time, out = self.samples.run, self.samples.time, []
        apart = np.diff(run, prepend=run[:1]) != 0
        for joint in range(self.samples.joints):
            value = np.where(self.sample_sure[:, joint], self.sample_sign[:, joint], 0)
            starts = np.flatnonzero((np.diff(value, prepend=2) != 0) | apart)
            for first, stop in zip(starts, np.append(starts[1:], len(value)), strict=True):
                if value[first]:
                    out.append(
                        SureInterval(
                            joint,
                            int(run[first]),
                            float(time[first]),
                            float(time[stop - 1]),
                            int(value[first]),
                        )
                    )
        return tuple(out)
