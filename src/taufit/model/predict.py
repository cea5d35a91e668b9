"""What a fitted model says the conditioned torque should have been."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.dynamics import regressor
from taufit.model.columns import filtered_friction
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.torque_model import TorqueModel
from taufit.signals.samples import Samples


def rigid_torque(model: FittedModel | TorqueModel, samples: Samples) -> Float[Array, "n j"]:
    """Torque of the links alone at the samples' filtered motion."""
    return _links(model, samples) @ model.robot.parameters


def predicted_torque(model: FittedModel, samples: Samples) -> Float[Array, "n j"]:
    """Torque at every sample, through the same low-pass as the measured one.

    Links and rotors see the filtered motion; friction is computed from the unfiltered velocity,
    run by run where it remembers its path, and filtered afterwards. Positions, velocities and the
    model are all that is used: the measured torque is not looked at.
    """
    require_fitted(model, "predict torque")
    joints = model.robot.joints
    rigid = rigid_torque(model, samples)
    parts: list[Any] = []
    if model.rotor_inertia:
        parts.append(model.structure.rotor_columns(samples.acceleration))
    columns = filtered_friction(model.structure, samples, load=_load(model.structure, rigid))
    parts.append(model.structure.to_joints(columns))
    if model.offset:
        parts.append(np.broadcast_to(np.eye(joints), (len(samples), joints, joints)))
    return rigid + np.concatenate(parts, -1) @ model.values[model.layout.rest]


def predicted_rows(model: TorqueModel, samples: Samples) -> Float[Array, "n j p"]:
    """W with predicted torque = W values, in the order of the model's names."""
    joints = model.robot.joints
    links = _links(model, samples)
    parts = [links]
    if model.rotor_inertia:
        parts.append(model.rotor_columns(samples.acceleration))
    load = _load(model, links @ model.robot.parameters)
    parts.append(model.to_joints(filtered_friction(model, samples, load=load)))
    if model.offset:
        parts.append(np.broadcast_to(np.eye(joints), (len(samples), joints, joints)))
    return np.concatenate(parts, -1)


def _links(model: FittedModel | TorqueModel, samples: Samples) -> Float[Array, "n j p"]:
    return regressor(model.robot, samples.position, samples.velocity, samples.acceleration)


def _load(model: TorqueModel, rigid: Float[Array, "n j"]) -> Float[Array, "n j"] | None:
    return rigid if model.friction is not None and model.friction.uses_load else None
