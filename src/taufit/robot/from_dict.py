"""Robots from plain data of a file; every value is checked, errors name its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.core.fields import Field
from taufit.robot.compensator import Compensator
from taufit.robot.robot import Drives, JointLimits, Link, Robot

MAX_JOINTS = 100
_LARGEST = 1e12


def robot_from_field(data: Field) -> Robot:
    """Inverse of `Robot.to_dict`."""
    links = tuple(_link(item) for item in data["links"].required().items())
    bodies, is_tree = len(links), not data["binding"].missing
    if not 1 <= bodies <= MAX_JOINTS:
        data["links"].fail(f"1 to {MAX_JOINTS} links")
    joints = len(list(data["coordinates"].required().items())) if is_tree else bodies
    for key, names in (("joint", [x.joint for x in links]), ("name", [x.name for x in links])):
        if len(set(names)) < bodies:
            data["links"].fail(f"links that each have their own {key}")
    limits, slopes = data["limits"].required(), data["length_slopes"]
    lengths = tuple(_length(item) for item in data["lengths"].items())
    robot = Robot(
        name=data["name"].text(),
        links=links,
        limits=JointLimits(
            limits["lower"].required().numbers(joints, missing=-np.inf),
            *(
                limits[name].required().numbers(joints, missing=np.inf)
                for name in ("upper", "velocity", "acceleration", "torque")
            ),
        ),
        drives=_drives(data["drives"].required(), joints),
        mounting=_triple(data["mounting"]),
        tip=read_pose(data["tip"]),
        lengths=lengths,
        source=data["source"].text(""),
        urdf=None if data["urdf"].missing else _urdf(data["urdf"], links),
        length_slopes=_length_slopes(slopes, len(lengths), bodies),
        joint_zeros=_joint_zeros(data["joint_zeros"], joints),
        compensators=read_compensators(data["compensators"], joints),
    )
    _require_ordered_limits(robot.limits, limits)
    if is_tree:
        from taufit.robot.tree import tree_from_field

        return tree_from_field(robot, data)
    return robot


def robot_from_dict(data: Any, source: str = "this robot") -> Robot:
    """Create a robot from data; inverse of `Robot.to_dict`."""
    return robot_from_field(Field(data, source))


def _urdf(data: Field, links: Sequence[Link]) -> str:
    """Text of the original URDF; it must contain the robot's links."""
    from taufit.robot.urdf import parse_xml

    text = data.text()
    try:
        root = parse_xml(text)
    except RobotError as error:
        data.fail(f"a URDF; {str(error).rstrip('.')}")
    urdf_links = {link.get("name") for link in root.findall("link")}
    required_links = {link.name for link in links}
    for joint in root.findall("joint"):
        ends = (joint.find("parent"), joint.find("child"))
        required_links |= {end.get("link", "") for end in ends if end is not None}
    missing_links = sorted(required_links - urdf_links)
    if missing_links:
        data.fail(f"a URDF with a link {missing_links[0]!r}")
    return text


def _link(data: Field) -> Link:
    screw = data["screw"].required().numbers(6)
    if np.abs(screw).max() > _LARGEST:
        data["screw"].fail(f"numbers of at most {_LARGEST:g}")
    axis_length = float(np.linalg.norm(screw[:3])) or float(np.linalg.norm(screw[3:]))
    if abs(axis_length - 1.0) > 1e-6:
        data["screw"].fail("an axis of length 1")
    parameters = data["parameters"].required().numbers(10)
    if np.abs(parameters).max() > _LARGEST:
        data["parameters"].fail(f"numbers of at most {_LARGEST:g}")
    rotor_inertia = data["rotor_inertia"].number(0.0)
    if abs(rotor_inertia) > _LARGEST:
        data["rotor_inertia"].fail(f"a number of at most {_LARGEST:g}")
    try:
        return Link(
            data["name"].text(),
            data["joint"].text(),
            read_pose(data["placement"]),
            screw,
            parameters,
            rotor_inertia,
        )
    except RobotError as error:
        raise RobotError(f"{data.source}: {data.path}: {error}") from None


def read_pose(data: Field) -> Float[Array, "4 4"]:
    """Homogeneous matrix of a pose."""
    pose = data.required().matrix(4, 4)
    rotation = np.clip(pose[:3, :3], -2.0, 2.0)
    if (
        np.abs(pose).max() > _LARGEST
        or np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-6
        or not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0])
    ):
        data.fail("a pose: a rotation, a translation, and a last row of 0 0 0 1")
    return pose


def _triple(data: Field) -> tuple[float, float, float]:
    values = data.required().numbers(3)
    if np.abs(values).max() > 1e3:
        data.fail("three angles")
    return (float(values[0]), float(values[1]), float(values[2]))


def _length(data: Field) -> tuple[str, float]:
    pair = list(data.items())
    if len(pair) != 2:
        data.fail("a name and a number")
    return (pair[0].text(), pair[1].number())


def _drives(data: Field, joints: int) -> Drives:
    side = data["side"].required().text()
    if side not in ("motor", "link"):
        data["side"].fail("motor or link")
    coupling = data["coupling"].required().matrix(joints, joints)
    if not np.abs(coupling).max() < _LARGEST or abs(np.linalg.det(coupling)) < 1e-9:
        data["coupling"].fail("a matrix that can be inverted")
    places = data["friction_places"]
    return Drives(
        data["gain"].required().numbers(joints),
        data["gain_std"].required().numbers(joints, low=0.0),
        data["gear_ratio"].required().numbers(joints),
        data["torque_constant"].required().numbers(joints, missing=np.nan),
        side,
        coupling,
        None if places.missing else places.matrix(joints, joints),
    )


def read_compensators(data: Field, joints: int = MAX_JOINTS) -> tuple[Compensator, ...]:
    """Gravity compensators from the data of `Robot.to_dict`."""
    out = []
    for item in () if data.missing else data.items():
        joint = item["joint"].required().number(low=0.0, most=joints - 1)
        numbers = {
            item_field.name: item[item_field.name].number(float(item_field.default))  # type: ignore[arg-type]
            for item_field in fields(Compensator)
            if item_field.name not in ("joint", "kind")
        }
        try:
            out.append(Compensator(int(joint), item["kind"].text("unknown"), **numbers))
        except RobotError as error:
            raise RobotError(f"{item.source}: {item.path}: {error}") from None
    if len({item_field.joint for item_field in out}) < len(out):
        data.fail("at most one compensator per joint")
    return tuple(out)


def _joint_zeros(data: Field, joints: int) -> tuple[float, ...]:
    if data.missing or not data.value:
        return ()
    return tuple(data.numbers(joints, low=-10.0, most=10.0).tolist())


def _length_slopes(data: Field, lengths: int, joints: int) -> Float[Array, "l j 9"]:
    if data.missing or not data.value:
        return np.zeros((0, joints, 9))
    tables = [item.matrix(joints, 9) for item in data.items()]
    if len(tables) != lengths:
        data.fail(f"one table for each of {lengths} lengths")
    return np.array(tables, float)


def _require_ordered_limits(limits: JointLimits, data: Field) -> None:
    if not np.all(limits.lower < limits.upper):
        data.fail("each lower limit below its upper one")
    for name in ("velocity", "acceleration", "torque"):
        if not np.all(getattr(limits, name) > 0.0):
            data[name].fail("limits above 0")
