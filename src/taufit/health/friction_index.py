"""Friction index: friction of one run above the model's at its temperature and load."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.fitting.selection.friction_terms import correlation_samples
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import friction_torque, rigid_torque
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples
from taufit.terms import needs

# Speed over which the sign of friction changes smoothly [rad/s].
_SIGN_WIDTH = 0.01
# Smallest number of samples in motion per joint.
_MIN_SAMPLES = 100
# Relative singular value below which payload directions are ignored.
_PINV_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class FrictionIndex:
    """Friction of each joint in one run.

    The residual of the model is regressed on sign(v), v, a constant and the link torque of every
    joint (dFc, dFv, an offset, a gain change) and, for all joints together, on the ten parameters
    of a payload at the last link, whose load is included in the expected friction. The index is

        dFc + dFv speed        [N m],   friction above the model's, at a common speed.

    Attributes:
        coulomb, viscous: dFc [N m] and dFv [N m s/rad].
        index: See above.
        std: Standard deviation of the index, from this run.
        level: Model friction, Fc + Fv speed fitted in the same way [N m].
        speed: Mean speed in motion [rad/s].
        temperature: Mean temperature in motion [degC], or nan.
        load: RMS torque of the links [N m].
        payload: Estimated mass of the payload [kg].
    """

    coulomb: Float[Array, " j"]
    viscous: Float[Array, " j"]
    index: Float[Array, " j"]
    std: Float[Array, " j"]
    level: Float[Array, " j"]
    speed: Float[Array, " j"]
    temperature: Float[Array, " j"]
    load: Float[Array, " j"]
    payload: float = 0.0


def friction_index(
    model: FittedModel, samples: Samples, *, speed: Float[Array, " j"] | None = None
) -> FrictionIndex:
    """Compute the friction index of one run.

    Args:
        model: Model fitted while the robot was healthy.
        samples: One run, conditioned like the model's training data.
        speed: Speed at which friction is compared [rad/s]; default the mean speed of the run.
    """
    moving = samples.in_motion
    keep = samples.keep & moving[:, None]
    _require_motion(samples, keep)
    rigid = rigid_torque(model, samples)
    sign = lowpass(samples, np.tanh(samples.friction_velocity / _SIGN_WIDTH))
    mean_speed = np.mean(np.abs(samples.velocity[moving]), axis=0)
    comparison_speed = mean_speed if speed is None else np.asarray(speed, float)
    payload_columns = _body_columns(model, samples)
    load_torque = rigid
    for _ in range(2 if needs(model.term_sum, "load") else 1):
        residual = samples.torque - _model_torque(model, samples, rigid, load_torque)
        correlation_length = correlation_samples(residual, samples.keep, samples.run)
        joint_columns = _joint_columns(sign, samples.velocity, rigid)
        payload = _estimate_payload(joint_columns, payload_columns, residual, keep)
        load_torque = rigid + payload_columns @ payload
    residual = (
        samples.torque
        - _model_torque(model, samples, rigid, load_torque)
        - payload_columns @ payload
    )
    model_friction = _model_friction(model, samples, load_torque)
    joint_values = np.array(
        [
            _joint_index(
                joint_columns[keep[:, j], j],
                residual[keep[:, j], j],
                model_friction[keep[:, j], j],
                float(comparison_speed[j]),
                float(correlation_length[j]),
            )
            for j in range(model.robot.joints)
        ]
    ).T
    temperature = samples.temperature
    return FrictionIndex(
        coulomb=joint_values[0],
        viscous=joint_values[1],
        index=joint_values[2],
        std=joint_values[3],
        level=joint_values[4],
        speed=mean_speed,
        temperature=np.full(model.robot.joints, np.nan)
        if temperature is None
        else temperature[moving].mean(axis=0),
        load=np.sqrt(np.mean(rigid[moving] ** 2, axis=0)),
        payload=float(payload[0]),
    )


def _require_motion(samples: Samples, keep: Bool[Array, "n j"]) -> None:
    for j, count in enumerate(np.count_nonzero(keep, axis=0)):
        if count < _MIN_SAMPLES:
            raise RecordingError(
                f"{', '.join(dict.fromkeys(samples.names))}: joint {j + 1} moves in {count} "
                f"samples, and {_MIN_SAMPLES} are needed to tell its friction. Record a run in "
                f"which "
                "every joint turns back and forth."
            )


def _joint_columns(
    sign: Float[Array, "n j"], velocity: Float[Array, "n j"], rigid: Float[Array, "n j"]
) -> Float[Array, "n j 4"]:
    """Regressor columns of single joints."""
    return np.stack([sign, velocity, np.ones_like(sign), rigid], -1)


def _body_columns(model: FittedModel, samples: Samples) -> Float[Array, "n j 10"]:
    """Torque per unit of each of the last link's ten parameters."""
    links = model.columns.links(samples.position, samples.velocity, samples.acceleration)
    return links[..., model.layout.link(-1)]


def _estimate_payload(
    joint_columns: Float[Array, "n j 4"],
    payload_columns: Float[Array, "n j 10"],
    residual: Float[Array, "n j"],
    keep: Bool[Array, "n j"],
) -> Float[Array, " 10"]:
    """Parameters of a payload at the last link, single-joint columns projected out.

    Gain changes are not projected out here: they would absorb much of the payload.
    """
    gram, right = np.zeros((10, 10)), np.zeros(10)
    for j in range(residual.shape[1]):
        is_used = keep[:, j]
        columns = joint_columns[is_used, j, :3]
        basis, _ = np.linalg.qr(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300))
        rows = payload_columns[is_used, j] - basis @ (basis.T @ payload_columns[is_used, j])
        target = residual[is_used, j] - basis @ (basis.T @ residual[is_used, j])
        weight = len(target) / max(float(target @ target), 1e-300)
        gram += weight * rows.T @ rows
        right += weight * rows.T @ target
    size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    return (
        np.linalg.pinv(gram / np.outer(size, size), rcond=_PINV_TOLERANCE) @ (right / size) / size
    )


def _joint_index(
    columns: Float[Array, "n 4"],
    residual: Float[Array, " n"],
    expected: Float[Array, " n"],
    speed: float,
    correlation_length: float,
) -> tuple[float, float, float, float, float]:
    """dFc, dFv, index, its standard deviation, and model friction level."""
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    basis, upper = np.linalg.qr(columns / size)
    # A joint without link torque has an empty column, ignored by the pseudo-inverse.
    inverse = np.linalg.pinv(upper, rcond=1e-8)
    coefficients = inverse @ (basis.T @ residual) / size
    error = residual - columns @ coefficients
    variance = float(error @ error) / max(len(residual) - 4, 1) * correlation_length
    weights = np.array([1.0, speed, 0.0, 0.0]) / size
    std = np.sqrt(variance) * np.linalg.norm(weights @ inverse)
    friction_coefficients = inverse @ (basis.T @ expected) / size
    level = abs(friction_coefficients[0] + friction_coefficients[1] * speed)
    return (
        coefficients[0],
        coefficients[1],
        coefficients[0] + coefficients[1] * speed,
        float(std),
        float(level),
    )


def _model_torque(
    model: FittedModel,
    samples: Samples,
    rigid: Float[Array, "n j"],
    load_torque: Float[Array, "n j"],
) -> Float[Array, "n j"]:
    """Model torque, with gear load including the payload."""
    motor = model.columns.drive_at(samples, load=load_torque)
    return rigid + model.columns.term_torque(model.values, samples.acceleration, motor)


def _model_friction(
    model: FittedModel, samples: Samples, rigid: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """Model friction, low-passed like the samples."""
    motor = model.columns.drive_at(samples, load=rigid)
    return friction_torque(model, samples, motor=motor)
