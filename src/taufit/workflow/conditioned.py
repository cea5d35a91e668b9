"""Recordings conditioned as a model's training data were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.diagnosis import declared_torque
from taufit.model.fitted_model import FittedModel
from taufit.recording import Recording
from taufit.signals import Samples, condition
from taufit.temperature.apply import with_temperature
from taufit.workflow.training_data import counted, in_robot_order


def condition_like(
    model: FittedModel,
    recordings: Sequence[Recording],
    *,
    cutoff_hz: float | None = None,
    name: str | None = None,
) -> Samples:
    """Recordings conditioned as the model's training data were: same low-pass, same gains.

    A recording whose map gives drive gains in numbers keeps its own; one in amperes without gains
    gets the model's, since it is the same robot.

    Args:
        model: A fitted model.
        recordings: Of the same robot.
        cutoff_hz: Replaces the model's low-pass.
        name: For messages.
    """
    ordered = [in_robot_order(model.robot, recording, name) for recording in recordings]
    if any(recording.meta.get("gravity_removed") for recording in ordered):
        ordered, _ = declared_torque(model.robot, ordered)
    conditioning = model.training.conditioning
    cutoff = conditioning.cutoff_hz if cutoff_hz is None else cutoff_hz
    needs = any(r.gain is None or not np.all(np.isfinite(r.gain)) for r in ordered)
    gains = conditioning.gain if needs else None
    samples = with_temperature(
        model,
        counted(
            condition(
                ordered,
                cutoff_hz=None if np.isinf(cutoff) else cutoff,
                gains=gains,
                delay_s=conditioning.delay_s,
            ),
            ordered,
        ),
    )
    if samples.signed is not None and not np.all(samples.signed):
        # Magnitudes are compared with the magnitude predicted.
        from taufit.signs.samples import signed_by_model

        samples = signed_by_model(model, samples)
    return samples.keeping()
