"""Adjoint (reverse-mode derivative) of the regressor, in plain NumPy.

For a scalar f = sum(G * Y(q, v, a)), one pass from the tip to the base gives df/dq, df/dv, df/da.
All quantities transformed over joint b pass through X = Ad of the inverse of M exp([S] q), and

    d(X x)/dq = -ad_S X x

is sufficient: no derivative of a rotation matrix is formed. A gradient is transformed to the
previous frame like a wrench, by X'.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics.recursion import (
    _cross,
    _hat,
    _inertia_map,
    _motion,
    _to_child,
    joint_transforms,
    link_wrench_matrix,
    with_trees,
)
from taufit.robot import Robot


@with_trees
def regressor_adjoint(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    gradient: Float[Array, "n j p"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Gradient of sum(gradient * Y(q, v, a)) with respect to q, v and a."""
    q, v, a = (np.asarray(x, float) for x in (q, v, a))
    g = robot.gravity if gravity is None else np.asarray(gravity, float)
    n, joints = q.shape
    rotations, positions = joint_transforms(robot, q)
    twists, accelerations = _motion(robot, rotations, positions, v, a, g)
    screws_at_link = _screws_at_links(robot, rotations, positions)

    base = np.broadcast_to(np.concatenate([np.zeros(3), -g]), (n, 6))
    screw_gradient = np.zeros((n, joints, 6))
    twist_gradient, acceleration_gradient = np.zeros((n, 6)), np.zeros((n, 6))
    dq, dv, da = np.empty_like(q), np.empty_like(q), np.empty_like(q)
    for b in reversed(range(joints)):
        screw = robot.links[b].screw
        rotation, position = rotations[:, b], positions[:, b]
        inverse_rotation = np.swapaxes(rotation, -1, -2)
        block = gradient[:, : b + 1, robot.layout.link(b)]
        wrench = link_wrench_matrix(twists[:, b], accelerations[:, b])
        # Y block = C W: C gets G W', W gets C' G.
        screw_gradient[:, : b + 1] += np.einsum("nip,nkp->nik", block, wrench)
        wrench_gradient = np.einsum("nik,nip->nkp", screws_at_link[b], block)
        link_twist, link_acceleration = _wrench_matrix_adjoint(twists[:, b], wrench_gradient)
        twist_gradient = twist_gradient + link_twist
        acceleration_gradient = acceleration_gradient + link_acceleration

        twist_before = _to_child(
            inverse_rotation, position, twists[:, b - 1] if b else np.zeros((n, 6))
        )
        acceleration_before = _to_child(
            inverse_rotation, position, accelerations[:, b - 1] if b else base
        )
        # A = X A' + ad_(X V') S v + S a,   V = X V' + S v,   and ad_x S = -ad_S x.
        twist_bracket = _ad(screw, twist_before)
        da[:, b] = acceleration_gradient @ screw
        dv[:, b] = twist_gradient @ screw - np.sum(acceleration_gradient * twist_bracket, -1)
        twist_gradient = twist_gradient - v[:, b, None] * _ad_transposed(
            screw, acceleration_gradient
        )

        dq[:, b] = -(
            np.sum(twist_gradient * twist_bracket, -1)
            + np.sum(acceleration_gradient * _ad(screw, acceleration_before), -1)
            + np.sum(screw_gradient[:, :b] * _ad(screw, screws_at_link[b][:, :b]), (-1, -2))
        )
        twist_gradient = _transform_wrench(rotation, position, twist_gradient)
        acceleration_gradient = _transform_wrench(rotation, position, acceleration_gradient)
        screw_gradient[:, :b] = _transform_wrench(
            rotation[:, None], position[:, None], screw_gradient[:, :b]
        )
    return dq, dv, da


def _screws_at_links(
    robot: Robot, rotations: Float[Array, "n j 3 3"], positions: Float[Array, "n j 3"]
) -> list[Float[Array, "n i 6"]]:
    """Screws of joints 0..b in the frame of every link b."""
    n = len(rotations)
    screws: list[Float[Array, "n 6"]] = []
    out = []
    for b, link in enumerate(robot.links):
        inverse_rotation = np.swapaxes(rotations[:, b], -1, -2)
        screws = [_to_child(inverse_rotation, positions[:, b], screw) for screw in screws]
        screws.append(np.broadcast_to(link.screw, (n, 6)))
        out.append(np.stack(screws, 1))
    return out


def _wrench_matrix_adjoint(
    twist: Float[Array, "n 6"], gradient: Float[Array, "n 6 10"]
) -> tuple[Float[Array, "n 6"], Float[Array, "n 6"]]:
    """Gradients of twist and acceleration from that of `link_wrench_matrix`."""
    w, u = twist[:, :3], twist[:, 3:]
    hat_w = _hat(w)
    of_d, of_e = gradient[:, 3:, 1:4], gradient[:, :3, 4:]
    of_acc = gradient[:, 3:, 0] - _hat_adjoint(gradient[:, :3, 1:4])
    back = np.swapaxes(hat_w, -1, -2)
    of_hat = of_d @ back + back @ of_d + of_e @ np.swapaxes(_inertia_map(w), -1, -2)
    of_w = _hat_adjoint(of_hat) + _inertia_map_adjoint(back @ of_e) + _cross(u, of_acc)
    of_alpha = _hat_adjoint(of_d) + _inertia_map_adjoint(of_e)
    return (
        np.concatenate([of_w, _cross(of_acc, w)], -1),
        np.concatenate([of_alpha, of_acc], -1),
    )


def _hat_adjoint(m: Float[Array, "n 3 3"]) -> Float[Array, "n 3"]:
    """Vector x' with <m, [y]> = x'y."""
    return np.stack([m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]], -1)


def _inertia_map_adjoint(m: Float[Array, "n 3 6"]) -> Float[Array, "n 3"]:
    """Vector x' with <m, L(y)> = x'y."""
    return np.stack(
        [
            m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 3],
            m[:, 0, 1] + m[:, 1, 2] + m[:, 2, 4],
            m[:, 0, 3] + m[:, 1, 4] + m[:, 2, 5],
        ],
        -1,
    )


def _ad(screw: Float[Array, " 6"], x: Float[Array, "... 6"]) -> Float[Array, "... 6"]:
    w, u = screw[:3], screw[3:]
    return np.concatenate(
        [_cross(w, x[..., :3]), _cross(u, x[..., :3]) + _cross(w, x[..., 3:])], -1
    )


def _ad_transposed(screw: Float[Array, " 6"], x: Float[Array, "... 6"]) -> Float[Array, "... 6"]:
    """Product x' ad_S as a column: (x_w x w + x_v x u; x_v x w)."""
    w, u = screw[:3], screw[3:]
    return np.concatenate(
        [_cross(x[..., :3], w) + _cross(x[..., 3:], u), _cross(x[..., 3:], w)], -1
    )


def _transform_wrench(
    rotation: Float[Array, "... 3 3"],
    position: Float[Array, "... 3"],
    wrench: Float[Array, "... 6"],
) -> Float[Array, "... 6"]:
    """Wrench in the parent frame, X': force f = R f, moment m = R m + p x f."""
    force = np.einsum("...ij,...j->...i", rotation, wrench[..., 3:])
    moment = np.einsum("...ij,...j->...i", rotation, wrench[..., :3])
    return np.concatenate([moment + _cross(position, force), force], -1)
