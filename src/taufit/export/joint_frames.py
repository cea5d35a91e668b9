"""Link frames on the joint axes, as in URDF and MJCF."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.robot import Robot
from taufit.robot.inertia import to_centre_of_mass, transform_parameters
from taufit.robot.pose import inverse_pose


@dataclass(frozen=True, slots=True, eq=False)
class JointFrame:
    """Link in a frame on its joint axis.

    Attributes:
        placement: Pose of this frame in the previous joint frame, at q = 0.
        axis: Unit vector of the joint in this frame.
        prismatic: Whether the joint is prismatic.
        mass, centre, tensor: Inertia of the link in this frame; tensor about the centre of mass.
    """

    placement: Float[Array, "4 4"]
    axis: Float[Array, " 3"]
    prismatic: bool
    mass: float
    centre: Float[Array, " 3"]
    tensor: Float[Array, "3 3"]


def joint_frames(robot: Robot) -> tuple[list[JointFrame], Float[Array, "4 4"]]:
    """Every link in a frame on its axis, and the tip in the last of them.

    The axis w with moment u passes through r = w x u, so the frame is the link's, shifted by r.
    """
    frames = []
    to_link_frame = np.eye(4)
    for link in robot.links:
        w, u = link.screw[:3], link.screw[3:]
        shift = np.eye(4)
        if not link.is_prismatic:
            if abs(w @ u) > 1e-12:
                raise InfeasibleError(
                    f"joint {link.joint!r} is helical; URDF and MJCF hold revolute and prismatic "
                    "joints only. Export as JSON or C instead."
                )
            shift[:3, 3] = np.cross(w, u)
        mass, centre, tensor = to_centre_of_mass(
            transform_parameters(link.parameters, inverse_pose(shift))
        )
        frames.append(
            JointFrame(
                to_link_frame @ link.placement @ shift,
                u if link.is_prismatic else w,
                link.is_prismatic,
                mass,
                centre,
                0.5 * (tensor + tensor.T),
            )
        )
        to_link_frame = inverse_pose(shift)
    return frames, to_link_frame @ robot.tip


def roll_pitch_yaw(rotation: Float[Array, "3 3"]) -> Float[Array, " 3"]:
    """Angles with rotation = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[0, 0], rotation[1, 0]))
    if np.hypot(rotation[0, 0], rotation[1, 0]) > 1e-12:
        roll = np.arctan2(rotation[2, 1], rotation[2, 2])
        yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    else:
        roll, yaw = np.arctan2(-rotation[1, 2], rotation[1, 1]), 0.0
    return np.array([roll, pitch, yaw])


def quaternion(rotation: Float[Array, "3 3"]) -> Float[Array, " 4"]:
    """Unit quaternion w, x, y, z; from its largest component, to avoid cancellation."""
    r = rotation
    squares = np.array(
        [
            1 + r[0, 0] + r[1, 1] + r[2, 2],
            1 + r[0, 0] - r[1, 1] - r[2, 2],
            1 - r[0, 0] + r[1, 1] - r[2, 2],
            1 - r[0, 0] - r[1, 1] + r[2, 2],
        ]
    )
    products = np.array(
        [
            [squares[0], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], squares[1], r[1, 0] + r[0, 1], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[1, 0] + r[0, 1], squares[2], r[2, 1] + r[1, 2]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[2, 1] + r[1, 2], squares[3]],
        ]
    )
    row = products[int(np.argmax(squares))]
    return row / np.linalg.norm(row)


def numbers(values: Iterable[float]) -> str:
    """Numbers as text without loss of precision."""
    return " ".join(repr(float(x) + 0.0) for x in values)
