"""Accuracy of a model in one figure and one word, and the room for improvement beside it.

The figure is the fraction of torque left unexplained on the judged recordings: nrmse over all
samples in motion, mean over the measured joints (torque that varies and in which noise is a minor
part). The word follows from it alone:

    excellent <= 0.05 < good <= 0.15 < usable <= 0.35 < poor

A model is also poor if a joint that carries gravity exceeds 0.5 or any measured joint exceeds 0.9
on any recording (without the sensor's noise; over the samples in which the joint moves, if it
stands more than half of the time; relative to training torque that varies twice as much; not for an
error below 0.3 % of the rated torque), or if the recordings contradict the robot. If both the build
of the robot and its torque (a load, or intervals that hold less than 85 % of it) say that the
description ends too early, only an excellent model passes: what follows moves, and was fitted as a
rigid part of the last link.

Room for improvement is a second statement, which never changes the first: the ratio to what no
model explains (`taufit.validation.noise_floor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import gravity_torque
from taufit.model.score import Score
from taufit.model.training_record import ModelAccuracy
from taufit.recording.finding import Finding
from taufit.robot import Robot
from taufit.signals.samples import Samples
from taufit.validation.noise_floor import repeat_share
from taufit.validation.score import short_name

GRADES = ("excellent", "good", "usable", "poor")
NOT_MEASURED = "not measured"
# Largest number of samples for the part of gravity in the torque.
_MAX_SAMPLES = 2000
# Kinds of findings by which the torque shows more than the last link, and the one by the build.
_LOAD_KINDS, _CHAIN_END = ("undescribed_load", "missing_links"), "chain_end"
# Kinds of findings that are repeated beside the grade.
_DOUBTFUL_KINDS = (
    "delay", "clipping", "quantised", "too_slow", "gravity_added", "gains_unknown",
    "worse_than_nominal", "no_variation", "unit", "clock_scale", "velocity_sign", "torque_sign",
    "swapped_torque", "swapped_joints", "zero_offset", "mounting", "gravity_removed", "wrong_arm",
    "unchecked", "other_load",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits of the grades.

    The limits are requirements, not fitted values. `python -m benchmarks verdicts` counts wrong
    structures that pass them.

    Attributes:
        excellent, good, usable: Largest unexplained fraction of torque of each word.
        gravity_joint: Largest nrmse of a joint that carries gravity.
        joint: Largest nrmse of any measured joint.
        gravity: Nominal gravity over the torque of a joint, both as standard deviations, above
            which the joint carries gravity.
        light_load: Torque of a joint over that in training, both as standard deviations, below
            which a recording hardly loads the joint.
        rated_error: RMS error of a joint over its rated torque below which it is never poor: hardly
            a drive or torque sensor is more accurate. Chosen on 40 simulated runs (iiwa7, iiwa14,
            seeds 8100-8119), of which 0.2 % left two poor and 0.3 % none.
        inside: Coverage of the 95 % interval below which it is mentioned.
    """

    excellent: float = 0.05
    good: float = 0.15
    usable: float = 0.35
    gravity_joint: float = 0.5
    joint: float = 0.9
    gravity: float = 0.3
    light_load: float = 0.5
    rated_error: float = 0.003
    inside: float = 0.85

    def word(self, nrmse: float) -> str:
        """Grade of an unexplained fraction."""
        limits = (self.excellent, self.good, self.usable)
        return next((g for g, x in zip(GRADES, limits, strict=False) if nrmse <= x), GRADES[-1])


@dataclass(frozen=True, slots=True)
class Grade:
    """Grade of one joint.

    Attributes:
        joint: Joint number from 1.
        grade: excellent, good, usable, poor, or "not measured".
        nrmse: Nrmse on the judged recordings; nan if the joint is not measured.
        floor: Part of it that no model explains; nan where unknown.
        reason: Reason for not being measured, or for being poor, or "".
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
    """Accuracy of a model on one or several recordings.

    Attributes:
        overall: excellent, good, usable or poor.
        joints: Grade of each joint.
        reasons: Limits that are exceeded; else remarks on how far the grade can be trusted.
        on_holdout: Whether the recordings were kept out of the fit.
    """

    overall: str
    joints: tuple[Grade, ...]
    reasons: tuple[str, ...]
    on_holdout: bool

    @property
    def unexplained(self) -> float:
        """Headline figure: nrmse over all samples in motion, mean over the measured joints."""
        values = [g.nrmse for g in self.joints if np.isfinite(g.nrmse)]
        return float(np.mean(values)) if values else float("nan")

    @property
    def floor(self) -> float:
        """Part that no model explains, mean over the joints where it is known; nan if nowhere."""
        values = [g.floor for g in self.joints if np.isfinite(g.floor)]
        return float(np.mean(values)) if values else float("nan")

    @property
    def headroom(self) -> float | None:
        """Unexplained torque over what no model explains, on joints where both are known.

        None if that is known for less than half of the measured joints.
        """
        both = [g for g in self.joints if np.isfinite(g.floor)]
        measured = sum(np.isfinite(g.nrmse) for g in self.joints)
        if not both or 2 * len(both) < measured:
            return None
        return float(np.mean([g.nrmse for g in both]) / self.floor)

    @property
    def headroom_text(self) -> str:
        """Sentence on the headroom; "" where it is unknown."""
        if self.headroom is None:
            return ""
        return (
            f"at least {100 * self.floor:.1f} % is noise or differs when the motion repeats, which "
            f"no model explains; this one leaves {self.headroom:.1f} times that"
        )

    @property
    def accuracy(self) -> ModelAccuracy:
        """Figure, word and headroom for the model file."""
        return ModelAccuracy(self.unexplained, self.overall, self.headroom, self.on_holdout)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "unexplained": self.unexplained,
            "accuracy": self.overall,
            "headroom": self.headroom,
            "grade": self.overall,
            "grades": [grade.to_dict() for grade in self.joints],
            "grade_reasons": list(self.reasons),
            "floor": self.floor,
        }


@dataclass(frozen=True, slots=True, eq=False)
class RecordingEvidence:
    """Facts about a recording that do not depend on the judged model.

    Attributes:
        floor: Nrmse that no model avoids, per joint; nan where unknown.
        gravity: Nominal gravity over measured torque, both as standard deviations, per joint.
        rated_torque: Rated torque of the robot's joints [N m]; inf where unknown.
    """

    floor: Float[Array, " j"]
    gravity: Float[Array, " j"]
    rated_torque: Float[Array, " j"]


def recording_evidence(robot: Robot, samples: Samples, score: Score) -> RecordingEvidence:
    """Facts about judged samples.

    Args:
        robot: Nominal robot with its mounting.
        samples: Judged samples.
        score: Score on them, with their noise.
    """
    repeats = repeat_share(samples)
    noise = np.full(samples.joints, np.nan) if score.noise_share is None else score.noise_share
    rows = np.flatnonzero(samples.in_motion)
    rows = rows[:: max(1, -(-len(rows) // _MAX_SAMPLES))]
    gravity = gravity_torque(robot, samples.position[rows]).std(axis=0)
    torque_std = samples.torque[rows].std(axis=0)
    return RecordingEvidence(
        np.where(np.isfinite(repeats), repeats, noise),
        np.where(torque_std > 0.0, gravity / np.where(torque_std > 0.0, torque_std, 1.0), 0.0),
        robot.limits.torque,
    )


def grade(
    scores: Sequence[Score],
    evidence: Sequence[RecordingEvidence],
    *,
    on_holdout: bool,
    findings: Sequence[Finding] = (),
    thresholds: Thresholds | None = None,
    training: Score | None = None,
) -> Grades:
    """Grade scores on one or several recordings.

    Args:
        scores: Scores of the recordings.
        evidence: Facts about the recordings, from `recording_evidence`.
        on_holdout: Whether the recordings were kept out of the fit.
        findings: Findings on the training data.
        thresholds: Limits in place of the default ones.
        training: Score on the training data: a joint that a recording hardly loads is not poor for
            its small torque there.
    """
    limits = thresholds or Thresholds()
    nrmse = _mean_over_recordings([score.measured_nrmse for score in scores])
    floor = _mean_over_recordings(
        [
            np.where(facts.floor <= score.measured_nrmse, facts.floor, np.nan)
            for score, facts in zip(scores, evidence, strict=True)
        ]
    )
    floor = np.where(floor <= nrmse, floor, np.nan)
    joints = [
        _grade_joint(j, float(nrmse[j]), float(floor[j]), scores, limits) for j in range(len(nrmse))
    ]
    if any(finding.kind == "gains_unknown" for finding in findings):
        # Torque in an unknown unit is not comparable with the rated torque.
        limits = replace(limits, rated_error=0.0)
    failures = [
        text
        for score, facts in zip(scores, evidence, strict=True)
        for text in _exceeded_limits(score, facts, limits, scores, training)
    ]
    failures += [f.message.split(":")[0] for f in findings if f.severity == "error"]
    unexplained = Grades("", tuple(joints), (), on_holdout).unexplained
    failures = failures or _incomplete_description(unexplained, scores, findings, limits)
    overall = "poor" if failures else limits.word(unexplained)
    reasons = failures or _doubts(scores, joints, on_holdout, findings, limits)
    return Grades(overall, tuple(joints), tuple(dict.fromkeys(reasons)), on_holdout)


def _incomplete_description(
    unexplained: float, scores: Sequence[Score], findings: Sequence[Finding], limits: Thresholds
) -> list[str]:
    """Failure of a model of a robot that goes on beyond its description, unless it is excellent.

    The torque says so by a load, or by intervals that do not hold: parameters of a link that
    contains moving ones do not carry over from one motion to another.
    """
    kinds = {finding.kind for finding in findings}
    has_load = not kinds.isdisjoint(_LOAD_KINDS)
    is_doubtful = has_load or _least_coverage(scores) < limits.inside
    if _CHAIN_END not in kinds or not is_doubtful or unexplained <= limits.excellent:
        return []
    return [
        f"{_above(unexplained, limits.excellent)} of the torque is unexplained, and the "
        "description ends before the robot does, by its axes and by its torque: describe it to the "
        "flange (--tip)"
    ]


def _least_coverage(scores: Sequence[Score]) -> float:
    """Smallest share of torque inside the 95 % interval; 1 where there are no intervals."""
    return min((x.mean_inside for x in scores if x.mean_inside is not None), default=1.0)


def _mean_over_recordings(values: Sequence[Float[Array, " j"]]) -> Float[Array, " j"]:
    """Mean over the recordings where a value is known; nan where none is."""
    table = np.stack(values)
    count = np.isfinite(table).sum(axis=0)
    return np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)


def _grade_joint(
    joint: int, nrmse: float, floor: float, scores: Sequence[Score], limits: Thresholds
) -> Grade:
    if not np.isfinite(nrmse):
        reason = unmeasured_reason(scores[0], joint)
        return Grade(joint + 1, NOT_MEASURED, float("nan"), float("nan"), reason)
    word = limits.word(nrmse)
    reason = f"{100 * nrmse:.0f} % of its torque is unexplained" if word == "poor" else ""
    return Grade(joint + 1, word, nrmse, floor, reason)


def unmeasured_reason(score: Score, joint: int) -> str:
    """Reason why the torque of a joint does not count as measured."""
    if not np.isfinite(score.nrmse[joint]):
        return "its torque does not vary"
    assert score.noise_share is not None
    return f"{100 * min(score.noise_share[joint], 1.0):.0f} % of its torque is noise"


def unmeasured_findings(scores: Sequence[Score]) -> list[Finding]:
    """Finding for every joint that is measured in none of the recordings."""
    measured: Bool[Array, " j"] = np.any([score.measured for score in scores], axis=0)
    return [
        Finding(
            "not_scored",
            "warning",
            f"joint {j + 1} is not measured: {unmeasured_reason(scores[0], int(j))}. It is left "
            "out of every mean; move it faster or with a load to measure it",
            joint=int(j) + 1,
        )
        for j in np.flatnonzero(~measured)
    ]


def _exceeded_limits(
    score: Score,
    facts: RecordingEvidence,
    limits: Thresholds,
    scores: Sequence[Score],
    training: Score | None,
) -> list[str]:
    """Limits that a model exceeds on one recording."""
    place = f"{short_name(score.file)}: " if len(scores) > 1 else ""
    if not np.any(score.measured):
        return [f"{place}no joint has measured torque"]
    out = []
    if not score.mean_nrmse <= limits.usable:
        out.append(f"{place}{_above(score.mean_nrmse, limits.usable)} of the torque is unexplained")
    judged = score.nrmse
    if score.moving_nrmse is not None and score.standing_share is not None:
        # Stiction of a joint that mostly stands is not an error of the model.
        judged = np.where(score.standing_share > 0.5, score.moving_nrmse, judged)
        judged = np.where(score.standing_share > 0.98, 0.0, judged)
    if score.noise_share is not None:
        # Nor is noise of the sensor, which the recording alone shows.
        noise = np.nan_to_num(score.noise_share)
        judged = np.sqrt(np.maximum(judged**2 - noise**2, 0.0))
    if training is not None:
        ratio = _torque_std(score) / _torque_std(training)
        judged = judged * np.where(ratio < limits.light_load, ratio, 1.0)
    is_rated = np.isfinite(facts.rated_torque)
    small_error = limits.rated_error * np.where(is_rated, facts.rated_torque, 0.0)
    judged = np.where(score.rmse < small_error, 0.0, judged)
    for j in np.flatnonzero(score.measured):
        carries = facts.gravity[j] > limits.gravity
        limit = limits.gravity_joint if carries else limits.joint
        if judged[j] > limit:
            kind = ", which carries gravity," if carries else ""
            out.append(
                f"{place}{_above(float(judged[j]), limit)} of the torque of joint {j + 1}{kind} is "
                "unexplained"
            )
    return out


def _torque_std(score: Score) -> Float[Array, " j"]:
    """Standard deviation of the measured torque; nan where the error is zero or not known."""
    known = score.nrmse > 0.0
    return np.where(known, score.rmse / np.where(known, score.nrmse, 1.0), np.nan)


def _above(value: float, limit: float) -> str:
    """Percentage with enough digits to differ from the limit that it exceeds."""
    digits = next((n for n in range(1, 6) if round(100 * value, n) > 100 * limit), 6)
    return f"{100 * value:.{digits}f} % (limit {100 * limit:g} %)"


def _doubts(
    scores: Sequence[Score],
    joints: Sequence[Grade],
    on_holdout: bool,
    findings: Sequence[Finding],
    limits: Thresholds,
) -> list[str]:
    """Remarks on how far a grade can be trusted."""
    coverage, out = _least_coverage(scores), []
    if coverage < limits.inside:
        out.append(f"{100 * coverage:.0f} % of the torques are inside the 95 % interval")
    for word, verb in (("poor", "poor"), (NOT_MEASURED, "not measured")):
        numbers = [str(g.joint) for g in joints if g.grade == word]
        if numbers:
            be = "joint {} is" if len(numbers) == 1 else "joints {} are"
            out.append(f"{be.format(', '.join(numbers))} {verb}")
    if not on_holdout:
        out.append("it was not tested on a recording it has not seen (--holdout 30%)")
    repeated = [f for f in findings if f.kind in _DOUBTFUL_KINDS]
    return out + [f.message.split(":")[0] for f in repeated]


def nominal_rmse_findings(
    rmse: Float[Array, " j"], nominal: Float[Array, " j"] | None, measured: Bool[Array, " j"]
) -> list[Finding]:
    """Finding for every measured joint that the nominal robot explains better than the fit."""
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
        for j in np.flatnonzero(measured & (rmse > 1.02 * nominal))
    ]


__all__ = [
    "GRADES",
    "NOT_MEASURED",
    "Grade",
    "Grades",
    "RecordingEvidence",
    "Thresholds",
    "grade",
    "nominal_rmse_findings",
    "recording_evidence",
    "unmeasured_findings",
]
