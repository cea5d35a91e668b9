"""Rigid-body dynamics of a serial chain in Lie-group form, in NumPy, vectorised over samples.

Twists are (omega; v), wrenches (moment; force), all quantities of link i in its frame:

    V_i = X V_{i-1} + S_i v_i                                  X = Ad of the inverse of M exp([S] q)
    A_i = X A_{i-1} + ad_{X V_{i-1}}(S_i v_i) + S_i a_i        A_0 = (0; -g)
    F_i = X_{i+1}' F_{i+1} + E_i A_i - ad_{V_i}' E_i V_i
    tau_i = S_i' F_i

The engine in `batch` is the compiled form of `regressor`; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK
from taufit.robot import Link, Robot

F = TypeVar("F", bound=Callable[..., Any])


def with_trees(function: F) -> F:
    """Function of serial chains, replaced by its namesake in `dynamics.tree` for trees."""

    @wraps(function)
    def call(robot: Robot, *arguments: Any, **options: Any) -> Any:
        if robot.is_tree:
            of_trees = getattr(import_module("taufit.dynamics.tree"), function.__name__)
            return of_trees(robot, *arguments, **options)
        return function(robot, *arguments, **options)

    return cast(F, call)


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


def _motion(
    robot: Robot,
    rotations: Float[Array, "n j 3 3"],
    positions: Float[Array, "n j 3"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    gravity: Float[Array, " 3"],
) -> tuple[Float[Array, "n j 6"], Float[Array, "n j 6"]]:
    """Twist and acceleration of every link; gravity enters as acceleration of the base."""
    n = len(v)
    twists, accelerations = np.empty((n, robot.joints, 6)), np.empty((n, robot.joints, 6))
    twist = np.zeros((n, 6))
    acceleration = np.broadcast_to(np.concatenate([np.zeros(3), -gravity]), (n, 6))
    for i, link in enumerate(robot.links):
        inverse_rotation = np.swapaxes(rotations[:, i], -1, -2)
        twist = _to_child(inverse_rotation, positions[:, i], twist)
        acceleration = _to_child(inverse_rotation, positions[:, i], acceleration)
        twist, acceleration = _link_motion(link, twist, acceleration, v[:, i], a[:, i])
        twists[:, i], accelerations[:, i] = twist, acceleration
    return twists, accelerations


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


@with_trees
def regressor(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> Float[Array, "n j p"]:
    """Regressor Y with tau = Y theta, theta the 10 j inertial parameters link after link.

    Column block b of row i is S_i in the frame of link b, transposed, times that link's wrench
    matrix. `gravity` replaces the robot's.
    """
    q, v, a = (np.asarray(x, float) for x in (q, v, a))
    g = robot.gravity if gravity is None else gravity
    rotations, positions = joint_transforms(robot, q)
    twists, accelerations = _motion(robot, rotations, positions, v, a, g)
    n, joints = q.shape
    out = np.zeros((n, joints, robot.layout.size))
    screws: list[Float[Array, "n 6"]] = []
    for b, link in enumerate(robot.links):
        inverse_rotation = np.swapaxes(rotations[:, b], -1, -2)
        screws = [_to_child(inverse_rotation, positions[:, b], screw) for screw in screws]
        screws.append(np.broadcast_to(link.screw, (n, 6)))
        wrench = link_wrench_matrix(twists[:, b], accelerations[:, b])
        for i, screw in enumerate(screws):
            out[:, i, robot.layout.link(b)] = np.einsum("nk,nkp->np", screw, wrench)
    return out


@with_trees
def inverse_dynamics(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> Float[Array, "n j"]:
    """Joint torques of the rigid links alone, by the recursion above.

    Rotor inertia and friction belong to the torque model. `gravity` replaces the robot's own.
    """
    q, v, a = (np.asarray(x, float) for x in (q, v, a))
    g = robot.gravity if gravity is None else gravity
    rotations, positions = joint_transforms(robot, q)
    twists, accelerations = _motion(robot, rotations, positions, v, a, g)
    torque = np.empty_like(q)
    wrench = np.zeros((len(q), 6))
    for i in reversed(range(robot.joints)):
        link_wrench = np.einsum(
            "nkp,p->nk",
            link_wrench_matrix(twists[:, i], accelerations[:, i]),
            robot.links[i].parameters,
        )
        wrench = wrench + link_wrench
        torque[:, i] = wrench @ robot.links[i].screw
        # To the previous frame: force f = R f, moment m = R m + p x f.
        force = np.einsum("nij,nj->ni", rotations[:, i], wrench[:, 3:])
        moment = np.einsum("nij,nj->ni", rotations[:, i], wrench[:, :3])
        wrench = np.concatenate([moment + _cross(positions[:, i], force), force], -1)
    return torque


@with_trees
def forward_kinematics(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n k 4 4"]:
    """Poses in the base frame of the j link frames and, last, the tip."""
    q = np.asarray(q, float)
    rotations, positions = joint_transforms(robot, q)
    out = np.zeros((len(q), robot.joints + 1, 4, 4))
    pose = np.broadcast_to(np.eye(4), (len(q), 4, 4))
    for i in range(robot.joints):
        step = np.zeros((len(q), 4, 4))
        step[:, :3, :3], step[:, :3, 3], step[:, 3, 3] = rotations[:, i], positions[:, i], 1.0
        pose = pose @ step
        out[:, i] = pose
    out[:, -1] = pose @ robot.tip
    return out


@with_trees
def jacobian(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n 6 j"]:
    """Tip twist (angular; linear velocity of the tip's origin) in base axes, per joint velocity."""
    poses = forward_kinematics(robot, q)
    tip = poses[:, -1, :3, 3]
    out = np.empty((len(tip), 6, robot.joints))
    for i, link in enumerate(robot.links):
        rotation, origin = poses[:, i, :3, :3], poses[:, i, :3, 3]
        angular = rotation @ link.screw[:3]
        linear = rotation @ link.screw[3:]
        out[:, :3, i] = angular
        out[:, 3:, i] = linear + _cross(angular, tip - origin)
    return out
