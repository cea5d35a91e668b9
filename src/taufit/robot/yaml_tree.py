"""Trees in taufit's YAML format: `parent` and `moves_with` of a joint, `coordinates` and `tips`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.robot.checks import abbreviate, parse_number
from taufit.robot.from_yaml import read_tip
from taufit.robot.robot import Link, Robot
from taufit.robot.tree import Tip, TreeRobot, build_tree

BASE = "base"
Rows = list[dict[str, Any]]
_LINK_KEYS = ("name", "link", "type", "placement", "screw", "parameters", "rotor_inertia")


def tree_from_rows(
    robot: Robot, data: Mapping[str, Any], rows: Rows, scale: float
) -> tuple[TreeRobot, Rows]:
    """Tree of a description's links, and the rows of its recorded joints in recorded order.

    Args:
        robot: All links, each placed in its parent's frame.
        data: Description, with `coordinates` (names of recorded joints) and `tips`.
        rows: Row of every link; `moves_with` maps recorded joints to factors and may hold `offset`.
        scale: Radians per unit of angle.
    """
    if data.get("convention") == "screws":
        raise RobotError("screws in the base frame describe a serial arm: use frames for a tree.")
    recorded = {link.joint: row for link, row in zip(robot.links, rows, strict=True)
                if "moves_with" not in row}  # fmt: skip
    names = data.get("coordinates", list(recorded))
    if not isinstance(names, list) or len(set(map(str, names))) < len(names):
        raise RobotError("coordinates must be a list of the recorded joints, each named once.")
    names = [str(name) for name in names]
    missing = [name for name in recorded if name not in names]
    if missing:
        raise RobotError(
            f"joint {missing[0]!r} is neither in coordinates nor does it move with one."
        )
    binding, offset = np.zeros((len(rows), len(names))), np.zeros(len(rows))
    for b, (link, row) in enumerate(zip(robot.links, rows, strict=True)):
        unit = 1.0 if link.is_prismatic else scale
        binding[b], offset[b] = _binding_row(row, link.joint, names, unit)
    tips = _tips(data.get("tips"), robot, scale)
    tree = build_tree(robot, _parents(robot, rows), binding, offset, names, tips)
    return tree, [recorded.get(name, {"name": name}) for name in names]


def _parents(robot: Robot, rows: Rows) -> list[int]:
    out: list[int] = []
    for b, row in enumerate(rows):
        before = list(robot.link_names[:b])
        name = str(row.get("parent", before[-1] if before else BASE))
        if name != BASE and name not in before:
            raise RobotError(
                f"parent {name!r} of joint {row.get('name', b + 1)!r} not found among the links "
                f"before it. Available: {', '.join([BASE, *before])}."
            )
        out.append(before.index(name) if name in before else -1)
    return out


def _binding_row(
    row: Mapping[str, Any], joint: str, names: list[str], unit: float
) -> tuple[Float[Array, " j"], float]:
    """Factors of the recorded joints, and offset, of one joint."""
    factors = row.get("moves_with", {joint: 1.0})
    if not isinstance(factors, dict):
        raise RobotError(
            f"moves_with of joint {joint!r} must be a mapping such as {{other: -1.0}}, not "
            f"{abbreviate(factors)}."
        )
    by_name = {str(key): value for key, value in factors.items()}
    offset = parse_number(by_name.pop("offset", 0.0), f"moves_with offset of joint {joint!r}")
    out = np.zeros(len(names))
    for other, value in by_name.items():
        label = f"moves_with {other} of joint {joint!r}"
        if other not in names:
            raise RobotError(f"{label} names no recorded joint. Available: {', '.join(names)}.")
        out[names.index(other)] = parse_number(value, label)
    return out, unit * offset


def _tips(value: Any, robot: Robot, scale: float) -> list[Tip]:
    if value is None:
        return []
    if not isinstance(value, dict):
        raise RobotError(
            "tips must be a mapping such as {left: {link: left_hand, xyz: [0, 0, 0]}}."
        )
    out, links = [], list(robot.link_names)
    for name, item in value.items():
        link = item.get("link") if isinstance(item, dict) else None
        if link not in links:
            raise RobotError(
                f"tip {name!r} needs a link. Available: {', '.join(links)}; found {link!r}."
            )
        pose = read_tip({key: x for key, x in item.items() if key != "link"}, scale)
        out.append(Tip(str(name), links.index(link), pose))
    return out


def tree_rows(
    robot: TreeRobot, joint_row: Callable[[Link, int], dict[str, Any]]
) -> tuple[Rows, dict[str, Any]]:
    """Rows of all joints, and further keys, from which `tree_from_rows` creates an equal tree.

    Args:
        robot: Tree without joint zeros.
        joint_row: Row of a link and the recorded joint of a number.
    """
    rows, names = [], robot.coordinates
    for b, link in enumerate(robot.links):
        parent, offset = robot.parents[b], float(robot.binding_offset[b])
        factors = {names[j]: float(robot.binding[b, j]) for j in np.flatnonzero(robot.binding[b])}
        is_free = factors == {link.joint: 1.0} and not offset
        row = joint_row(link, names.index(link.joint) if is_free else 0)
        if not is_free:
            row = {key: row[key] for key in _LINK_KEYS if key in row}
            row["moves_with"] = factors | {"offset": offset}
        rows.append(row | {"parent": BASE if parent < 0 else robot.links[parent].name})
    tips = {
        tip.name: {
            "link": robot.links[tip.link].name,
            "xyz": tip.pose[:3, 3].tolist(),
            "rotation": tip.pose[:3, :3].tolist(),
        }
        for tip in robot.tips
    }
    return rows, {"coordinates": list(names), "tips": tips}
