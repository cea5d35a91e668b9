"""Standard Denavit-Hartenberg table of a serial robot, from its joint axes."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.dynamics import forward_kinematics
from taufit.robot import Robot

_PARALLEL = 1e-7


def dh_table(
    robot: Robot,
) -> tuple[Float[Array, " j"], Float[Array, " j"], Float[Array, " j"], Float[Array, " j"]]:
    """Parameters theta, a, d, alpha with T = prod_i Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i).

    T maps the flange into the frame whose z is the first axis and whose origin is the axis's point
    nearest to the base origin. Frames lie on the axes at q = 0, along their common normals. The
    last
    frame has the flange's z and origin if those lie on the last axis, else the nearest ones.
    """
    robot.require_serial("a DH table")
    joints = robot.joints
    if any(link.is_prismatic for link in robot.links):
        raise RobotError(f"{robot.name} has a sliding joint; no such table for it.")
    frames = forward_kinematics(robot, np.zeros((1, joints)))[0]
    axes = [_axis(frames[i], robot.links[i].screw) for i in range(joints)]
    axes.append((frames[-1][:3, 3], frames[-1][:3, 2]))
    # Point of the first axis nearest to the base origin; its height is part of d_1.
    origin, z = axes[0]
    origin = origin - z * float(origin @ z)
    x = _any_normal(z)
    table = np.zeros((4, joints))
    for i in range(joints):
        (p, s), is_last = axes[i + 1], i == joints - 1
        foot, normal, point, length = _common_normal(origin, z, x, p, s)
        if is_last:
            # Origin of the flange, if the last axis passes through it.
            point = p
            foot = origin + z * ((p - origin) @ z)
            length = float(np.linalg.norm(point - foot))
            normal = (point - foot) / length if length > 1e-9 else normal
        theta = np.arctan2(np.cross(x, normal) @ z, x @ normal)
        alpha = np.arctan2(np.cross(z, s) @ normal, z @ s)
        table[:, i] = theta, length, (foot - origin) @ z, alpha
        origin, z, x = point, s, normal
    theta, a, d, alpha = table
    return theta, a, d, alpha


def _axis(
    frame: Float[Array, "4 4"], screw: Float[Array, " 6"]
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    """Point on a joint's axis and its direction, in the base frame."""
    direction, moment = screw[:3], screw[3:]
    point = np.cross(direction, moment)
    return frame[:3, :3] @ point + frame[:3, 3], frame[:3, :3] @ direction


def _any_normal(z: Float[Array, " 3"]) -> Float[Array, " 3"]:
    guess = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = guess - z * (guess @ z)
    return x / float(np.linalg.norm(x))


def _common_normal(
    o: Float[Array, " 3"],
    z: Float[Array, " 3"],
    x: Float[Array, " 3"],
    p: Float[Array, " 3"],
    s: Float[Array, " 3"],
) -> tuple[Float[Array, " 3"], Float[Array, " 3"], Float[Array, " 3"], float]:
    """Foot on the first axis, unit normal, foot on the second axis, and the distance."""
    cross = np.cross(z, s)
    sine = float(np.linalg.norm(cross))
    offset = p - o
    if sine < _PARALLEL:
        # Parallel axes: the normal through the current origin.
        perpendicular = offset - z * (offset @ z)
        length = float(np.linalg.norm(perpendicular))
        normal = perpendicular / length if length > 1e-9 else x
        return o, normal, o + normal * length, length
    t = float(np.cross(offset, s) @ cross) / sine**2
    u = float(np.cross(offset, z) @ cross) / sine**2
    foot, point = o + t * z, p + u * s
    length = float((point - foot) @ cross) / sine
    normal = cross / sine
    if length < 0.0:
        normal, length = -normal, -length
    return foot, normal, point, length
