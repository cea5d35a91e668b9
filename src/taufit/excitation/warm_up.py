"""Motions that are no search: warming an arm up, staying within another motion's envelope."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import InfeasibleError
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.scene import Clearances, Scene
from taufit.robot import Limits, Robot


def warm_up(
    robot: Robot,
    limits: Limits,
    scene: Scene | None = None,
    *,
    centre: Float[Array, " j"],
    minutes: float = 10.0,
) -> Fourier:
    """All joints to and fro at up to 70 % of their speed, at different rhythms, for some minutes.

    Swings are made smaller until nothing in the scene is touched.
    """
    for share in np.r_[np.arange(1.0, 0.05, -0.05), 0.03]:
        motion = _swings(robot, limits, centre, minutes, share)
        if scene is None:
            return motion
        q, _, _ = motion.at(np.linspace(0.0, motion.period, 4000))
        if Clearances(robot, scene).values(q).min(initial=np.inf) >= 0:
            return motion
    raise InfeasibleError(
        "no warm-up about this pose keeps clear of everything. Give another pose with --start."
    )


def _swings(
    robot: Robot, limits: Limits, centre: Float[Array, " j"], minutes: float, share: float
) -> Fourier:
    joints = robot.joints
    frequency = 0.05
    harmonics = 6
    sine, cosine = np.zeros((joints, harmonics)), np.zeros((joints, harmonics))
    for i in range(joints):
        k = 2 + i % 4
        room = min(limits.upper[i] - centre[i], centre[i] - limits.lower[i])
        w = 2 * np.pi * frequency * k
        amplitude = (
            share * 0.7 * min(limits.velocity[i] / w, limits.acceleration[i] / w**2, room) / 2
        )
        # Two neighbouring harmonics that cancel in velocity and acceleration at the ends.
        cosine[i, k - 1] = amplitude
        cosine[i, k] = -amplitude * (k / (k + 1)) ** 2
    offset = centre + cosine.sum(1)
    periods = max(1, round(minutes * 60 * frequency))
    return Fourier(offset, sine, cosine, frequency, "amplitude", float(periods))


def envelope_of(motion: Motion, torque: Float[Array, " j"] | None = None) -> Limits:
    """The range, speeds and accelerations another motion uses, as limits for a new one."""
    q, v, a = motion.at(np.linspace(0.0, motion.duration, 20001))
    return Limits(
        q.min(0),
        q.max(0),
        np.abs(v).max(0),
        np.abs(a).max(0),
        np.full(motion.joints, np.inf) if torque is None else torque,
    )
