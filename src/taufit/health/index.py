"""How much friction one run shows beyond what the model expects at its temperature and load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.fitting.selection.friction_terms import correlation_samples
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import friction_torque, rigid_torque
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples
from taufit.terms import needs

# Speed over which the sign of friction turns over in the index [rad/s].
_WIDTH = 0.01
# Fewer samples in motion than this say nothing of a joint.
_FEWEST = 100
# Directions of a payload that the motion shows less than this take no part.
_RIDGE = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class FrictionIndex:
    """What one run says about each joint's friction.

    The residual of the model is regressed on sign(v), v, a constant and the links' own torque of
    every joint (dFc, dFv, an offset, a gain that changed) and, for all joints together, on the ten
    parameters of a body at the last link: what the arm carries is no friction, and the load it puts
    on the gears is taken into what friction is expected to be. The index is

        dFc + dFv speed        [N m],   friction beyond what was expected, at a common speed.

    Attributes:
        coulomb, viscous: dFc [N m] and dFv [N m s/rad].
        index: See above.
        std: Its standard deviation, from this run alone.
        level: The friction the model expects, Fc + Fv speed found in the same way [N m].
        speed: Mean speed in motion [rad/s].
        temperature: Mean in motion [degC], or nan.
        load: Root mean square of the links' torque [N m].
        payload: Mass of the body found at the last link [kg], as far as the motion shows it.
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
    """The index of one run.

    Args:
        model: Fitted while the robot was healthy.
        samples: One run, conditioned like the model's training data.
        speed: At which friction is compared; by default the run's own mean speed.
    """
    moving = samples.in_motion
    keep = samples.keep & moving[:, None]
    _require_motion(samples, keep)
    rigid = rigid_torque(model, samples)
    sign = lowpass(samples, np.tanh(samples.friction_velocity / _WIDTH))
    speeds = np.mean(np.abs(samples.velocity[moving]), axis=0)
    at = speeds if speed is None else np.asarray(speed, float)
    body = _body_columns(model, samples)
    carried = rigid
    for _ in range(2 if needs(model.term_sum, "load") else 1):
        residual = samples.torque - _expected(model, samples, rigid, carried)
        apart = correlation_samples(residual, samples.keep, samples.run)
        joint = _own_columns(sign, samples.velocity, rigid)
        payload = _payload(joint, body, residual, keep)
        carried = rigid + body @ payload
    residual = samples.torque - _expected(model, samples, rigid, carried) - body @ payload
    expected = _friction_torque(model, samples, carried)
    out = np.array(
        [
            _one_joint(
                joint[keep[:, j], j],
                residual[keep[:, j], j],
                expected[keep[:, j], j],
                float(at[j]),
                float(apart[j]),
            )
            for j in range(model.robot.joints)
        ]
    ).T
    temperature = samples.temperature
    return FrictionIndex(
        coulomb=out[0],
        viscous=out[1],
        index=out[2],
        std=out[3],
        level=out[4],
        speed=speeds,
        temperature=np.full(model.robot.joints, np.nan)
        if temperature is None
        else temperature[moving].mean(axis=0),
        load=np.sqrt(np.mean(rigid[moving] ** 2, axis=0)),
        payload=float(payload[0]),
    )


def _require_motion(samples: Samples, keep: Bool[Array, "n j"]) -> None:
    for j, count in enumerate(np.count_nonzero(keep, axis=0)):
        if count < _FEWEST:
            raise RecordingError(
                f"{', '.join(dict.fromkeys(samples.names))}: joint {j + 1} moves in {count} "
                f"samples, and {_FEWEST} are needed to tell its friction. Record a run in which "
                "every joint turns back and forth."
            )


def _own_columns(
    sign: Float[Array, "n j"], velocity: Float[Array, "n j"], rigid: Float[Array, "n j"]
) -> Float[Array, "n j 4"]:
    """What each joint's residual is regressed on by itself."""
    return np.stack([sign, velocity, np.ones_like(sign), rigid], -1)


def _body_columns(model: FittedModel, samples: Samples) -> Float[Array, "n j 10"]:
    """Torque of a unit of each of the last link's ten parameters."""
    links = model.columns.links(samples.position, samples.velocity, samples.acceleration)
    return links[..., model.layout.link(-1)]


def _payload(
    joint: Float[Array, "n j 4"],
    body: Float[Array, "n j 10"],
    residual: Float[Array, "n j"],
    keep: Bool[Array, "n j"],
) -> Float[Array, " 10"]:
    """Parameters of a body at the last link, what the joints explain by themselves taken out.

    A gain is left to the joints here: it would explain much of a payload, and a payload is what is
    asked for.
    """
    square, right = np.zeros((10, 10)), np.zeros(10)
    for j in range(residual.shape[1]):
        own = keep[:, j]
        columns = joint[own, j, :3]
        basis, _ = np.linalg.qr(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300))
        rows = body[own, j] - basis @ (basis.T @ body[own, j])
        aim = residual[own, j] - basis @ (basis.T @ residual[own, j])
        weight = len(aim) / max(float(aim @ aim), 1e-300)
        square += weight * rows.T @ rows
        right += weight * rows.T @ aim
    size = np.sqrt(np.maximum(np.diag(square), 1e-300))
    return np.linalg.pinv(square / np.outer(size, size), rcond=_RIDGE) @ (right / size) / size


def _one_joint(
    columns: Float[Array, "n 4"],
    residual: Float[Array, " n"],
    expected: Float[Array, " n"],
    speed: float,
    apart: float,
) -> tuple[float, float, float, float, float]:
    """dFc, dFv, index, its standard deviation, and the level expected."""
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    basis, upper = np.linalg.qr(columns / size)
    # Links that make no torque in this joint leave an empty column: it takes no part.
    inverse = np.linalg.pinv(upper, rcond=1e-8)
    found = inverse @ (basis.T @ residual) / size
    left = residual - columns @ found
    variance = float(left @ left) / max(len(residual) - 4, 1) * apart
    weights = np.array([1.0, speed, 0.0, 0.0]) / size
    spread = np.sqrt(variance) * np.linalg.norm(weights @ inverse)
    whole = inverse @ (basis.T @ expected) / size
    level = abs(whole[0] + whole[1] * speed)
    return found[0], found[1], found[0] + found[1] * speed, float(spread), float(level)


def _expected(
    model: FittedModel,
    samples: Samples,
    rigid: Float[Array, "n j"],
    carried: Float[Array, "n j"],
) -> Float[Array, "n j"]:
    """The model's torque, with the gears under the load that is carried."""
    motor = model.columns.drive_at(samples, load=carried)
    return rigid + model.columns.term_torque(model.values, samples.acceleration, motor)


def _friction_torque(
    model: FittedModel, samples: Samples, rigid: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """What the model expects friction to be, through the samples' low-pass."""
    motor = model.columns.drive_at(samples, load=rigid)
    return friction_torque(model, samples, motor=motor)
