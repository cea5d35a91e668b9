"""Robots as YAML. In: a `Robot`. Out: text from which `from_yaml` creates an equal robot."""

from __future__ import annotations

from typing import Any

import numpy as np
import yaml

from taufit.robot.compensator import COMPENSATOR_KEYS
from taufit.robot.robot import Link, Robot
from taufit.robot.tree import TreeRobot
from taufit.robot.yaml_tree import tree_rows


def _joint_row(robot: Robot, link: Link, i: int) -> dict[str, Any]:
    """Row of one joint and its link, without default values."""
    row: dict[str, Any] = {
        "name": link.joint,
        "link": link.name,
        "type": "prismatic" if link.is_prismatic else "revolute",
        "placement": link.placement[:3].tolist(),
        "screw": link.screw.tolist(),
    }
    for key in ("lower", "upper", "velocity", "acceleration", "torque"):
        value = float(getattr(robot.limits, key)[i])
        if np.isfinite(value):
            row[key] = value
    if np.any(link.parameters):
        row["parameters"] = link.parameters.tolist()
    if link.rotor_inertia:
        row["rotor_inertia"] = float(link.rotor_inertia)
    for compensator in robot.compensators:
        if compensator.joint == i:
            compensator_data = {
                key: getattr(compensator, key) for key in ("kind", *COMPENSATOR_KEYS, "angle")
            }
            row["compensator"] = {key: x for key, x in compensator_data.items() if x}
    row.update(_drive_entries(robot, i))
    return row


def _drive_entries(robot: Robot, i: int) -> dict[str, Any]:
    """Entries of one joint's drive: places of friction, zero, gear and gains."""
    drives = robot.drives
    row: dict[str, Any] = {}
    if drives.friction_places is not None and drives.friction_places[i].any():
        factors = zip(robot.joint_names, drives.friction_places[i].tolist(), strict=True)
        row["friction_at"] = {name: factor for name, factor in factors if factor}
    if robot.joint_zeros and robot.joint_zeros[i]:
        row["zero"] = float(robot.joint_zeros[i])
    row["gear_ratio"] = float(drives.gear_ratio[i])
    if np.isfinite(drives.torque_constant[i]):
        row["torque_constant"] = float(drives.torque_constant[i])
    row["gain"] = float(drives.gain[i])
    if drives.gain_std[i]:
        row["gain_std"] = float(drives.gain_std[i])
    return row


def to_yaml(robot: Robot) -> str:
    """YAML in frames, from which `from_yaml` creates an equal robot."""
    drives = robot.drives
    as_written = robot.with_joint_zeros(())
    tree_data: dict[str, Any] = {}
    if isinstance(as_written, TreeRobot):
        joints, tree_data = tree_rows(as_written, lambda link, i: _joint_row(robot, link, i))
    else:
        joints = [_joint_row(robot, link, i) for i, link in enumerate(as_written.links)]
    data = {
        "name": robot.name,
        "source": robot.source,
        "convention": "frames",
        "mounting": [float(x) for x in robot.mounting],
        "tip": {"xyz": robot.tip[:3, 3].tolist(), "rotation": robot.tip[:3, :3].tolist()},
        "drives": {"side": drives.side, "coupling": drives.coupling.tolist()},
        **tree_data,
        "joints": joints,
    }
    return str(yaml.safe_dump(data, sort_keys=False, width=120, allow_unicode=True))
