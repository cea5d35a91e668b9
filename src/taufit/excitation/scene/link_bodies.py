"""Capsules of a robot whose description has no collision shapes.

Link i spans from its joint axis to the next one, through the origin of the link frame; the base
column spans from the base to the foot of the first joint axis and does not move with that joint.
Radii, and the lateral offset of a link body along the joint axis, are estimates of the outer
dimensions for the robots in `BODIES`, else follow from the length of the arm.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation.scene.capsule import Capsule
from taufit.robot import Robot

_MINIMUM_LENGTH = 1e-3


@dataclass(frozen=True, slots=True)
class LinkDimensions:
    """Outer dimensions of a robot, base to tip [m].

    Attributes:
        lengths: First two link lengths between axes, which identify the robot.
        base: Radius of the column.
        radii: Radii of the links.
        offset: Offset of each link body from its skeleton, along its joint axis.
    """

    lengths: tuple[float, float]
    base: float
    radii: tuple[float, ...]
    offset: tuple[float, ...] = ()


def _ur(
    lengths: tuple[float, float], base: float, radii: tuple[float, ...], *offsets: float
) -> LinkDimensions:
    return LinkDimensions(lengths, base, radii, (0.0, *offsets, 0.0, 0.0, 0.0))


# Estimates, not from data sheets; least certain for KR5. Universal Robots: footprint, housings and
# tubes, upper arm and forearm beside the shoulder axis. Franka and iiwa: housings. KR5 sixx: column
# and housings.
BODIES = {
    "ur3": _ur((0.24365, 0.21325), 0.064, (0.05, 0.045, 0.036, 0.036, 0.036, 0.036), 0.12, 0.027),
    "ur3e": _ur((0.24355, 0.2132), 0.064, (0.05, 0.045, 0.036, 0.036, 0.036, 0.036), 0.12, 0.028),
    "ur5": _ur((0.425, 0.39225), 0.075, (0.062, 0.057, 0.042, 0.04, 0.04, 0.04), 0.136, 0.016),
    "ur5e": _ur((0.425, 0.3922), 0.075, (0.062, 0.057, 0.042, 0.04, 0.04, 0.04), 0.138, 0.007),
    "ur10": _ur((0.612, 0.5723), 0.095, (0.08, 0.076, 0.058, 0.048, 0.048, 0.048), 0.221, 0.049),
    "ur10e": _ur((0.6127, 0.57155), 0.095, (0.08, 0.076, 0.058, 0.048, 0.048, 0.048), 0.176, 0.039),
    "panda": LinkDimensions(
        (0.316, 0.384), 0.075, (0.065, 0.065, 0.065, 0.065, 0.06, 0.052, 0.045)
    ),
    "fr3": LinkDimensions((0.316, 0.384), 0.075, (0.065, 0.065, 0.065, 0.065, 0.06, 0.052, 0.045)),
    "iiwa7": LinkDimensions((0.4, 0.4), 0.08, (0.07, 0.07, 0.07, 0.07, 0.065, 0.06, 0.045)),
    "iiwa14": LinkDimensions((0.42, 0.4), 0.085, (0.075, 0.075, 0.075, 0.075, 0.07, 0.06, 0.045)),
    "kr5": LinkDimensions((0.27, 0.295), 0.09, (0.085, 0.065, 0.062, 0.055, 0.045, 0.04)),
}


def find_dimensions(robot: Robot) -> LinkDimensions | None:
    """Outer dimensions if name and longest two links match a robot in `BODIES`, else None."""
    drawing = BODIES.get(robot.name)
    if drawing is None or len(drawing.radii) != robot.joints:
        return None
    longest = sorted(_spans(robot))[-2:]
    is_match = np.allclose(longest, sorted(drawing.lengths), atol=0.06 * max(drawing.lengths))
    return drawing if is_match else None


def fit_capsules(robot: Robot, radius: float | None = None) -> tuple[Capsule, ...]:
    """One or two capsules per link, from the geometry of the robot.

    For a robot not in `BODIES` the radius is 5 % of the arm length, three quarters of that in the
    wrist, typical of industrial robots.
    """
    drawing = find_dimensions(robot) if radius is None else None
    joints = robot.joints
    if drawing is not None:
        column_radius, radii = drawing.base, drawing.radii
    else:
        default_radius = 0.05 * arm_length(robot) if radius is None else radius
        column_radius = default_radius
        radii = tuple(default_radius * (1.0 if i < joints / 2 else 0.75) for i in range(joints))
    offsets = drawing.offset if drawing is not None and drawing.offset else (0.0,) * joints
    capsules = []
    column = _foot_in_parent(robot, 0)
    if np.linalg.norm(column) > _MINIMUM_LENGTH:
        capsules.append(Capsule(-1, np.zeros(3), column, column_radius))
    for link, points in enumerate(_path_points(robot)):
        for a, b in pairwise(_offset_path(robot, link, points, offsets)):
            if np.linalg.norm(b - a) > _MINIMUM_LENGTH:
                capsules.append(Capsule(link, a, b, radii[link]))
    return tuple(capsules)


def _offset_path(
    robot: Robot, link: int, points: Float[Array, "k 3"], offsets: tuple[float, ...]
) -> Float[Array, "m 3"]:
    """Path of a link, offset along its joint axis, and from its end to the next link body."""
    axis = robot.links[link].screw[:3]
    parts = [points]
    if offsets[link]:
        end = points[-1] - axis * (axis @ points[-1])
        parts = [points[:-1] + offsets[link] * axis, (end + offsets[link] * axis)[None]]
    last = points[-1]
    if link + 1 < robot.joints and offsets[link + 1]:
        after = robot.links[link + 1]
        last = last + offsets[link + 1] * (after.placement[:3, :3] @ after.screw[:3])
    return np.vstack([*parts, last[None]])


def arm_length(robot: Robot) -> float:
    """Length of the path from the first joint through the links to the tip [m]."""
    return float(sum(_spans(robot)))


def _spans(robot: Robot) -> list[float]:
    return [
        float(np.linalg.norm(b - a)) for points in _path_points(robot) for a, b in pairwise(points)
    ]


def _foot(robot: Robot, index: int) -> Float[Array, " 3"]:
    """Point of a joint axis closest to the origin of its link, in the link frame."""
    link = robot.links[index]
    return np.zeros(3) if link.is_prismatic else np.cross(link.screw[:3], link.screw[3:])


def _foot_in_parent(robot: Robot, index: int) -> Float[Array, " 3"]:
    """Point of a joint axis closest to the origin of its link, in the frame of the previous link.

    For a prismatic joint, the point of its line closest to that frame's origin, independent of the
    joint position.
    """
    link = robot.links[index]
    rotation, origin = link.placement[:3, :3], link.placement[:3, 3]
    if link.is_prismatic:
        axis = rotation @ link.screw[3:]
        return origin - axis * (axis @ origin)
    return rotation @ _foot(robot, index) + origin


def _path_points(robot: Robot) -> list[Float[Array, "k 3"]]:
    """Points per link in its frame: foot of the joint axis, origin, next foot (or the tip)."""
    out = []
    for i in range(robot.joints):
        last = i + 1 == robot.joints
        end = robot.tip[:3, 3] if last else _foot_in_parent(robot, i + 1)
        points = [_foot(robot, i)]
        for point in (np.zeros(3), end):
            if np.linalg.norm(point - points[-1]) > 1e-9:
                points.append(point)
        out.append(np.array(points))
    return out
