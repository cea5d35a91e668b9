"""Predicted torque of a fitted model at conditioned samples."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import inverse_dynamics
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.torque_model import TorqueModel
from taufit.signals.samples import Samples
from taufit.terms import DISSIPATIVE


def rigid_torque(model: FittedModel | TorqueModel, samples: Samples) -> Float[Array, "n j"]:
    """Rigid-body torque of the links at the filtered motion."""
    return inverse_dynamics(model.robot, samples.position, samples.velocity, samples.acceleration)


def predicted_torque(model: FittedModel, samples: Samples) -> Float[Array, "n j"]:
    """Predicted torque at every sample, with the low-pass of the measured torque.

    Links and rotors use the filtered motion; friction is computed from the unfiltered velocity, run
    by run if it has memory, and filtered afterwards. The measured torque is not used.
    """
    require_fitted(model, "predict torque")
    rigid = rigid_torque(model, samples)
    columns = model.columns
    motor = columns.drive_at(samples, load=rigid)
    return np.asarray(rigid + columns.term_torque(model.values, samples.acceleration, motor))


def friction_torque(
    model: FittedModel,
    samples: Samples,
    *,
    motor: Float[Array, "n j k"] | None = None,
) -> Float[Array, "n j"]:
    """Dissipative part of the predicted torque: friction.

    Args:
        model: Fitted model.
        samples: Samples conditioned like the training data.
        motor: Drive columns at the samples, if already computed.
    """
    columns = model.columns
    if motor is None:
        motor = columns.drive_at(samples, load=rigid_torque(model, samples))
    friction = np.where(model.layout.of_kind(DISSIPATIVE), model.values, 0.0)
    return columns.term_torque(friction, samples.acceleration, motor)


def predicted_rows(model: TorqueModel, samples: Samples) -> Float[Array, "n j p"]:
    """Regressor W with predicted torque = W values, in the order of the model's names."""
    motor = model.columns.drive_at(samples, load=rigid_torque(model, samples))
    return model.columns.dense(samples.position, samples.velocity, samples.acceleration, motor)
