"""Accuracy of a model in words, for commands that use it, and whether it carries an alarm rate."""

from __future__ import annotations

import math
from typing import Any

from taufit.model.fitted_model import FittedModel
from taufit.model.noise_by_state import NoiseByState


def accuracy_statement(model: FittedModel) -> str:
    """State whose model it is and how accurate, e.g. "ur10e: good, 4.0 % of the torque ..."."""
    record = model.training
    created = "" if record.provenance is None else record.provenance.created[:10]
    date = f", fitted {created}" if created else ""
    if record.accuracy is not None and math.isfinite(record.accuracy.unexplained):
        data = "hold-out" if record.accuracy.on_holdout else "its own training"
        grade = f"{record.accuracy.word}, {100 * record.accuracy.unexplained:.1f} % of the torque "
        return f"Model of {model.robot.name}{date}: {grade}unexplained on {data} data."
    if record.score is not None and math.isfinite(record.score.mean_nrmse):
        share = 100 * record.score.mean_nrmse
        return (
            f"Model of {model.robot.name}{date}: not graded, {share:.1f} % of the torque "
            "unexplained on its own training data."
        )
    return f"Model of {model.robot.name}{date}: of unknown accuracy."


def accuracy_to_dict(model: FittedModel) -> dict[str, Any]:
    """Grade and unexplained fraction of the torque for JSON as in `fit`; None if unknown."""
    accuracy = model.training.accuracy
    return {
        "accuracy": None if accuracy is None else accuracy.word,
        "unexplained": None if accuracy is None else accuracy.unexplained,
    }


def has_alarm_rate(model: FittedModel, noise: NoiseByState) -> bool:
    """Whether a false alarm rate can be stated.

    Contact-free recordings measure it for any model; without them, the default tail holds for
    models that explain the torque.
    """
    accuracy = model.training.accuracy
    return noise.runs > 0 or accuracy is None or accuracy.word != "poor"
