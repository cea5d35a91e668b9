"""Open-loop replay: positions of a servo arm that follows recorded commands."""

from __future__ import annotations

import math

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import LEAD_S, CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

MAX_STEP_S = 5e-3


def replay(
    axes: JointAxes,
    servo: ServoParameters,
    motion: CommandedMotion,
    floor: Floor | None = None,
    *,
    max_step: float = MAX_STEP_S,
) -> Float[Array, "n j"]:
    """Positions of the simulated arm, which starts at rest in the first measured pose."""
    return _roll_out(axes, servo, motion, floor, False, max_step)[0]


def replay_slopes(
    axes: JointAxes, servo: ServoParameters, motion: CommandedMotion, floor: Floor | None = None
) -> tuple[Float[Array, "n j"], Float[Array, "n j p"]]:
    """Positions, and their derivatives by the fields of every joint and the acceleration limit.

    Column 6 i + k is field k of joint i in the order of `JOINT_FIELDS`; the last column is the
    acceleration limit of all joints.
    """
    return _roll_out(axes, servo, motion, floor, True, MAX_STEP_S)


def _roll_out(
    axes: JointAxes,
    servo: ServoParameters,
    motion: CommandedMotion,
    floor: Floor | None,
    slopes: bool,
    max_step: float,
) -> tuple[Float[Array, "n j"], Float[Array, "_ j p"]]:
    rows, joints = motion.position.shape
    out = np.empty((rows, joints))
    gradient = np.empty((rows, joints, 6 * joints + 1) if slopes else (0, joints, 0))
    substeps = math.ceil(motion.step / max_step - 1e-9)
    plane = [] if floor is None else [*floor.values(), *axes.point, *axes.up]
    arguments = (
        np.ascontiguousarray(axes.rotation),
        np.ascontiguousarray(axes.position),
        np.ascontiguousarray(axes.parameters),
        axes.gravity,
        servo.matrix(),
        np.ascontiguousarray(motion.integral),
        motion.grid_step,
        LEAD_S,
        motion.position[0].copy(),
        motion.step,
        substeps,
        np.array(plane),
    )
    if _kernel is None:
        from taufit.core.errors import TaufitError

        raise TaufitError(
            "replay of servo arms needs taufit's compiled kernel; install taufit with a C++ "
            "compiler or from a wheel."
        )
    _kernel.servo_rollout(*arguments, out, gradient)
    return out, gradient
