"""Link frames on the joint axes, as in URDF and MJCF."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.robot import Robot, TreeRobot
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
        parent: Number of the link it is placed in; -1 is the base.
        joint: Number of the recorded joint that it is, or None if it is bound to others.
        binding: Factors of the recorded joints that a bound joint follows, by their numbers.
        offset: Position of a bound joint where those are zero [rad or m].
    """

    placement: Float[Array, "4 4"]
    axis: Float[Array, " 3"]
    prismatic: bool
    mass: float
    centre: Float[Array, " 3"]
    tensor: Float[Array, "3 3"]
    parent: int
    joint: int | None
    binding: dict[int, float]
    offset: float


@dataclass(frozen=True, slots=True, eq=False)
class TipFrame:
    """Flange in the frame of its link, at the joint axis."""

    name: str
    link: int
    pose: Float[Array, "4 4"]


def joint_frames(robot: Robot) -> tuple[list[JointFrame], list[TipFrame]]:
    """Every link in a frame on its axis, and the flanges.

    The axis w with moment u passes through r = w x u, so the frame is the link's, shifted by r.
    """
    parents, binding, offset = robot.parents, robot.binding, robot.binding_offset
    tips = [TipFrame("tip", robot.bodies - 1, robot.tip)]
    if isinstance(robot, TreeRobot):
        tips = [TipFrame(tip.name, tip.link, tip.pose) for tip in robot.tips]
    joints = _joints_of_links(robot, binding, offset)
    frames, to_link_frame = [], {-1: np.eye(4)}
    for b, link in enumerate(robot.links):
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
                to_link_frame[parents[b]] @ link.placement @ shift,
                u if link.is_prismatic else w,
                link.is_prismatic,
                mass,
                centre,
                0.5 * (tensor + tensor.T),
                parents[b],
                joints.get(b),
                {int(j): float(binding[b, j]) for j in np.flatnonzero(binding[b])},
                float(offset[b]),
            )
        )
        to_link_frame[b] = inverse_pose(shift)
    return frames, [TipFrame(t.name, t.link, to_link_frame[t.link] @ t.pose) for t in tips]


def _joints_of_links(
    robot: Robot, binding: Float[Array, "b j"], offset: Float[Array, " b"]
) -> dict[int, int]:
    """Recorded joint of every link that moves with it one to one: one link for each of them."""
    links = {}
    for j, name in enumerate(robot.joint_names):
        is_direct = (binding == np.eye(robot.joints)[j]).all(axis=1) & (offset == 0.0)
        candidates = np.flatnonzero(is_direct).tolist()
        if not candidates:
            raise InfeasibleError(
                f"no link of {robot.name} moves one to one with {name!r}: URDF and MJCF need a "
                "joint for it. Export as JSON or C instead."
            )
        same_name = [b for b in candidates if robot.links[b].joint == name]
        links[(same_name or candidates)[0]] = j
    return links


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
