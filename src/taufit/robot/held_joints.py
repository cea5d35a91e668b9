"""Arm of a whole robot: chain of the joints that were recorded, others held at a position.

In: URDF text of a robot with base, torso, head and hands; recorded joint positions by name.
Out: last link of the chain, and joints of the chain to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from xml.etree import ElementTree

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.robot.from_urdf import parse_xml
from taufit.robot.pose import pose_from_rpy
from taufit.robot.robot import Robot

# Smallest range of a joint that moves [rad or m].
_MIN_RANGE = 0.02
_MOVING = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True, slots=True)
class RecordedChain:
    """Chain of recorded joints in a description.

    Attributes:
        tip: Last link.
        held: Position of every joint of the chain that is held still [rad or m].
        recorded_names: Joints of `held` whose position was recorded; the others are at zero.
        joints: Recorded joints of a tree, in place of the chain; empty for a chain.
    """

    tip: str
    held: dict[str, float]
    recorded_names: tuple[str, ...]
    joints: tuple[str, ...] = ()

    def read(self, path: str) -> Robot:
        """Read the part of the robot that was recorded."""
        from taufit.robot.read import read_robot

        if self.joints:
            return read_robot(path, joints=self.joints)
        return read_robot(path, tip=self.tip, hold=self.held)

    @property
    def options(self) -> list[str]:
        """Options of commands that read the robot."""
        if self.joints:
            return ["--joints", ",".join(self.joints)]
        hold = ",".join(f"{name}={position:.6g}" for name, position in self.held.items())
        return ["--tip", self.tip, *(["--hold", hold] if hold else [])]

    @property
    def description(self) -> str:
        """Sentence for users."""
        if self.joints:
            return (
                f"several arms move by the names of the recorded joints: {', '.join(self.joints)}"
            )
        text = f"the arm ends at link {self.tip} by the names of the recorded joints"
        parts = [
            f"{name} at {position:.4g} "
            f"({'recorded' if name in self.recorded_names else 'not recorded'})"
            for name, position in self.held.items()
        ]
        return f"{text}; held still: {', '.join(parts)}" if parts else text


def free_joints(text: str) -> list[str]:
    """Names of the joints of a URDF that move."""
    tree = _joint_tree(text)
    return [name for name in tree.joints if tree.is_moving(name)]


def recorded_chain(
    text: str, positions: Mapping[str, Float[Array, " n"]], torques: Collection[str] = ()
) -> RecordedChain | None:
    """Chain with most joints that move in a recording; None if it names no joint that moves.

    Args:
        text: URDF.
        positions: Recorded positions of joints by name; further names are ignored.
        torques: Joints whose recorded torque varies: these are not held though they stand.
    """
    tree = _joint_tree(text)
    moving = tree.moving_names(positions)
    chain, shared = _common_chain(tree, moving)
    beside = [name for name in moving if name not in chain and name in torques]
    if beside and 2 * len(beside) >= len(shared):
        names = [name for name in positions if name in torques and tree.is_free(name)]
        return RecordedChain("", {}, (), tuple(names))
    if not shared:
        return None
    first = min(chain.index(name) for name in shared)
    standing = {name for name in chain[:first] if name not in torques}
    held = _rest_positions(tree, chain, standing, positions)
    recorded = tuple(name for name in held if name in positions)
    return RecordedChain(_end(tree.joints[chain[-1]], "child"), held, recorded)


def _rest_positions(
    tree: _JointTree,
    chain: list[str],
    standing: set[str],
    positions: Mapping[str, Float[Array, " n"]],
) -> dict[str, float]:
    """Mean position of joints of the chain that stand, zero of those that were not recorded."""
    return {
        name: float(np.mean(positions[name])) if name in positions else 0.0
        for name in chain
        if tree.is_moving(name) and (name not in positions or name in standing)
    }


def _common_chain(tree: _JointTree, moving: set[str]) -> tuple[list[str], set[str]]:
    """Joints to the last one that is common to all chains with most moving joints, and these.

    Fingers that move alike end several chains of equal length.
    """
    paths = [tree.path(name) for name in sorted(moving)]
    most = max((len(moving.intersection(path)) for path in paths), default=0)
    ends = [path for path in paths if len(moving.intersection(path)) == most]
    shared = set.intersection(*map(set, ends)) & moving if ends else set()
    last = max((ends[0].index(name) for name in shared), default=-1)
    return (ends[0][: last + 1] if ends else []), shared


@dataclass(frozen=True, slots=True)
class _JointTree:
    """Joints of a URDF by name, and their names by child link."""

    joints: dict[str, ElementTree.Element]
    by_child: dict[str, str]

    def is_moving(self, name: str) -> bool:
        return name in self.joints and self.joints[name].get("type") in _MOVING

    def moving_names(self, positions: Mapping[str, Float[Array, " n"]]) -> set[str]:
        """Joints whose recorded position varies."""
        return {
            name
            for name, values in positions.items()
            if self.is_moving(name) and np.ptp(values) >= _MIN_RANGE
        }

    def is_free(self, name: str) -> bool:
        """Whether a joint moves and mimics no other."""
        return self.is_moving(name) and self.joints[name].find("mimic") is None

    def path(self, name: str) -> list[str]:
        """Joints from the root to a joint."""
        out = [name]
        while (parent := _end(self.joints[out[-1]], "parent")) in self.by_child:
            if len(out) > len(self.joints):
                raise RobotError(f"the joints form a loop through joint {name!r}.")
            out.append(self.by_child[parent])
        return out[::-1]


def _joint_tree(text: str) -> _JointTree:
    elements = [e for e in parse_xml(text).findall("joint") if e.get("name") and _end(e, "child")]
    joints = {element.get("name", ""): element for element in elements}
    return _JointTree(joints, {_end(e, "child"): name for name, e in joints.items()})


def hold_joints(text: str, held: Mapping[str, float]) -> str:
    """URDF with fixed joints at given positions [rad or m] in place of moving ones."""
    root = parse_xml(text)
    joints = {element.get("name"): element for element in root.findall("joint")}
    for name, position in held.items():
        element = joints.get(name)
        if element is None or element.get("type") not in _MOVING:
            names = [n for n, e in joints.items() if n and e.get("type") in _MOVING]
            raise RobotError(f"joint {name!r} to hold not found. Available: {', '.join(names)}.")
        pose = _pose(element) @ _motion(element, position)
        for old in element.findall("origin"):
            element.remove(old)
        rotation = pose[:3, :3]
        pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[0, 0], rotation[1, 0]))
        roll, yaw = (
            np.arctan2(rotation[2, 1], rotation[2, 2]),
            np.arctan2(rotation[1, 0], rotation[0, 0]),
        )
        if np.cos(pitch) < 1e-9:
            roll, yaw = 0.0, np.arctan2(-rotation[0, 1], rotation[1, 1])
        xyz = " ".join(f"{x:.17g}" for x in pose[:3, 3])
        rpy = " ".join(f"{x:.17g}" for x in (roll, pitch, yaw))
        ElementTree.SubElement(element, "origin", {"xyz": xyz, "rpy": rpy})
        element.set("type", "fixed")
    return ElementTree.tostring(root, encoding="unicode")


def parse_held(text: str) -> dict[str, float]:
    """Positions of `NAME=POSITION,...`; a name alone is held at zero."""
    held = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        try:
            held[name.strip()] = float(value or 0.0)
        except ValueError:
            raise RobotError(
                f"{part!r} is no joint to hold: give NAME=POSITION in rad or m."
            ) from None
    return held


def _end(joint: ElementTree.Element, tag: str) -> str:
    element = joint.find(tag)
    return "" if element is None else element.get("link", "")


def _numbers(element: ElementTree.Element | None, key: str, default: str) -> Float[Array, " 3"]:
    text = default if element is None else element.get(key, default)
    try:
        return np.array([float(x) for x in text.split()]).reshape(3)
    except ValueError:
        raise RobotError(f"{text!r} ({key}) must be three numbers.") from None


def _pose(joint: ElementTree.Element) -> Float[Array, "4 4"]:
    origin = joint.find("origin")
    return pose_from_rpy(_numbers(origin, "xyz", "0 0 0"), _numbers(origin, "rpy", "0 0 0"))


def _motion(joint: ElementTree.Element, position: float) -> Float[Array, "4 4"]:
    """Pose of a joint's child relative to its origin, by Rodrigues' formula."""
    axis = _numbers(joint.find("axis"), "xyz", "1 0 0")
    axis = axis / max(float(np.linalg.norm(axis)), 1e-300)
    pose = np.eye(4)
    if joint.get("type") == "prismatic":
        pose[:3, 3] = position * axis
        return pose
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    pose[:3, :3] += np.sin(position) * cross + (1.0 - np.cos(position)) * cross @ cross
    return pose
