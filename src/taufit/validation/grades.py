"""Grades of a model with reasons: good, usable or poor, per joint and overall.

The noise floor of a recording is the larger of the nrmse of the same columns fitted to that
recording and the torque noise behind the low-pass: no parameters are better. With e = nrmse on the
recording, over rows in which the joint moves, and f its floor,

    good    e <= 1.5 f and e <= 0.15     as good as this recording allows
    usable  e <= 0.3, or e <= 1.5 f      most of the torque is explained, or all that can be
    poor    otherwise

The overall grade uses the means over the joints (0.25 instead of 0.3). It is good only on hold-out
data, only within 1.4 times the floor and 1.4 times the training residual (relative to the torque of
the recording), only without disqualifying findings on the training data, and only if the 95 %
intervals cover at least 85 % of the torques.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.model.score import Score
from taufit.recording.finding import Finding
from taufit.robot import Robot
from taufit.signals.samples import Samples

GRADES = ("good", "usable", "poor")
# Kinds of findings that exclude the grade good.
_DISQUALIFYING_KINDS = (
    "delay", "clipping", "quantised", "too_slow", "gravity_added", "gains_unknown",
    "worse_than_nominal", "no_variation", "unit", "clock_scale", "velocity_sign", "torque_sign",
    "swapped_torque", "swapped_joints", "zero_offset", "mounting", "gravity_removed", "wrong_arm",
    "unchecked", "other_load",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits of the grades.

    Attributes:
        of_floor: Multiple of the floor up to which nothing better can be expected.
        of_best: Multiple of the floor, and of the training residual, up to which a model is good;
            at 1.414 its own errors are at most as large as those.
        good: Largest nrmse of the grade good.
        usable: Largest nrmse of a joint of the grade usable.
        usable_mean: Largest mean nrmse of the grade usable.
        inside: Smallest coverage of the 95 % interval of the grade good.
    """

    of_floor: float = 1.5
    of_best: float = 1.414
    good: float = 0.15
    usable: float = 0.3
    usable_mean: float = 0.25
    inside: float = 0.85


@dataclass(frozen=True, slots=True)
class Grade:
    """Grade of one joint.

    Attributes:
        joint: Joint number from 1.
        grade: good, usable or poor.
        nrmse: Nrmse on the recording; nan where the torque does not vary.
        floor: Achievable nrmse on that recording; nan where unknown.
        reason: Reason for not being better, or "".
    """

    joint: int
    grade: str
    nrmse: float
    floor: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "joint": self.joint,
            "grade": self.grade,
            "nrmse": self.nrmse,
            "floor": self.floor,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Grades:
    """Grades of a model on one or several recordings, the worst of which counts.

    Attributes:
        overall: good, usable or poor.
        joints: Grade of each joint.
        reasons: Reasons for not being better.
        on_holdout: Whether the recordings were kept out of the fit.
    """

    overall: str
    joints: tuple[Grade, ...]
    reasons: tuple[str, ...]
    on_holdout: bool

    @property
    def floor(self) -> float:
        """Mean floor over the joints."""
        finite = [g.floor for g in self.joints if np.isfinite(g.floor)]
        return float(np.mean(finite)) if finite else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "grade": self.overall,
            "grades": [grade.to_dict() for grade in self.joints],
            "grade_reasons": list(self.reasons),
            "floor": self.floor,
        }


def achievable_nrmse(
    robot: Robot, samples: Samples, evidence: HypothesisTest | None = None
) -> Float[Array, " j"]:
    """Smallest nrmse that a model of this robot can have on these samples, per joint.

    Args:
        robot: Robot with its mounting.
        samples: Conditioned samples.
        evidence: Hypothesis test of these samples, if already built.
    """
    moving = samples.in_motion
    torque_std = samples.torque[moving].std(axis=0)
    torque_std = np.where(torque_std > 0.0, torque_std, np.nan)
    noise = np.zeros(samples.joints) if samples.noise is None else samples.noise
    bandwidth_ratio = min(1.0, 2.0 * samples.cutoff_hz / samples.rate_hz)
    noise_floor = noise * np.sqrt(bandwidth_ratio) / torque_std
    if evidence is None or evidence.samples is not samples:
        evidence = HypothesisTest(robot, samples)
    return (
        np.fmax(noise_floor, evidence.unchanged_fit.nrmse_by_joint)
        if evidence.has_enough_data
        else noise_floor
    )


def with_moving_nrmse(score: Score) -> Score:
    """Score with nrmse over the rows in which each joint itself moves, if known.

    Torque of a standing joint is stiction, which no model predicts.
    """
    return score if score.moving_nrmse is None else replace(score, nrmse=score.moving_nrmse)


def training_error_ratio(training: Score | None, holdout: Score) -> Float[Array, " j"]:
    """Training residual relative to the torque of another recording, per joint.

    Infinite where unknown.
    """
    if training is None:
        return np.full(len(holdout.rmse), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        training_std, holdout_std = (
            recording.rmse / recording.nrmse for recording in (training, holdout)
        )
        ratio = with_moving_nrmse(training).nrmse * training_std / holdout_std
    return np.where(np.isfinite(ratio) & (ratio > 0.0), ratio, np.inf)


def grade(
    scores: Sequence[Score],
    floor: Sequence[Float[Array, " j"]],
    *,
    on_holdout: bool,
    training: Score | None = None,
    findings: Sequence[Finding] = (),
    thresholds: Thresholds | None = None,
) -> Grades:
    """Grade scores against the floors of their recordings.

    Args:
        scores: Scores of one or several recordings; joints are graded where they move.
        floor: Achievable nrmse of each recording, from `achievable_nrmse`.
        on_holdout: Whether the recordings were kept out of the fit.
        training: Score of the model on its training data, if known.
        findings: Findings on the training data.
        thresholds: Limits in place of the default ones.
    """
    limits = thresholds or Thresholds()
    best = [training_error_ratio(training, recording_score) for recording_score in scores]
    scores = [with_moving_nrmse(recording_score) for recording_score in scores]
    joint_grades = [_grade_joints(s.nrmse, f, limits) for s, f in zip(scores, floor, strict=True)]
    worst = tuple(max(column, key=lambda g: GRADES.index(g.grade)) for column in zip(*joint_grades,
                  strict=True))  # fmt: skip
    overall, reasons = "good", list[str]()
    for recording_score, recording_floor, training_ratio in zip(scores, floor, best, strict=True):
        recording_grade, reason = _grade_mean(
            recording_score, recording_floor, training_ratio, limits
        )
        if GRADES.index(recording_grade) > GRADES.index(overall):
            overall, reasons = recording_grade, [reason]
    doubts = _doubts(scores, worst, on_holdout, findings, limits) if overall == "good" else []
    if doubts:
        overall, reasons = "usable", [*reasons, *doubts]
    if any(f.severity == "error" for f in findings):
        overall = "poor"
        reasons += [f.message.split(":")[0] for f in findings if f.severity == "error"]
    return Grades(overall, worst, tuple(dict.fromkeys(reasons)), on_holdout)


def _doubts(
    scores: Sequence[Score],
    worst: Sequence[Grade],
    on_holdout: bool,
    findings: Sequence[Finding],
    limits: Thresholds,
) -> list[str]:
    """First reason why a model with good scores is only usable."""
    coverage = [
        recording_score.mean_inside
        for recording_score in scores
        if recording_score.mean_inside is not None
    ]
    if coverage and min(coverage) < limits.inside:
        return [f"{100 * min(coverage):.0f} % of the torques are inside the 95 % interval"]
    poor_joints = [g.joint for g in worst if g.grade == "poor"]
    if poor_joints:
        return [f"joint {', '.join(map(str, poor_joints))} is poor"]
    if not on_holdout:
        return ["it was not tested on a recording it has not seen (--holdout 30%)"]
    return [f.message.split(":")[0] for f in findings if f.kind in _DISQUALIFYING_KINDS]


def _grade_joints(
    nrmse: Float[Array, " j"], floor: Float[Array, " j"], limits: Thresholds
) -> list[Grade]:
    out = []
    for j, (e, f) in enumerate(zip(nrmse, floor, strict=True)):
        if not np.isfinite(e):
            out.append(Grade(j + 1, "poor", float("nan"), float(f), "its torque does not vary"))
            continue
        at_floor = np.isfinite(f) and e <= limits.of_floor * f
        if e <= limits.good and at_floor:
            joint_grade, reason = "good", ""
        elif e <= limits.usable or at_floor:
            joint_grade = "usable"
            reason = (
                f"{e:.3f} is {e / f:.1f} times what this recording allows ({f:.3f})"
                if not at_floor
                else f"{e:.3f} is all this recording allows ({f:.3f})"
            )
        else:
            joint_grade = "poor"
            reason = f"{e:.3f} of its torque's spread is unexplained; {f:.3f} is possible"
        out.append(Grade(j + 1, joint_grade, float(e), float(f), reason))
    return out


def _grade_mean(
    score: Score, floor: Float[Array, " j"], best: Float[Array, " j"], limits: Thresholds
) -> tuple[str, str]:
    e, f = score.mean_nrmse, float(np.nanmean(floor)) if np.isfinite(floor).any() else np.nan
    at_floor = np.isfinite(f) and e <= limits.of_floor * f
    b = float(np.mean(best))
    if e <= limits.good and at_floor and e <= limits.of_best * min(f, b):
        return "good", ""
    if e <= limits.good and at_floor:
        reference = "this recording allows" if f <= b else "is left of its training data:"
        return (
            "usable",
            f"mean nrmse {e:.3f}, more than {limits.of_best:g} times what {reference} "
            + (f"{min(f, b):.3f}"),
        )
    if e <= limits.usable_mean or at_floor:
        return "usable", f"mean nrmse {e:.3f}; this recording allows {f:.3f}"
    return "poor", (
        f"mean nrmse {e:.3f} exceeds {limits.usable_mean:g} and {limits.of_floor:g} times what "
        f"this recording allows ({f:.3f})"
    )


def nominal_rmse_findings(
    rmse: Float[Array, " j"], nominal: Float[Array, " j"] | None
) -> list[Finding]:
    """Finding for every joint that the nominal robot explains better than the fit."""
    if nominal is None:
        return []
    return [
        Finding(
            "worse_than_nominal",
            "warning",
            f"joint {j + 1}: the fit leaves {rmse[j]:.3g} N m, the nominal robot {nominal[j]:.3g}. "
            "What the other joints say about the links does not fit this joint: check its torque "
            "column, gain and sign, and its friction (--friction linear)",
            joint=int(j) + 1,
        )
        for j in np.flatnonzero(rmse > 1.02 * nominal)
    ]


__all__ = [
    "GRADES",
    "Grade",
    "Grades",
    "Thresholds",
    "achievable_nrmse",
    "grade",
    "nominal_rmse_findings",
    "training_error_ratio",
]
