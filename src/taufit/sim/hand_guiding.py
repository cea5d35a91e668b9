"""A hand leads the arm along a path: how much force that takes, with and without the payload known.

The arm carries itself (gravity, inertia, part of its friction) by its own model; the payload only
where it is compensated. The hand is a spring and a damper between where it wants the tool to be and
where it is, so the force it needs is what the arm does not do by itself:

    M(q) a + h(q, v) + friction = tau_compensation + J' F_hand.

After section 4.4 of [Xu2024].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import TaufitError
from taufit.robot import Robot
from taufit.sim.mujoco_arm import build_arm, import_mujoco

_STEP = 0.002
# A hand's stiffness and damping, along and about [N/m, N s/m, N m/rad, N m s/rad].
_STIFFNESS, _DAMPING = 1500.0, 250.0
_TURN_STIFFNESS, _TURN_DAMPING = 60.0, 6.0
# Speed over which friction turns over in the simulation [rad/s].
_SLIP = 0.02
_SETTLE = 1.5
# The rectangle leans towards the base by this much per metre upwards: a stretched arm is stiff.
_LEAN = -0.4
# Share of the inertia it knows that the arm takes off the hand; the whole of it would run away.
_INERTIA_SHARE = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class Guiding:
    """One guided tour of the rectangle.

    Attributes:
        time: [s].
        force: Of the hand in the base frame [N].
        position: Of the tool [m].
        wanted: Where the hand wanted it [m].
    """

    time: Float[Array, " n"]
    force: Float[Array, "n 3"]
    position: Float[Array, "n 3"]
    wanted: Float[Array, "n 3"]

    @property
    def mean_force(self) -> Float[Array, " 3"]:
        """Mean of the force's magnitude along x, y and z [N]."""
        return np.abs(self.force).mean(axis=0)


def guide(
    robot: Robot,
    payload: Float[Array, " 10"],
    *,
    compensated: Float[Array, " 10"] | None = None,
    friction: Float[Array, " j"] | None = None,
    friction_compensation: float = 0.9,
    start: Float[Array, " j"] | None = None,
    size: tuple[float, float] = (0.3, 0.25),
    seconds: float = 6.0,
) -> Guiding:
    """Lead the tool once round an upright rectangle and record the hand's force.

    Args:
        robot: With its inertial parameters; the arm knows itself.
        payload: What it really carries, ten parameters in the last link's frame.
        compensated: What it believes to carry; None for nothing.
        friction: Coulomb friction of each joint [N m]; by default 3 % of its torque limit.
        friction_compensation: Share of friction the arm takes off the hand.
        start: Pose to begin with; arm reaching forward by default.
        size: Of the rectangle, sideways and upwards [m].
        seconds: For the tour.
    """
    mujoco = import_mujoco()
    joints = robot.joints
    if joints != 6 and start is None:
        raise TaufitError("give a start pose for an arm that has not six joints.")
    q = np.array([0.0, -1.2, 1.6, -2.0, -1.57, 0.0]) if start is None else np.array(start, float)
    if friction is None:
        limit = robot.limits.torque
        friction = np.where(np.isfinite(limit), 0.03 * limit, 1.0)
    real = build_arm(robot, payload=np.asarray(payload, float))
    known = build_arm(robot, payload=None if compensated is None else np.asarray(compensated))
    model, data = real.model, real.data
    tool = joints  # bodies count from one
    v = np.zeros(joints)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    home, upright = data.xpos[tool].copy(), data.xmat[tool].reshape(3, 3).copy()
    along, up = np.array([0.0, size[0], 0.0]), np.array([_LEAN * size[1], 0.0, size[1]])
    corners = home + np.array([0 * up, along, along + up, up, 0 * up])
    steps = int((seconds + _SETTLE) / _STEP)
    time = np.arange(steps) * _STEP
    wanted = _along(corners, np.clip((time - _SETTLE) / seconds, 0.0, 1.0))
    speed = np.gradient(wanted, _STEP, axis=0)
    force, position = np.zeros((steps, 3)), np.zeros((steps, 3))
    jacobian, turning = np.zeros((3, joints)), np.zeros((3, joints))
    mass = np.zeros((joints, joints))
    taken = np.zeros((joints, joints))
    for k in range(steps):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_jacBody(model, data, jacobian, turning, tool)
        for column, unit in enumerate(np.eye(joints)):
            mujoco.mj_mulM(model, data, mass[column], unit)
        at, turned = data.xpos[tool], data.xmat[tool].reshape(3, 3)
        hand = _STIFFNESS * (wanted[k] - at) + _DAMPING * (speed[k] - jacobian @ v)
        twist = 0.5 * sum(np.cross(turned[:, i], upright[:, i]) for i in range(3))
        moment = _TURN_STIFFNESS * twist - _TURN_DAMPING * (turning @ v)
        # The arm's own part: the torque its model says for the way it moves now.
        own = known.torque(q[None], v[None], np.zeros((1, joints)))[0]
        for column, unit in enumerate(np.eye(joints)):
            mujoco.mj_mulM(known.model, known.data, taken[column], unit)
        slip = np.tanh(v / _SLIP)
        left = (1.0 - friction_compensation) * friction
        drive = own - data.qfrc_bias - left * slip + jacobian.T @ hand + turning.T @ moment
        # Friction turns over fast: implicit in velocity, or the step would have to be tiny.
        stiff = np.diag(left / _SLIP * (1.0 - slip**2)) * _STEP
        stiff = stiff + _STEP * (
            _DAMPING * jacobian.T @ jacobian + _TURN_DAMPING * turning.T @ turning
        )
        v = v + np.linalg.solve(mass - _INERTIA_SHARE * taken + stiff, drive) * _STEP
        q = q + v * _STEP
        force[k], position[k] = hand, at
    if not np.all(np.isfinite(q)):
        raise TaufitError("the guided arm ran away: choose a pose further from its limits.")
    tour = time >= _SETTLE
    return Guiding(time[tour] - _SETTLE, force[tour], position[tour], wanted[tour])


def _along(corners: Array, share: Array) -> Array:
    """Points along the corners, each side at rest at both ends."""
    sides = len(corners) - 1
    at = np.minimum((share * sides).astype(int), sides - 1)
    s = share * sides - at
    smooth = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return corners[at] + smooth[:, None] * (corners[at + 1] - corners[at])


__all__ = ["Guiding", "guide"]
