"""How much friction one run shows beyond what the model expects at its temperature and load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque, rigid_torque
from taufit.selection.friction_terms import correlation_samples
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples

# Speed over which the sign of friction turns over in the index [rad/s].
_WIDTH = 0.01
# Fewer samples in motion than this say nothing of a joint.
_FEWEST = 100


@dataclass(frozen=True, slots=True, eq=False)
class FrictionIndex:
    """What one run says about each joint's friction.

    The torque the model leaves over is regressed, joint by joint, on sign(v), v, a constant and the
    links' own torque: dFc, dFv, an offset, and a gain or payload that changed. The index is

        dFc + dFv speed        [N m],   friction beyond what was expected, at a common speed.

    Attributes:
        coulomb, viscous: dFc [N m] and dFv [N m s/rad].
        index: See above.
        std: Its standard deviation, from this run alone.
        level: The friction the model expects, Fc + Fv speed found in the same way [N m].
        speed: Mean speed in motion [rad/s].
        temperature: Mean in motion [degC], or nan.
        load: Root mean square of the links' torque [N m].
    """

    coulomb: Float[Array, " j"]
    viscous: Float[Array, " j"]
    index: Float[Array, " j"]
    std: Float[Array, " j"]
    level: Float[Array, " j"]
    speed: Float[Array, " j"]
    temperature: Float[Array, " j"]
    load: Float[Array, " j"]


def friction_index(
    model: FittedModel, samples: Samples, *, speed: Float[Array, " j"] | None = None
) -> FrictionIndex:
    """The index of one run.

    Args:
        model: Fitted while the robot was healthy.
        samples: One run, conditioned like the model's training data.
        speed: At which friction is compared; by default the run's own mean speed.
    """
    joints = model.robot.joints
    moving = samples.in_motion
    residual = samples.torque - predicted_torque(model, samples)
    rigid = rigid_torque(model, samples)
    sign = lowpass(samples, np.tanh(samples.friction_velocity / _WIDTH))
    apart = correlation_samples(residual, samples.keep, samples.run)
    speeds = np.mean(np.abs(samples.velocity[moving]), axis=0)
    at = speeds if speed is None else np.asarray(speed, float)
    expected = _friction_torque(model, samples, rigid)
    out = np.full((5, joints), np.nan)
    for j in range(joints):
        keep = samples.keep[:, j] & moving
        count = np.count_nonzero(keep)
        if count < _FEWEST:
            raise RecordingError(
                f"{', '.join(dict.fromkeys(samples.names))}: joint {j + 1} moves in {count} "
                f"samples, and {_FEWEST} are needed to tell its friction. Record a run in which "
                "every joint turns back and forth."
            )
        columns = np.stack(
            [sign[keep, j], samples.velocity[keep, j], np.ones(count), rigid[keep, j]], -1
        )
        size = np.linalg.norm(columns, axis=0)
        size[size == 0.0] = 1.0
        basis, upper = np.linalg.qr(columns / size)
        e = residual[keep, j]
        # Links that make no torque in this joint leave an empty column: it takes no part.
        inverse = np.linalg.pinv(upper, rcond=1e-8)
        found = inverse @ (basis.T @ e) / size
        left = e - columns @ found
        variance = float(left @ left) / max(int(count) - 4, 1) * apart[j]
        weights = np.array([1.0, at[j], 0.0, 0.0]) / size
        spread = np.sqrt(variance) * np.linalg.norm(weights @ inverse)
        whole = inverse @ (basis.T @ expected[keep, j]) / size
        level = abs(whole[0] + whole[1] * at[j])
        out[:, j] = found[0], found[1], found[0] + found[1] * at[j], spread, level
    temperature = samples.temperature
    return FrictionIndex(
        coulomb=out[0],
        viscous=out[1],
        index=out[2],
        std=out[3],
        level=out[4],
        speed=speeds,
        temperature=np.full(joints, np.nan)
        if temperature is None
        else temperature[moving].mean(axis=0),
        load=np.sqrt(np.mean(rigid[moving] ** 2, axis=0)),
    )


def _friction_torque(
    model: FittedModel, samples: Samples, rigid: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """What the model expects friction to be, through the samples' low-pass."""
    columns = model.columns
    friction = columns.to_joints(columns.friction_at(samples, load=rigid))
    return friction @ model.values[model.layout.friction]
