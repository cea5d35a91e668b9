"""What a fitted model says the conditioned torque should have been."""

from __future__ import annotations

from taufit.arrays import Array, Float
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
    return rigid + columns.rest_torque(model.values, samples.acceleration, motor)


def predicted_rows(model: TorqueModel, samples: Samples) -> Float[Array, "n j p"]:
    """W with predicted torque = W values, in the order of the model's names."""
    motor = model.columns.friction_at(samples, load=rigid_torque(model, samples))
    return model.columns.dense(samples.position, samples.velocity, samples.acceleration, motor)
