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
from taufit.dynamics.recursion import LinkMotion, _cross, _hat, _inertia_map, _transform_wrench
from taufit.robot import Robot


def regressor_adjoint(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    gradient: Float[Array, "n j p"],
    *,
    gravity: Float[Array, " 3"] | None = None,
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Gradient of sum(gradient * Y(q, v, a)) with respect to q, v and a.

    Gradients of a link's motion are summed over its children. Only the inherited part of J_b turns
    with joint b.
    """
    motion = LinkMotion(robot, q, v, a, gravity)
    columns = motion.columns()
    of_columns = np.zeros_like(columns)
    of_twist, of_acceleration = np.zeros_like(motion.twists), np.zeros_like(motion.twists)
    dq, dv, da = (np.empty_like(motion.v) for _ in range(3))
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
    return robot.bind_torque(dq), robot.bind_torque(dv), robot.bind_torque(da)


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
