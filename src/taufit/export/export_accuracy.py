"""Accuracy of an export: nrmse in the export format, next to that of the full model."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.export.export_format import ExportFormat
from taufit.model.fitted_model import FittedModel
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples
from taufit.validation.score import Score, score


@dataclass(frozen=True, slots=True, eq=False)
class ExportAccuracy:
    """nrmse of an export and of the original model, on the same samples.

    Attributes:
        nrmse: nrmse of the export, per joint.
        model_score: Score of the full model; its measured joints count in both means.
    """

    nrmse: Float[Array, " j"]
    model_score: Score

    @property
    def file(self) -> str:
        """Name of the test data."""
        return self.model_score.file or "training"

    @property
    def mean_nrmse(self) -> float:
        """Mean nrmse of the export, over the same joints as the model's."""
        values = self.nrmse[self.model_score.measured]
        return float(np.mean(values)) if len(values) else float("nan")

    @property
    def model_mean_nrmse(self) -> float:
        """The figure that `fit` and `check` state."""
        return self.model_score.mean_nrmse

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "file": self.file,
            "mean_nrmse": self.mean_nrmse,
            "model_mean_nrmse": self.model_mean_nrmse,
            "nrmse": self.nrmse.tolist(),
            "model_nrmse": self.model_score.nrmse.tolist(),
        }


def accuracy_on_training(model: FittedModel, export_format: ExportFormat) -> ExportAccuracy | None:
    """Accuracy on the training data, from the model file; None if that cannot tell it."""
    training_score = model.training.score
    rmse = export_format.reduce(model).rmse
    if training_score is None or rmse is None or export_format.predict is not None:
        return None
    # Joints with constant torque have no nrmse.
    with np.errstate(divide="ignore", invalid="ignore"):
        torque_std = training_score.rmse / training_score.nrmse
        return ExportAccuracy(rmse / torque_std, training_score)


def accuracy_on_samples(
    model: FittedModel, export_format: ExportFormat, samples: Samples, file: str
) -> ExportAccuracy:
    """Accuracy on samples conditioned like the training data."""
    model_score = score(model, samples, file=file)
    reduced = export_format.reduce(model).model
    if export_format.predict is not None:
        motion = samples.position, samples.friction_velocity, samples.acceleration
        torque = export_format.predict(model, *motion, samples.temperature)
        export_score = score(model, samples, predicted=lowpass(samples, torque), file=file)
    elif reduced is not model:
        export_score = score(reduced, samples, file=file)
    elif export_format.is_samplewise:
        export_score = samplewise_score(model, samples, file)
    else:
        export_score = model_score
    return ExportAccuracy(export_score.nrmse, model_score)


def samplewise_score(model: FittedModel, samples: Samples, file: str) -> Score:
    """Score of an export that is called once per sample with the recorded motion.

    Velocity is unfiltered, acceleration its difference quotient; the resulting torque passes the
    low-pass of the measured one.
    """
    torque = np.empty_like(samples.torque)
    for run in samples.run_slices():
        velocity = samples.friction_velocity[run]
        is_short = len(velocity) < 2
        change = np.zeros_like(velocity) if is_short else np.gradient(velocity, axis=0)
        torque[run] = model.torque(
            samples.position[run],
            velocity,
            change * samples.rate_hz,
            temperature=None if samples.temperature is None else samples.temperature[run],
            step=1.0 / samples.rate_hz,
        )
    return score(model, samples, predicted=lowpass(samples, torque), file=file)
