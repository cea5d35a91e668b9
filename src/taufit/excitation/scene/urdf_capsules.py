"""Capsules around the collision shapes of a URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.excitation.scene.capsule import Capsule
from taufit.robot import Robot
from taufit.robot.mounting import rotation_rpy


def capsules_from_urdf(robot: Robot) -> tuple[Capsule, ...]:
    """One capsule around every cylinder, sphere and box of the <collision> elements.

    Meshes are not opened, so links with meshes only contribute nothing; shapes of links behind
    fixed joints belong to the moving link. Empty if the robot has no URDF.
    """
    if robot.urdf is None:
        return ()
    root = ET.fromstring(robot.urdf)
    bodies = {link.get("name"): link for link in root.findall("link")}
    fixed: dict[str, list[tuple[str, Float[Array, "4 4"]]]] = {}
    for joint in root.findall("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if joint.get("type") == "fixed" and parent is not None and child is not None:
            fixed.setdefault(parent.get("link", ""), []).append(
                (child.get("link", ""), _pose(joint.find("origin")))
            )
    capsules = []
    for index, link in enumerate(robot.links):
        queue, visited = [(link.name, np.eye(4))], set[str]()
        while queue:
            name, placement = queue.pop()
            if name in visited:
                continue
            visited.add(name)
            queue += [(child, placement @ step) for child, step in fixed.get(name, ())]
            for shape in bodies[name].findall("collision") if name in bodies else ():
                capsule = _enclosing_capsule(index, placement @ _pose(shape.find("origin")), shape)
                if capsule is not None:
                    capsules.append(capsule)
    return tuple(capsules)


def _enclosing_capsule(index: int, pose: Float[Array, "4 4"], shape: ET.Element) -> Capsule | None:
    """Smallest capsule along the longest axis of a shape that encloses it; None for a mesh."""
    cylinder, sphere = shape.find("geometry/cylinder"), shape.find("geometry/sphere")
    box = shape.find("geometry/box")
    axis, half, radius = 2, 0.0, 0.0
    if cylinder is not None:
        radius, half = _number(cylinder, "radius"), 0.5 * _number(cylinder, "length")
    elif sphere is not None:
        radius = _number(sphere, "radius")
    elif box is not None:
        size = np.array(_three(box, "size"))
        axis = int(np.argmax(size))
        half = 0.5 * size[axis]
        radius = 0.5 * float(np.linalg.norm(np.delete(size, axis)))
    else:
        return None
    direction = pose[:3, axis] * half
    return Capsule(index, pose[:3, 3] - direction, pose[:3, 3] + direction, radius)


def _pose(origin: ET.Element | None) -> Float[Array, "4 4"]:
    pose = np.eye(4)
    if origin is not None:
        pose[:3, 3] = _three(origin, "xyz")
        pose[:3, :3] = rotation_rpy(*_three(origin, "rpy"))
    return pose


def _number(element: ET.Element, name: str) -> float:
    return _values(element, name, "0", 1)[0]


def _three(element: ET.Element, name: str) -> list[float]:
    return _values(element, name, "0 0 0", 3)


def _values(element: ET.Element, name: str, default: str, count: int) -> list[float]:
    text = element.get(name, default)
    try:
        numbers = [float(x) for x in text.split()]
    except ValueError:
        numbers = []
    if len(numbers) != count or not np.all(np.isfinite(numbers)):
        raise RobotError(
            f"the URDF's <{element.tag[:40]}> has {name}={text[:40]!r}, expected {count} "
            f"number{'s' if count > 1 else ''}."
        )
    return numbers
