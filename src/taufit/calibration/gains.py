"""Drive gains from recordings with and without a known mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.calibration.known_mass import identify_gains
from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.model import predicted_rows
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording, require_joints
from taufit.robot import Robot
from taufit.signals import Gains, Samples, condition
from taufit.terms import friction_model

# Rows per second used: neighbouring samples are correlated by the low-pass.
_RATE_HZ = 25.0


def gains_from_mass(
    robot: Robot,
    unloaded: Sequence[Recording],
    loaded: Sequence[Recording],
    mass: float,
    *,
    mass_std: float = 0.0,
    method: str = "total_least_squares",
    cutoff_hz: float = 5.0,
) -> Gains:
    """Estimate drive gains: joint torque per unit of the recorded signal.

    Args:
        robot: Robot with its mounting.
        unloaded: Recordings without the mass.
        loaded: Recordings with it on the last link, ideally of the same motion.
        mass: Known mass [kg].
        mass_std: Standard deviation of the mass [kg].
        method: "total_least_squares", "least_squares" or "constrained".
        cutoff_hz: Cut-off of the low-pass on motion and signal [Hz].
    """
    model = TorqueModel(
        robot, friction_model("presliding", load=False), rotor_inertia=True, offset=True
    )
    unloaded_samples, loaded_samples = (
        _condition_unscaled(runs, robot, cutoff_hz) for runs in (unloaded, loaded)
    )
    unloaded_rows, loaded_rows = _rows(model, unloaded_samples), _rows(model, loaded_samples)
    last_link = robot.layout.link(-1)
    return identify_gains(
        unloaded_rows[0],
        unloaded_rows[1],
        loaded_rows[0],
        loaded_rows[1],
        loaded_rows[1][:, :, last_link],
        mass,
        method=method,
        mass_std=mass_std,
        block=int(4 * _RATE_HZ),
    )


def _condition_unscaled(runs: Sequence[Recording], robot: Robot, cutoff_hz: float) -> Samples:
    """Condition recordings with a gain of one: the signal in its recorded unit."""
    if not runs:
        raise RecordingError("gains from a known mass need a recording with it and one without.")
    for run in runs:
        require_joints(run.joints, robot.joints, name=run.name, robot=robot.name)
    unit_gains = np.ones(robot.joints)
    unscaled = [
        replace(run, gain=unit_gains, gain_std=0 * unit_gains, meta={**run.meta, "gains": "given"})
        for run in runs
    ]
    return condition(unscaled, cutoff_hz=cutoff_hz)


def _rows(
    model: TorqueModel, samples: Samples
) -> tuple[Float[Array, "n j"], Float[Array, "n j p"]]:
    rows = np.flatnonzero(samples.in_motion)[:: max(1, round(samples.rate_hz / _RATE_HZ))]
    return samples.torque[rows], predicted_rows(model, samples)[rows]
