"""Random Fourier motion for any robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.excitation import Fourier
from taufit.robot import Robot


def random_fourier(  # noqa: PLR0913 - the public call has one keyword per choice
    robot: Robot,
    *,
    seed: int = 0,
    harmonics: int = 5,
    frequency_hz: float = 0.1,
    periods: float = 1.0,
    centre: Float[Array, " j"] | Sequence[float] | None = None,
    at_rest: bool = True,
    speed: float = 1.6,
    reach: float = 1.2,
    acceleration: float = 6.0,
) -> Fourier:
    """Make a random Fourier motion within the robot's limits.

    Args:
        robot: Robot with its limits.
        seed: Seed of the coefficients.
        harmonics: Number of harmonics.
        frequency_hz: Frequency of the first harmonic [Hz].
        periods: Number of periods played.
        centre: Start and end pose; None: the middle of the joint ranges.
        at_rest: Whether it starts and ends at rest, at `centre`.
        speed: Maximum joint speed [rad/s], besides its limit.
        reach: Maximum distance from the centre [rad].
        acceleration: Maximum acceleration [rad/s^2].
    """
    limits, joints = robot.limits, robot.joints
    if centre is None:
        finite = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        low, high = np.where(finite, limits.lower, 0.0), np.where(finite, limits.upper, 0.0)
        centre = 0.5 * (low + high)
    centre = np.asarray(centre, float)
    if centre.shape != (joints,):
        raise InfeasibleError(f"the centre of a motion of {robot.name} has {joints} numbers.")
    rng = np.random.default_rng(seed)
    order = np.arange(1, harmonics + 1)
    sine = rng.normal(size=(joints, harmonics)) / np.sqrt(order)
    cosine = rng.normal(size=(joints, harmonics)) / np.sqrt(order)
    if at_rest:
        if harmonics < 3:
            raise InfeasibleError("a motion that starts and ends at rest needs 3 harmonics.")
        # Velocity form: sum a = 0 (velocity), sum l b = 0 (acceleration), sum b/l = 0 (position).
        sine = _project_to_conditions(sine, np.ones((1, harmonics)))
        cosine = _project_to_conditions(cosine, np.stack([order, 1.0 / order]).astype(float))
    motion = Fourier(np.zeros(joints), sine, cosine, frequency_hz, "velocity", 1.0)
    time = np.linspace(0.0, motion.period, 64 * harmonics + 1)
    q, v, a = (np.abs(x).max(0) for x in motion.at(time))
    room = np.minimum(limits.upper - centre, centre - limits.lower)
    if np.any(room <= 0.0):
        joint = robot.joint_names[int(np.argmin(room))]
        raise InfeasibleError(f"the centre of the motion is outside the limits of {joint}.")
    scale = np.minimum.reduce(
        [
            np.minimum(0.9 * room, reach) / q,
            np.minimum(0.9 * limits.velocity, speed) / v,
            np.minimum(0.9 * limits.acceleration, acceleration) / a,
        ]
    )[:, None]
    return Fourier(centre, scale * sine, scale * cosine, frequency_hz, "velocity", periods)


def _project_to_conditions(
    coefficients: Float[Array, "j h"], conditions: Float[Array, "c h"]
) -> Float[Array, "j h"]:
    """Projection of each row onto `conditions` x = 0."""
    basis = np.linalg.qr(conditions.T)[0]
    return coefficients - coefficients @ basis @ basis.T
