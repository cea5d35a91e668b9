"""What a fitted model says the conditioned torque should have been."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import inverse_dynamics
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.torque_model import TorqueModel
from taufit.signals.samples import Samples


def rigid_torque(model: FittedModel | TorqueModel, samples: Samples) -> Float[Array, "n j"]:
    """Torque of the links alone at the samples' filtered motion."""
    return inverse_dynamics(model.robot, samples.position, samples.velocity, samples.acceleration)


def predicted_torque(model: FittedModel, samples: Samples) -> Float[Array, "n j"]:
    """Torque at every sample, through the same low-pass as the measured one.

    Links and rotors see the filtered motion; friction is computed from the unfiltered velocity,
    run by run where it remembers its path, and filtered afterwards. Positions, velocities and the
    model are all that is used: the measured torque is not looked at.
    """
    require_fitted(model, "predict torque")
    rigid = rigid_torque(model, samples)
    columns = model.columns
    motor = columns.friction_at(samples, load=rigid)
    return np.asarray(rigid + columns.rest_torque(model.values, samples.acceleration, motor))


def friction_torque(
    model: FittedModel,
    samples: Samples,
    *,
    motor: Float[Array, "n j k"] | None = None,
) -> Float[Array, "n j"]:
    """The part of the predicted torque that is friction; a gravity compensator's is not.

    Args:
        model: Fitted.
        samples: Conditioned like its training data.
        motor: Friction columns at the samples, where they are at hand.
    """
    columns, layout = model.columns, model.layout
    if motor is None:
        motor = columns.friction_at(samples, load=rigid_torque(model, samples))
    only = np.zeros(len(model.values))
    only[layout.friction] = without_balance(model).values[layout.friction]
    return columns.rest_torque(only, samples.acceleration, motor)


def without_balance(model: FittedModel) -> FittedModel:
    """The model with the torque of its gravity compensators left out."""
    of_balance = np.array([name.startswith("balance_") for name in model.layout.what])
    if not of_balance.any():
        return model
    return model.with_values(np.where(of_balance, 0.0, model.values))


def predicted_rows(model: TorqueModel, samples: Samples) -> Float[Array, "n j p"]:
    """W with predicted torque = W values, in the order of the model's names."""
    motor = model.columns.friction_at(samples, load=rigid_torque(model, samples))
    return model.columns.dense(samples.position, samples.velocity, samples.acceleration, motor)
