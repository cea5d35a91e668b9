"""Kinds of motion: their regressor columns, prior information and speed limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.dynamics.base_parameters import base_parameters
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.objective import MotionInformation
from taufit.excitation.sampled_motion import SampledMotion
from taufit.excitation.scene import Clearances, Scene
from taufit.model.torque_model import TorqueModel
from taufit.robot import JointLimits, Robot
from taufit.signals import Samples


def payload_columns(model: TorqueModel) -> tuple[Int[Array, " b"], tuple[int, ...]]:
    """Columns for a payload on an identified robot: the last link, with the joints as nuisance.

    Returns the columns and the positions of mass and first moments among them, the parameters of
    interest.
    """
    columns = np.r_[model.layout.link(-1), model.layout.after_links]
    return columns, tuple(range(4))


def limit_arm_speed(limits: JointLimits, arm_speed: float = 0.5) -> JointLimits:
    """Halve the speed limits of the first three joints; the wrist keeps its own.

    Slow arm joints separate friction from inertia and average ripple; the wrist excites inertia.
    """
    factor = np.ones(len(limits.velocity))
    factor[: min(3, len(factor))] = arm_speed
    return replace(limits, velocity=limits.velocity * factor)


def motion_from_recording(samples: Samples) -> SampledMotion:
    """Motion of a recording, as input for planning the next one."""
    moving = samples.in_motion & (samples.run == samples.run[0])
    step = max(1, round(samples.rate_hz / 100.0))
    return SampledMotion(samples.time[moving][::step], samples.position[moving][::step])


def prior_information(
    model: TorqueModel, motions: list[Motion], columns: Int[Array, " b"] | None = None
) -> Float[Array, "b b"]:
    """Information of earlier motions, W'W per sample of one of them."""
    if columns is None:
        columns = np.asarray(base_parameters(model).columns)
    information = MotionInformation(model, columns, np.ones(model.robot.joints))
    total = np.zeros((len(columns), len(columns)))
    for motion in motions:
        if motion.joints != model.robot.joints:
            raise InfeasibleError(
                f"an earlier motion has {motion.joints} joints, the arm {model.robot.joints}."
            )
        time = np.linspace(0.0, motion.duration, 1000)
        with np.errstate(over="ignore", invalid="ignore"):
            total += information.matrix(*motion.at(time))[0]
    if not np.isfinite(total).all():
        raise TaufitError("an earlier motion (--after) has speeds beyond all numbers.")
    return total


def warm_up(
    robot: Robot,
    limits: JointLimits,
    scene: Scene | None = None,
    *,
    centre: Float[Array, " j"],
    minutes: float = 10.0,
) -> Fourier:
    """Plan a warm-up: all joints swing at up to 70 % of their speed, at different frequencies.

    Amplitudes are reduced until all clearances of the scene are kept.
    """
    for scale in np.r_[np.arange(1.0, 0.05, -0.05), 0.03]:
        motion = _swings(robot, limits, centre, minutes, scale)
        if scene is None:
            return motion
        q, _, _ = motion.at(np.linspace(0.0, motion.period, 4000))
        if Clearances(robot, scene).values(q).min(initial=np.inf) >= 0:
            return motion
    raise InfeasibleError(
        "no warm-up about this pose keeps clear of everything. Give another pose with --start."
    )


def _swings(
    robot: Robot, limits: JointLimits, centre: Float[Array, " j"], minutes: float, scale: float
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
            scale * 0.7 * min(limits.velocity[i] / w, limits.acceleration[i] / w**2, room) / 2
        )
        # Two neighbouring harmonics that cancel in velocity and acceleration at the ends.
        cosine[i, k - 1] = amplitude
        cosine[i, k] = -amplitude * (k / (k + 1)) ** 2
    offset = centre + cosine.sum(1)
    periods = max(1, round(minutes * 60 * frequency))
    return Fourier(offset, sine, cosine, frequency, "amplitude", float(periods))


def limits_of_motion(motion: Motion, torque: Float[Array, " j"] | None = None) -> JointLimits:
    """Ranges, speeds and accelerations of a motion, as limits for a new one."""
    q, v, a = motion.at(np.linspace(0.0, motion.duration, 20001))
    return JointLimits(
        q.min(0),
        q.max(0),
        np.abs(v).max(0),
        np.abs(a).max(0),
        np.full(motion.joints, np.inf) if torque is None else torque,
    )
