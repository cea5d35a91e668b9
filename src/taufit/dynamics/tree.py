"""Rigid-body dynamics of trees with bound joints, in NumPy, vectorised over samples.

The joint of link b is at q_b = sum_j C[b, j] q_j + o_b, so the regressor of the recorded joints is
C' Y(C q + o). It is not formed that way; the twist of link b per unit velocity of recorded joint j,

    J_b[j] = X_b J_parent(b)[j] + S_b C[b, j],

is carried from link to link instead, and block (j, b) of the regressor is J_b[j]' times the wrench
matrix of link b. For a serial arm these are the screws of `recursion`, with the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.dynamics.adjoint import (
    _ad,
    _ad_transposed,
    _transform_wrench,
    _wrench_matrix_adjoint,
)
from taufit.dynamics.recursion import (
    _cross,
    _link_motion,
    _to_child,
    forward_kinematics as serial_kinematics,
    joint_transforms,
    link_wrench_matrix,
)
from taufit.robot.robot import Robot
from taufit.robot.tree import TreeRobot


class TreeMotion:
    """Motion of every link of a tree at a batch of states.

    Attributes:
        v, a: Velocity and acceleration of every link's joint.
        rotations, positions: Pose of every link in its parent.
        twists, accelerations: Twist and acceleration of every link, in its frame.
        columns: J_b[j], zero where joint j does not move link b.
        support: Mask of these, one row per link.
    """

    def __init__(
        self,
        robot: TreeRobot,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        gravity: Float[Array, " 3"] | None = None,
    ) -> None:
        g = robot.gravity if gravity is None else np.asarray(gravity, float)
        self.robot, n = robot, len(q)
        self.v, self.a = robot.bind(v), robot.bind(a)
        self.rotations, self.positions = joint_transforms(
            robot, robot.bind(q) + robot.binding_offset
        )
        self.base = np.zeros((n, 6)), np.broadcast_to(np.concatenate([np.zeros(3), -g]), (n, 6))
        self.support: Bool[Array, "b j"] = robot.support
        self.twists = np.empty((n, robot.bodies, 6))
        self.accelerations = np.empty((n, robot.bodies, 6))
        for b, link in enumerate(robot.links):
            twist, acceleration = self.before(b)
            self.twists[:, b], self.accelerations[:, b] = _link_motion(
                link, twist, acceleration, self.v[:, b], self.a[:, b]
            )

    def before(self, b: int) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
        """Twist and acceleration of the parent of link b, in the frame of b."""
        parent = self.robot.parents[b]
        twist, acceleration = (
            self.base if parent < 0 else (self.twists[:, parent], self.accelerations[:, parent])
        )
        back = np.swapaxes(self.rotations[:, b], -1, -2)
        position = self.positions[:, b]
        return _to_child(back, position, twist), _to_child(back, position, acceleration)

    def parent_columns(self, columns: Float[Array, "n b j 6"], b: int) -> Float[Array, "n j 6"]:
        """X_b J_parent(b): columns of link b without the motion of its joint."""
        parent = self.robot.parents[b]
        out = np.zeros((len(columns), columns.shape[2], 6))
        if parent >= 0:
            back = np.swapaxes(self.rotations[:, b], -1, -2)
            for j in np.flatnonzero(self.support[parent]):
                out[:, j] = _to_child(back, self.positions[:, b], columns[:, parent, j])
        return out

    def columns(self) -> Float[Array, "n b j 6"]:
        """J_b[j] of every link b and recorded joint j."""
        robot = self.robot
        out = np.zeros((len(self.v), robot.bodies, robot.joints, 6))
        for b, link in enumerate(robot.links):
            out[:, b] = self.parent_columns(out, b)
            for j in np.flatnonzero(robot.binding[b]):
                out[:, b, j] += link.screw * robot.binding[b, j]
        return out

    def wrench_matrices(self) -> Iterator[Float[Array, "n 6 10"]]:
        """Wrench of every link as a linear map of its parameters."""
        for b in range(self.robot.bodies):
            yield link_wrench_matrix(self.twists[:, b], self.accelerations[:, b])


def regressor(
    robot: TreeRobot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> Float[Array, "n j p"]:
    """Regressor Y with tau = Y theta, theta the 10 b inertial parameters link after link."""
    motion = TreeMotion(robot, q, v, a, gravity)
    columns = motion.columns()
    out = np.zeros((len(q), robot.joints, robot.layout.size))
    for b, wrench in enumerate(motion.wrench_matrices()):
        for j in np.flatnonzero(motion.support[b]):
            out[:, j, robot.layout.link(b)] = np.einsum("nk,nkp->np", columns[:, b, j], wrench)
    return out


def inverse_dynamics(
    robot: TreeRobot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> Float[Array, "n j"]:
    """Torque of the rigid links at the recorded joints; wrenches add up at branches."""
    motion = TreeMotion(robot, q, v, a, gravity)
    torque = np.empty((len(q), robot.bodies))
    wrenches = np.stack(
        [
            np.einsum("nkp,p->nk", matrix, link.parameters)
            for matrix, link in zip(motion.wrench_matrices(), robot.links, strict=True)
        ],
        1,
    )
    for b in reversed(range(robot.bodies)):
        torque[:, b] = wrenches[:, b] @ robot.links[b].screw
        if robot.parents[b] >= 0:
            wrenches[:, robot.parents[b]] += _transform_wrench(
                motion.rotations[:, b], motion.positions[:, b], wrenches[:, b]
            )
    return np.asarray(torque @ robot.binding)


def regressor_adjoint(
    robot: TreeRobot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    gradient: Float[Array, "n j p"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Gradient of sum(gradient * Y(q, v, a)) with respect to q, v and a.

    As in `adjoint`, with gradients of a link's motion summed over its children. Only the inherited
    part of J_b turns with joint b.
    """
    motion = TreeMotion(robot, q, v, a, gravity)
    columns = motion.columns()
    of_columns = np.zeros_like(columns)
    of_twist, of_acceleration = np.zeros_like(motion.twists), np.zeros_like(motion.twists)
    dq, dv, da = (np.empty((len(q), robot.bodies)) for _ in range(3))
    wrench_matrices = list(motion.wrench_matrices())
    for b in reversed(range(robot.bodies)):
        screw, parent = robot.links[b].screw, robot.parents[b]
        block = gradient[:, :, robot.layout.link(b)] * motion.support[b, :, None]
        of_columns[:, b] += np.einsum("njp,nkp->njk", block, wrench_matrices[b])
        twist, acceleration = _wrench_matrix_adjoint(
            motion.twists[:, b], np.einsum("njk,njp->nkp", columns[:, b], block)
        )
        twist, acceleration = of_twist[:, b] + twist, of_acceleration[:, b] + acceleration
        twist_before, acceleration_before = motion.before(b)
        bracket = _ad(screw, twist_before)
        da[:, b] = acceleration @ screw
        dv[:, b] = twist @ screw - np.sum(acceleration * bracket, -1)
        twist = twist - motion.v[:, b, None] * _ad_transposed(screw, acceleration)
        column_bracket = _ad(screw, motion.parent_columns(columns, b))
        dq[:, b] = -(
            np.sum(twist * bracket, -1)
            + np.sum(acceleration * _ad(screw, acceleration_before), -1)
            + np.sum(of_columns[:, b] * column_bracket, (-1, -2))
        )
        if parent >= 0:
            rotation, position = motion.rotations[:, b], motion.positions[:, b]
            of_twist[:, parent] += _transform_wrench(rotation, position, twist)
            of_acceleration[:, parent] += _transform_wrench(rotation, position, acceleration)
            of_columns[:, parent] += (
                _transform_wrench(rotation[:, None], position[:, None], of_columns[:, b])
                * motion.support[parent, :, None]
            )
    return dq @ robot.binding, dv @ robot.binding, da @ robot.binding


def link_poses(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n b 4 4"]:
    """Poses of all link frames in the base frame."""
    if not isinstance(robot, TreeRobot):
        return serial_kinematics(robot, q)[:, :-1]
    rotations, positions = joint_transforms(robot, robot.bind(q) + robot.binding_offset)
    out = np.zeros((len(q), robot.bodies, 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = rotations, positions, 1.0
    for b, parent in enumerate(robot.parents):
        if parent >= 0:
            out[:, b] = out[:, parent] @ out[:, b]
    return out


def forward_kinematics(robot: TreeRobot, q: Float[Array, "n j"]) -> Float[Array, "n k 4 4"]:
    """Poses of all link frames and, last, the tip in use."""
    poses = link_poses(robot, np.asarray(q, float))
    link = robot.layout.link(-1).start // 10
    return np.concatenate([poses, poses[:, [link]] @ robot.tip], axis=1)


def jacobian(robot: TreeRobot, q: Float[Array, "n j"]) -> Float[Array, "n 6 j"]:
    """Twist of the tip in use (angular; linear velocity of its origin), per recorded velocity."""
    poses = forward_kinematics(robot, q)
    tip = poses[:, -1, :3, 3]
    out = np.zeros((len(tip), 6, robot.joints))
    for b in robot.path(robot.layout.link(-1).start // 10):
        rotation, origin = poses[:, b, :3, :3], poses[:, b, :3, 3]
        angular, linear = rotation @ robot.links[b].screw[:3], rotation @ robot.links[b].screw[3:]
        column = np.concatenate([angular, linear + _cross(angular, tip - origin)], -1)
        out += column[:, :, None] * robot.binding[b]
    return out
