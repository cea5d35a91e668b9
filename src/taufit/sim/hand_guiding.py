"""Simulated hand guiding along a path: force of the hand with and without compensated payload.

The robot compensates its own gravity, that of the payload if set, and part of its friction;
inertia is not compensated. So the hand gives

    J' F = M(q) a + h(q, v) + remaining friction - compensated gravity,

including any weight that is not compensated. The hand is a spring and a damper between the target
and the actual position of the grip, with noise of muscles in all directions that grows with force.
The force is that of a sensor between payload and handle, in axes that tilt with it: the weight
carried by a hand has lateral components too.

After section 4.4 of [Xu2024]; noise of muscles after [Jones2002].
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass
from taufit.sim.mujoco_arm import build_arm, import_mujoco

_STEP_S = 0.002
# Stiffness and damping of a hand, linear and rotational [N/m, N s/m, N m/rad, N m s/rad].
_STIFFNESS, _DAMPING = 800.0, 120.0
_TURN_STIFFNESS, _TURN_DAMPING = 30.0, 3.0
# Standard deviation of muscle noise relative to the force, and its corner frequency [Hz].
_NOISE_RATIO, _NOISE_CORNER_HZ = 0.05, 2.0
# Speed over which friction reverses in the simulation [rad/s].
_REVERSAL_SPEED = 0.02
_SETTLE_S = 1.5
# Minimum ratio of smallest to largest singular value of the Jacobian; below, the pose is singular.
_SINGULAR_RATIO = 0.2
# Mass of the force sensor between payload and handle, not compensated [kg].
SENSOR_MASS = 0.0917


@dataclass(frozen=True, slots=True, eq=False)
class GuidedMotion:
    """Simulated hand guiding around a rectangle.

    Attributes:
        time: Time [s].
        force: Hand force in sensor axes, which are the base axes at the start [N].
        position: Position of the grip [m].
        target: Target position of the grip [m].
    """

    time: Float[Array, " n"]
    force: Float[Array, "n 3"]
    position: Float[Array, "n 3"]
    target: Float[Array, "n 3"]

    @property
    def mean_force(self) -> Float[Array, " 3"]:
        """Mean magnitude of the force along x, y and z [N]."""
        return np.abs(self.force).mean(axis=0)

    @property
    def variance(self) -> Float[Array, " 3"]:
        """Variance of the force along x, y and z [N^2]."""
        return self.force.var(axis=0)


def simulate_hand_guiding(  # noqa: PLR0913 - the public call has one keyword per choice
    robot: Robot,
    payload: Float[Array, " 10"],
    *,
    compensated: Float[Array, " 10"] | None = None,
    friction: Float[Array, " j"] | None = None,
    friction_compensation: float = 0.9,
    start: Float[Array, " j"] | None = None,
    sides: tuple[tuple[float, float, float], tuple[float, float, float]] = (
        (0.0, 0.3, 0.0),
        (0.2, 0.0, 0.0),
    ),
    grip: tuple[float, float, float] = (0.0, 0.0, 0.12),
    seconds: float = 8.0,
    seed: int = 0,
) -> GuidedMotion:
    """Simulate hand guiding of the tool once around a rectangle and record the force.

    Args:
        robot: Robot with inertial parameters, which it compensates.
        payload: True payload, ten parameters in the frame of the last link.
        compensated: Compensated payload; None for nothing. Mass and centre count: only gravity is
            compensated.
        friction: Coulomb friction of each joint [N m]; default: 3 % of its torque limit.
        friction_compensation: Fraction of friction that the robot compensates.
        start: Start pose; default: arm reaching forward, tool down.
        sides: Sides of the rectangle from the first corner, in the base frame [m].
        grip: Position of sensor and handle in the frame of the last link [m].
        seconds: Duration [s].
        seed: Seed of the muscle noise.
    """
    mujoco = import_mujoco()
    joints = robot.joints
    if joints != 6 and start is None:
        raise TaufitError("give a start pose for an arm that has not six joints.")
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0]) if start is None else np.array(start, float)
    if friction is None:
        limit = robot.limits.torque
        friction = np.where(np.isfinite(limit), 0.03 * limit, 1.0)
    remaining_friction = (1.0 - friction_compensation) * np.asarray(friction, float)
    handle = np.array(grip, float)
    sensor = from_centre_of_mass(SENSOR_MASS, handle, 1e-5 * np.eye(3))
    robot.require_serial("simulated hand guiding")
    true_arm = build_arm(robot, payload=np.asarray(payload, float) + sensor)
    compensated_arm = build_arm(
        robot, payload=None if compensated is None else np.asarray(compensated)
    )
    model, data = true_arm.model, true_arm.data
    tool, v, zeros = joints, np.zeros(joints), np.zeros((1, joints))  # bodies count from one
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    start_rotation = data.xmat[tool].reshape(3, 3).copy()
    first, second = np.array(sides, float)
    corners = np.array([0 * first, first, first + second, second, 0 * first])
    steps = int((seconds + _SETTLE_S) / _STEP_S)
    time = np.arange(steps) * _STEP_S
    target = _points_along(corners, np.clip((time - _SETTLE_S) / seconds, 0.0, 1.0))
    target += data.xpos[tool] + start_rotation @ handle
    speed = np.gradient(target, _STEP_S, axis=0)
    noise = _muscle_noise(steps, seed)
    force, position = np.zeros((steps, 3)), np.zeros((steps, 3))
    jacobian, rotation_jacobian = np.zeros((3, joints)), np.zeros((3, joints))
    mass = np.zeros((joints, joints))
    for k in range(steps):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        rotation = data.xmat[tool].reshape(3, 3)
        grip_position = data.xpos[tool] + rotation @ handle
        mujoco.mj_jac(model, data, jacobian, rotation_jacobian, grip_position, tool)
        for column, unit in enumerate(np.eye(joints)):
            mujoco.mj_mulM(model, data, mass[column], unit)
        if k % 50 == 0:
            _require_regular_pose(jacobian, time[k])
        hand = _STIFFNESS * (target[k] - grip_position) + _DAMPING * (speed[k] - jacobian @ v)
        hand = hand + _NOISE_RATIO * float(np.linalg.norm(hand)) * noise[k]
        twist = 0.5 * np.cross(rotation, start_rotation, axis=0).sum(axis=1)
        moment = _TURN_STIFFNESS * twist - _TURN_DAMPING * (rotation_jacobian @ v)
        compensation = compensated_arm.torque(q[None], zeros, zeros)[0]
        direction = np.tanh(v / _REVERSAL_SPEED)
        drive = (
            compensation
            - data.qfrc_bias
            - remaining_friction * direction
            + jacobian.T @ hand
            + rotation_jacobian.T @ moment
        )
        # Friction reverses fast: implicit in velocity, to allow larger steps.
        implicit_damping = (
            np.diag(remaining_friction / _REVERSAL_SPEED * (1.0 - direction**2)) * _STEP_S
        )
        implicit_damping += _STEP_S * (
            _DAMPING * jacobian.T @ jacobian
            + _TURN_DAMPING * rotation_jacobian.T @ rotation_jacobian
        )
        v = v + np.linalg.solve(mass + implicit_damping, drive) * _STEP_S
        q = q + v * _STEP_S
        force[k], position[k] = start_rotation @ rotation.T @ hand, grip_position
    is_guided = time >= _SETTLE_S
    return GuidedMotion(
        time[is_guided] - _SETTLE_S, force[is_guided], position[is_guided], target[is_guided]
    )


def _require_regular_pose(jacobian: Float[Array, "3 j"], time: float) -> None:
    """TaufitError for a path through poses near a singularity."""
    singular_values = (
        np.linalg.svd(jacobian, compute_uv=False) if np.all(np.isfinite(jacobian)) else [1, 0]
    )
    if not singular_values[-1] > _SINGULAR_RATIO * singular_values[0]:
        raise TaufitError(
            f"the arm is stretched or folded {max(time - _SETTLE_S, 0.0):.1f} s into the path. "
            "Choose another start pose, or shorter sides."
        )


def _muscle_noise(steps: int, seed: int) -> Float[Array, "n 3"]:
    """Noise of unit variance in three directions, below `_NOISE_CORNER_HZ` (two poles)."""
    pole = float(np.exp(-2.0 * np.pi * _NOISE_CORNER_HZ * _STEP_S))
    white = np.random.default_rng(seed).standard_normal((steps + 1000, 3))
    first_stage = second_stage = np.zeros(3)
    filtered = np.empty_like(white)
    for k, sample in enumerate(white):
        first_stage = pole * first_stage + (1.0 - pole) * sample
        second_stage = pole * second_stage + (1.0 - pole) * first_stage
        filtered[k] = second_stage
    # Variance after two equal poles.
    size = (1.0 - pole) ** 4 * (1.0 + pole**2) / (1.0 - pole**2) ** 3
    return filtered[1000:] / np.sqrt(size)


def _points_along(corners: Array, fraction: Array) -> Array:
    """Points along the corners, each side starting and ending at rest."""
    sides = len(corners) - 1
    side = np.minimum((fraction * sides).astype(int), sides - 1)
    s = fraction * sides - side
    smooth = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return corners[side] + smooth[:, None] * (corners[side + 1] - corners[side])


__all__ = ["SENSOR_MASS", "GuidedMotion", "simulate_hand_guiding"]
