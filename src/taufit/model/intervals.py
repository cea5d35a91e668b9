"""Prediction intervals of measured torque, sample by sample.

    variance = w' C w + y' P y + noise(state)^2 + (s friction)^2 + (g links)^2

w is a row of the base regressor and C the covariance of the base parameters; y is a row of the last
link's regressor and P the covariance of a known payload; noise is the residual
of contact-free motion in the joint's friction state; s is the run-to-run scatter of friction and g
that of the drive gain. Intervals of standing joints are wider by Coulomb friction in both
directions.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import friction_torque, predicted_torque, rigid_torque
from taufit.signals.samples import Samples
from taufit.terms import BREAKAWAY, CONSTANT, DISSIPATIVE, LEVEL, MEMORY
from taufit.terms.friction.states import STATES, FrictionStates, StateSettings

# Relative standard deviation of a joint's friction from run to run if training has too few runs:
# drift over days and weeks of a robot at room temperature.
TYPICAL_FRICTION_SCATTER = 0.02
# Relative standard deviation of the drive gain, if torque was measured as current.
GAIN_SCATTER = 0.015
# Filtered speed below which a joint stands [rad/s or m/s].
_STANDSTILL_SPEED = 0.01
_BLOCK = 2048
# Shortest time in a friction state for its residuals to be used [s].
_MIN_STATE_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class TorquePrediction:
    """Predicted torque at samples, with its 95 % interval.

    Attributes:
        torque: Predicted torque [N m].
        half_width: Half width of the interval [N m].
        friction: Friction part of the torque [N m].
        standing: Mask of standing joints.
    """

    torque: Float[Array, "n j"]
    half_width: Float[Array, "n j"]
    friction: Float[Array, "n j"]
    standing: Bool[Array, "n j"]

    def inside(self, measured: Float[Array, "n j"]) -> Bool[Array, "n j"]:
        """Whether a measured torque is in the interval."""
        return np.asarray(np.abs(measured - self.torque) <= self.half_width)


def predict_interval(
    model: FittedModel,
    samples: Samples,
    rows: Int[Array, " m"] | None = None,
    *,
    tracked_variance: Float[Array, "n j"] | None = None,
) -> TorquePrediction:
    """Predicted torque and its interval at samples, with the low-pass of the measured torque.

    Args:
        model: Fitted model.
        samples: Samples conditioned like the training data.
        rows: Sample indices; all by default.
        tracked_variance: Variance of tracked friction [N m^2], in place of the scatter of friction
            between runs and the covariance of its parameters; nan for the scatter.
    """
    rows = np.arange(len(samples.torque)) if rows is None else np.asarray(rows)
    columns, values = model.columns, model.values
    rigid = rigid_torque(model, samples)
    motor = columns.drive_at(samples, load=rigid)
    friction = friction_torque(model, samples, motor=motor)[rows]
    torque = (rigid + columns.term_torque(values, samples.acceleration, motor))[rows]
    scatter = model.training.friction_scatter
    scatter = np.full(samples.joints, TYPICAL_FRICTION_SCATTER) if scatter is None else scatter
    variance = _noise_std(model, samples)[rows] ** 2 + _payload_variance(model, samples, rows)
    drift_variance = (scatter * friction) ** 2
    if tracked_variance is None:
        variance += _parameter_variance(model, samples, motor, rows)
    else:
        is_tracked = model.layout.of_kind(DISSIPATIVE, CONSTANT)
        variance += _parameter_variance(model, samples, motor, rows, is_tracked)
        tracked = tracked_variance[rows]
        drift_variance = np.where(np.isnan(tracked), drift_variance, tracked)
    variance += drift_variance
    if model.training.conditioning.gain is not None:
        variance += (GAIN_SCATTER * rigid[rows]) ** 2
    standing = np.abs(samples.velocity[rows]) < _STANDSTILL_SPEED
    half_width = NORMAL_95 * np.sqrt(variance) + np.where(standing, coulomb_level(model), 0.0)
    return TorquePrediction(torque, half_width, friction, standing)


def coulomb_level(model: FittedModel) -> Float[Array, " j"]:
    """Friction of every joint at low speed, without load, at the joints [N m]."""
    layout = model.layout
    is_low_speed = layout.of_group(LEVEL, MEMORY, BREAKAWAY)
    level = np.zeros(layout.joints)
    np.add.at(level, np.asarray(layout.owner)[is_low_speed], np.abs(model.values[is_low_speed]))
    coupling = model.columns.coupling
    return level if coupling is None else np.abs(coupling.T) @ level


def _parameter_variance(
    model: FittedModel,
    samples: Samples,
    motor: Float[Array, "n j k"],
    rows: Int[Array, " m"],
    excluded: Bool[Array, " p"] | None = None,
) -> Float[Array, "m j"]:
    """Variance w' C w of every row, without the excluded parameters."""
    base = model.training.base
    out = np.zeros((len(rows), samples.joints))
    if base is None:
        return out
    base_columns = np.array([model.layout.index(name) for name in base.names], int)
    covariance = base.covariance if base.posterior is None else base.posterior
    if excluded is not None:
        included = ~excluded[base_columns]
        covariance = covariance * np.outer(included, included)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    s = samples
    for first in range(0, len(rows), _BLOCK):
        block_rows = rows[first : first + _BLOCK]
        dense = model.columns.dense(
            s.position[block_rows],
            s.velocity[block_rows],
            s.acceleration[block_rows],
            motor[block_rows],
        )
        out[first : first + len(block_rows)] = np.sum(
            (dense[..., base_columns] @ root) ** 2, axis=-1
        )
    return out


def _payload_variance(
    model: FittedModel, samples: Samples, rows: Int[Array, " m"]
) -> Float[Array, "m j"] | float:
    """Variance of torque due to the uncertainty of a known payload."""
    if model.payload is None or model.payload.covariance is None:
        return 0.0
    values, vectors = np.linalg.eigh(model.payload.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    last = model.robot.layout.link(-1)
    out = np.empty((len(rows), samples.joints))
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK]
        links = model.columns.links(
            samples.position[block], samples.velocity[block], samples.acceleration[block]
        )
        out[first : first + len(block)] = np.sum((links[..., last] @ root) ** 2, axis=-1)
    return out


def _noise_std(model: FittedModel, samples: Samples) -> Float[Array, "n j"]:
    """Standard deviation of the residuals by friction state, or over all samples if unknown."""
    training = model.training
    if training.residuals.by_state is None:
        rmse = np.zeros(samples.joints) if training.score is None else training.score.rmse
        return np.broadcast_to(rmse, samples.torque.shape)
    return np.asarray(
        training.residuals.by_state[friction_states(model, samples), np.arange(samples.joints)]
    )


def friction_states(model: FittedModel, samples: Samples) -> Int[Array, "n j"]:
    """Friction state of every joint at every sample, run by run."""
    noise = model.training.noise
    settings = None if noise is None else StateSettings(standstill=noise.standstill)
    out = np.empty(samples.torque.shape, int)
    for run in samples.run_slices():
        states = FrictionStates(samples.joints, 1.0 / samples.rate_hz, settings)
        out[run] = states(samples.position[run], samples.friction_velocity[run]).state
    return out


def residuals_by_state(model: FittedModel, samples: Samples) -> Float[Array, "s j"]:
    """RMS of the training residuals in each friction state [N m].

    States with too few samples get the residuals of all samples in motion.
    """
    residual = samples.torque - predicted_torque(model, samples)
    state, moving = friction_states(model, samples), samples.in_motion
    out = np.empty((len(STATES), samples.joints))
    for j in range(samples.joints):
        joint_residual = residual[moving, j]
        out[:, j] = np.sqrt(np.mean(joint_residual**2)) if len(joint_residual) else 0.0
        for k in range(len(STATES)):
            state_residual = joint_residual[state[moving, j] == k]
            if len(state_residual) >= _MIN_STATE_S * samples.rate_hz:
                out[k, j] = np.sqrt(np.mean(state_residual**2))
    return out
