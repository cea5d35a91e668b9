"""Scores of a fitted model on recordings that were not used for the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from taufit.model.fitted_model import FittedModel
from taufit.model.score import Score
from taufit.recording import Recording
from taufit.robot import Robot
from taufit.signals import Samples
from taufit.validation.grades import RecordingEvidence, recording_evidence
from taufit.validation.score import score
from taufit.validation.score_breakdown import score_breakdown
from taufit.workflow.training_data import condition_for_model

# Rows of hold-out recordings stored whole for plots, and of each one beyond; the first is whole.
_PLOTTED_ROWS, _PLOTTED_ROWS_OF_FURTHER = 100_000, 100


def score_holdout(
    model: FittedModel,
    robot: Robot,
    unsigned: bool,
    holdout: Mapping[str, Sequence[Recording]],
) -> tuple[tuple[Score, ...], tuple[RecordingEvidence, ...], tuple[Samples, ...]]:
    """Scores on hold-out recordings, facts for their grades, and samples for plots.

    Args:
        model: Fitted model.
        robot: Nominal robot.
        unsigned: Whether torque was recorded without signs.
        holdout: Runs of every hold-out recording by its name.
    """
    scores: list[Score] = []
    facts: list[RecordingEvidence] = []
    plotted: list[Samples] = []
    rows = 0
    for name, runs in holdout.items():
        if unsigned:
            from taufit.signs.samples import without_signs

            runs = [without_signs(recording) for recording in runs]
        samples = condition_for_model(model, runs, name=name)
        scores.append(score_breakdown(model, samples, score(model, samples, file=name)))
        facts.append(recording_evidence(robot, samples, scores[-1]))
        rows += len(samples)
        is_whole = not plotted or rows <= _PLOTTED_ROWS
        plotted.append(
            replace(samples, column_cache=None)
            if is_whole
            else samples.head(_PLOTTED_ROWS_OF_FURTHER)
        )
    return tuple(scores), tuple(facts), tuple(plotted)
