"""Recordings of a simulated servo arm, with the steps of its encoders and commands."""

from __future__ import annotations

import numpy as np

from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay

FINE_STEP_S = 1e-3  # integration of the simulated arm [s]


def simulate_recording(
    axes: JointAxes,
    servo: ServoParameters,
    motion: CommandedMotion,
    floor: Floor | None,
    encoder_step: float,
) -> CommandedMotion:
    """Recording of a simulated arm that is sent the commands of a motion.

    Args:
        axes: Simulated arm.
        servo: Its servos; the offset includes the mean truncation, half an encoder step.
        motion: Commands and first pose.
        floor: Floor under the arm.
        encoder_step: Step of commands and encoders [rad]; 0 for none.
    """
    time = np.arange(len(motion.position)) * motion.step
    command = motion.command
    if encoder_step > 0:
        command = np.floor(command / encoder_step) * encoder_step
        servo = servo.replace(offset=servo.offset + 0.5 * encoder_step)
    truncated_motion = CommandedMotion.from_arrays(time, command, motion.position, motion.name)
    position = replay(axes, servo, truncated_motion, floor, max_step=FINE_STEP_S)[: len(time)]
    if encoder_step > 0:
        position = np.round(position / encoder_step) * encoder_step
    return CommandedMotion.from_arrays(time, motion.command, position, motion.name)
