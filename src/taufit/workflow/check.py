"""Check of a fitted model on hold-out recordings: scores, grades, and faults of the recordings."""

from __future__ import annotations

from collections.abc import Sequence

from taufit.calibration.mounting import GravityEstimate, estimate_gravity
from taufit.core.dataclasses import dataclass
from taufit.core.threads import one_blas_thread
from taufit.diagnosis import recording_causes, sample_causes
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.model.fitted_model import FittedModel
from taufit.model.score import Score
from taufit.recording import Finding, Recording
from taufit.robot import Robot
from taufit.signals import Samples
from taufit.validation import RecordingEvidence, recording_evidence, score
from taufit.validation.score_breakdown import score_breakdown
from taufit.workflow.training_data import condition_for_model


@dataclass(frozen=True, slots=True, eq=False)
class CheckResult:
    """Check of one file.

    Attributes:
        samples: Samples conditioned like the training data.
        score: Score of the model on all samples.
        evidence: Facts about the recording for its grade.
        gravity: Estimated direction of gravity, or None if not identifiable.
        findings: Findings by kind and joint, most severe first.
    """

    samples: Samples
    score: Score
    evidence: RecordingEvidence
    gravity: GravityEstimate | None
    findings: tuple[Finding, ...]


@one_blas_thread
def check(
    model: FittedModel,
    recordings: Sequence[Recording],
    *,
    cutoff_hz: float | None = None,
    name: str | None = None,
) -> CheckResult:
    """Score a model on recordings of one file and diagnose them.

    Args:
        model: Fitted model.
        recordings: Recordings of the same robot.
        cutoff_hz: Cut-off in place of the model's [Hz].
        name: Name for messages.
    """
    samples = condition_for_model(model, recordings, cutoff_hz=cutoff_hz, name=name)
    breakdown = score_breakdown(model, samples, score(model, samples, file=name or ""))
    robot = robot_with_fitted_links(model)
    evidence = HypothesisTest(robot, samples) if len(samples) else None
    return CheckResult(
        samples,
        breakdown,
        recording_evidence(model.robot, samples, breakdown),
        estimate_gravity(model.robot, samples),
        tuple(_findings(robot, recordings, samples, evidence)),
    )


def robot_with_fitted_links(model: FittedModel) -> Robot:
    """Robot with the fitted links."""
    return model.robot.with_parameters(model.layout.split(model.values).links)


def _findings(
    robot: Robot,
    recordings: Sequence[Recording],
    samples: Samples,
    evidence: HypothesisTest | None,
) -> list[Finding]:
    findings = [*(f for r in recordings for f in r.findings), *samples.findings]
    # Missing gains are taken from the model.
    findings = [f for f in findings if f.severity != "info" and f.kind != "gain_unknown"]
    # Faults that the reader has corrected are not diagnosed again.
    reader_kinds = {f.kind for f in findings}
    causes_of_recordings = [*recording_causes(robot, recordings)]
    causes = [
        *causes_of_recordings,
        *sample_causes(robot, recordings, samples, causes_of_recordings, evidence),
    ]
    findings += [cause.finding for cause in causes if cause.finding.kind not in reader_kinds]
    order = {"error": 0, "warning": 1}
    return sorted(dict.fromkeys(findings), key=lambda f: order.get(f.severity, 2))


__all__ = ["CheckResult", "check", "robot_with_fitted_links"]
