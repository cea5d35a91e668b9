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
from taufit.robot.pose import screw_motion
from taufit.robot.robot import Robot
from taufit.robot.urdf import Urdf, UrdfJoint, parse_xml, roll_pitch_yaw

# Smallest range of a joint that moves [rad or m].
_MIN_RANGE = 0.02


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
    return list(Urdf.parse(text).single_axis_joints)


def recorded_chain(
    text: str, positions: Mapping[str, Float[Array, " n"]], torques: Collection[str] = ()
) -> RecordedChain | None:
    """Chain with most joints that move in a recording; None if it names no joint that moves.

    Args:
        text: URDF.
        positions: Recorded positions of joints by name; further names are ignored.
        torques: Joints whose recorded torque varies: these are not held though they stand.
    """
    urdf = Urdf.parse(text)
    joints = urdf.single_axis_joints
    moving = {n for n, q in positions.items() if n in joints and np.ptp(q) >= _MIN_RANGE}
    chain, shared = _common_chain(urdf, moving)
    names = [joint.name for joint in chain if joint.has_single_axis]
    beside = (moving & set(torques)).difference(names)
    if beside and 2 * len(beside) >= len(shared):
        return RecordedChain("", {}, (), _free_joints(joints, positions, torques))
    if not shared:
        return None
    first = min(map(names.index, shared))
    standing = set(names[:first]).difference(torques)
    held_names = [name for name in names if name in standing or name not in positions]
    # Mean position of joints that stand, zero of those that were not recorded.
    held = {name: float(np.mean(positions.get(name, 0.0))) for name in held_names}
    return RecordedChain(chain[-1].child, held, tuple(name for name in held if name in positions))


def _free_joints(
    joints: Mapping[str, UrdfJoint], positions: Collection[str], torques: Collection[str]
) -> tuple[str, ...]:
    """Joints with recorded position and torque that mimic no other, in recorded order."""
    recorded = [name for name in positions if name in joints and name in torques]
    return tuple(name for name in recorded if joints[name].mimic is None)


def _common_chain(urdf: Urdf, moving: set[str]) -> tuple[list[UrdfJoint], set[str]]:
    """Joints to the last one that is common to all chains with most moving joints, and these.

    Fingers that move alike end several chains of equal length.
    """
    paths = [urdf.path(urdf.by_name[name].child) for name in sorted(moving)]
    counts = [sum(joint.name in moving for joint in path) for path in paths]
    longest = [path for path, count in zip(paths, counts, strict=True) if count == max(counts)]
    if not longest:
        return [], set()
    names = [[joint.name for joint in path] for path in longest]
    shared = set.intersection(*map(set, names)) & moving
    last = max((names[0].index(name) for name in shared), default=-1)
    return longest[0][: last + 1], shared


def hold_joints(text: str, held: Mapping[str, float]) -> str:
    """URDF with fixed joints at given positions [rad or m] in place of moving ones."""
    joints, root = Urdf.parse(text).single_axis_joints, parse_xml(text)
    elements = {element.get("name"): element for element in root.findall("joint")}
    for name, position in held.items():
        if name not in joints:
            raise RobotError(f"joint {name!r} to hold not found. Available: {', '.join(joints)}.")
        element, pose = elements[name], joints[name].origin
        if position:
            pose = pose @ screw_motion(joints[name].screw, position)
        for old in element.findall("origin"):
            element.remove(old)
        xyz = " ".join(f"{x:.17g}" for x in pose[:3, 3])
        rpy = " ".join(f"{x:.17g}" for x in roll_pitch_yaw(pose[:3, :3]))
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
