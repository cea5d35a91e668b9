"""Rigid-body dynamics of chains and trees in Lie-group form, in NumPy, vectorised over samples.

Twists are (omega; v), wrenches (moment; force), all quantities of link b in its frame, p its parent
and q_b = sum_j C[b, j] q_j + o_b the position of its joint (for a serial arm p = b - 1, q_b = q):

    V_b = X V_p + S_b v_b                                      X = Ad of the inverse of M exp([S] q)
    A_b = X A_p + ad_{X V_p}(S_b v_b) + S_b a_b                A_base = (0; -g)
    F_b = sum over children c of X_c' F_c + E_b A_b - ad_{V_b}' E_b V_b
    tau = C' (S_b' F_b)

The twist of link b per unit velocity of recorded joint j is J_b[j] = X J_p[j] + S_b C[b, j], and
block (j, b) of the regressor is J_b[j]' times the wrench matrix of link b.

The engine in `batch` is the compiled form of `regressor` for serial arms; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK
from taufit.robot import Link, Robot


def _cross(a: Float[Array, "... 3"], b: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    return np.stack(
        [
            a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
            a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
            a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
        ],
        -1,
    )


def joint_transforms(
    robot: Robot, q: Float[Array, "n b"]
) -> tuple[Float[Array, "n b 3 3"], Float[Array, "n b 3"]]:
    """Rotation and position of every link frame in the previous one: M exp([S] q)."""
    n = len(q)
    rotations = np.empty((n, robot.bodies, 3, 3))
    positions = np.empty((n, robot.bodies, 3))
    for i, link in enumerate(robot.links):
        w, u = link.screw[:3], link.screw[3:]
        base, origin = link.placement[:3, :3], link.placement[:3, 3]
        if link.is_prismatic:
            rotations[:, i] = base
            positions[:, i] = origin + q[:, i, None] * (base @ u)
            continue
        hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        s, c1 = np.sin(q[:, i]), 1.0 - np.cos(q[:, i])
        rotations[:, i] = (
            base + s[:, None, None] * (base @ hat) + c1[:, None, None] * (base @ hat @ hat)
        )
        # exp: (1 - R)(w x u) + w w'u q; the second part is the pitch of a helical joint.
        shift = np.cross(w, u)
        displacement = -(s[:, None] * (hat @ shift) + c1[:, None] * (hat @ hat @ shift))
        positions[:, i] = origin + (displacement + q[:, i, None] * (w * (w @ u))) @ base.T
    return rotations, positions


def _link_motion(
    link: Link,
    twist: Float[Array, "n 6"],
    acceleration: Float[Array, "n 6"],
    v: Float[Array, " n"],
    a: Float[Array, " n"],
) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
    """Twist and acceleration behind a joint from those before it, both in the link's frame."""
    step = link.screw * v[:, None]
    bracket = np.concatenate(
        [
            _cross(twist[:, :3], step[:, :3]),
            _cross(twist[:, 3:], step[:, :3]) + _cross(twist[:, :3], step[:, 3:]),
        ],
        -1,
    )
    return twist + step, acceleration + bracket + link.screw * a[:, None]


def _to_child(
    back: Float[Array, "n 3 3"], position: Float[Array, "n 3"], twist: Float[Array, "n 6"]
) -> Float[Array, "n 6"]:
    """Ad of the inverse pose: omega' = R'w, v' = R'(v - p x w)."""
    angular = np.einsum("nij,nj->ni", back, twist[:, :3])
    linear = np.einsum("nij,nj->ni", back, twist[:, 3:] - _cross(position, twist[:, :3]))
    return np.concatenate([angular, linear], -1)


def link_wrench_matrix(
    twist: Float[Array, "n 6"], acceleration: Float[Array, "n 6"]
) -> Float[Array, "n 6 10"]:
    """Wrench of a link as a linear map of its ten parameters.

    With acc = A_lin + w x V_lin:
    force = m acc + ([alpha] + [w][w]) h,  moment = -[acc] h + (L(alpha) + [w] L(w)) I.
    """
    w, alpha = twist[:, :3], acceleration[:, :3]
    acc = acceleration[:, 3:] + _cross(w, twist[:, 3:])
    out = np.zeros((len(w), 6, PER_LINK))
    out[:, 3:, 0] = acc
    hat_w, hat_alpha = _hat(w), _hat(alpha)
    out[:, 3:, 1:4] = hat_alpha + hat_w @ hat_w
    out[:, :3, 1:4] = -_hat(acc)
    out[:, :3, 4:] = _inertia_map(alpha) + hat_w @ _inertia_map(w)
    return out


def _hat(w: Float[Array, "n 3"]) -> Float[Array, "n 3 3"]:
    out = np.zeros((len(w), 3, 3))
    out[:, 0, 1], out[:, 0, 2] = -w[:, 2], w[:, 1]
    out[:, 1, 0], out[:, 1, 2] = w[:, 2], -w[:, 0]
    out[:, 2, 0], out[:, 2, 1] = -w[:, 1], w[:, 0]
    return out


def _inertia_map(x: Float[Array, "n 3"]) -> Float[Array, "n 3 6"]:
    """Matrix L(x) with I x = L(x) (Ixx, Ixy, Iyy, Ixz, Iyz, Izz)."""
    out = np.zeros((len(x), 3, 6))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 3] = x[:, 0], x[:, 1], x[:, 2]
    out[:, 1, 1], out[:, 1, 2], out[:, 1, 4] = x[:, 0], x[:, 1], x[:, 2]
    out[:, 2, 3], out[:, 2, 4], out[:, 2, 5] = x[:, 0], x[:, 1], x[:, 2]
    return out


def _transform_wrench(
    rotation: Float[Array, "... 3 3"],
    position: Float[Array, "... 3"],
    wrench: Float[Array, "... 6"],
) -> Float[Array, "... 6"]:
    """Wrench in the parent frame, X': force f = R f, moment m = R m + p x f."""
    force = np.einsum("...ij,...j->...i", rotation, wrench[..., 3:])
    moment = np.einsum("...ij,...j->...i", rotation, wrench[..., :3])
    return np.concatenate([moment + _cross(position, force), force], -1)


class LinkMotion:
    """Motion of every link at a batch of states.

    Attributes:
        v, a: Velocity and acceleration of every link's joint.
        rotations, positions: Pose of every link in its parent.
        twists, accelerations: Twist and acceleration of every link, in its frame.
        columns: J_b[j], zero where joint j does not move link b.
        support: Mask of these, one row per link.
    """

    def __init__(
        self,
        robot: Robot,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        gravity: Float[Array, " 3"] | None = None,
    ) -> None:
        q, v, a = (np.asarray(x, float) for x in (q, v, a))
        g = robot.gravity if gravity is None else np.asarray(gravity, float)
        self.robot, n = robot, len(q)
        self.v, self.a = robot.bind(v), robot.bind(a)
        self.rotations, self.positions = joint_transforms(
            robot, robot.bind(q) + robot.binding_offset
        )
        self.base = np.zeros((n, 6)), np.broadcast_to(np.concatenate([np.zeros(3), -g]), (n, 6))
        self.support = robot.support
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
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> Float[Array, "n j p"]:
    """Regressor Y with tau = Y theta, theta the 10 b inertial parameters link after link.

    `gravity` replaces the robot's.
    """
    motion = LinkMotion(robot, q, v, a, gravity)
    columns = motion.columns()
    out = np.zeros((len(motion.v), robot.joints, robot.layout.size))
    for b, wrench in enumerate(motion.wrench_matrices()):
        for j in np.flatnonzero(motion.support[b]):
            out[:, j, robot.layout.link(b)] = np.einsum("nk,nkp->np", columns[:, b, j], wrench)
    return out


def inverse_dynamics(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> Float[Array, "n j"]:
    """Torques of the rigid links alone at the recorded joints, by the recursion above.

    Rotor inertia and friction belong to the torque model. `gravity` replaces the robot's own.
    """
    motion = LinkMotion(robot, q, v, a, gravity)
    torque = np.empty(motion.v.shape)
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
    return robot.bind_torque(torque)


def link_poses(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n b 4 4"]:
    """Poses of all link frames in the base frame."""
    rotations, positions = joint_transforms(
        robot, robot.bind(np.asarray(q, float)) + robot.binding_offset
    )
    out = np.zeros((len(q), robot.bodies, 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = rotations, positions, 1.0
    for b, parent in enumerate(robot.parents):
        if parent >= 0:
            out[:, b] = out[:, parent] @ out[:, b]
    return out


def forward_kinematics(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n k 4 4"]:
    """Poses of all link frames and, last, the tip in use."""
    poses = link_poses(robot, q)
    link = robot.layout.link(-1).start // PER_LINK
    return np.concatenate([poses, poses[:, [link]] @ robot.tip], axis=1)


def jacobian(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n 6 j"]:
    """Twist of the tip in use (angular; linear velocity of its origin), per recorded velocity."""
    poses = forward_kinematics(robot, q)
    tip = poses[:, -1, :3, 3]
    out = np.zeros((len(tip), 6, robot.joints))
    for b in robot.path(robot.layout.link(-1).start // PER_LINK):
        rotation, origin = poses[:, b, :3, :3], poses[:, b, :3, 3]
        angular, linear = rotation @ robot.links[b].screw[:3], rotation @ robot.links[b].screw[3:]
        column = np.concatenate([angular, linear + _cross(angular, tip - origin)], -1)
        out += column[:, :, None] * robot.binding[b]
    return out
