"""Robots from taufit's YAML format: DH tables, screws or frames, with limits and drives."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.core.parameters import joint_name, link_name
from taufit.core.plain_data import parse_yaml
from taufit.robot.checks import (
    MAX_JOINTS,
    abbreviate,
    parse_number,
    parse_numbers,
    validate_robot,
)
from taufit.robot.from_dh import from_dh
from taufit.robot.inertia import from_centre_of_mass
from taufit.robot.mounting import parse_mounting
from taufit.robot.pose import pose_from_rpy
from taufit.robot.robot import Drives, JointLimits, Robot

if TYPE_CHECKING:
    from taufit.robot.compensator import Compensator

CONVENTIONS = ("standard", "modified", "screws", "frames")
_TREE_KEYS = ("parent", "moves_with", "coordinates", "tips")
_TOP_KEYS = (
    *("name", "source", "convention", "angles", "mounting", "tip", "drives", "joints"),
    *_TREE_KEYS[2:],
)
_JOINT_KEYS = (
    *_TREE_KEYS[:2],
    *("name", "link", "type", "lower", "upper", "velocity", "acceleration", "torque"),
    *("mass", "com", "inertia", "parameters", "rotor_inertia"),
    *("gear_ratio", "torque_constant", "gain", "gain_std", "zero", "compensator"),
    "friction_at",
)
_GEOMETRY_KEYS = {
    "standard": ("theta", "d", "a", "alpha"),
    "modified": ("theta", "d", "a", "alpha"),
    "screws": ("screw",),
    "frames": ("placement", "screw"),
}
_PI = re.compile(r"^\s*([+-]?)\s*(?:([0-9.]+)\s*\*?\s*)?pi(?:\s*/\s*([0-9.]+))?\s*$")


def from_yaml(text: str) -> Robot:
    """Create a robot from YAML; docs/robots.md lists the keys."""
    data = load_yaml(text)
    _require_known_keys(data, _TOP_KEYS, "the robot")
    convention = data.get("convention", "standard")
    if convention not in CONVENTIONS:
        raise RobotError(
            f"convention {abbreviate(convention)} is not known: use {', '.join(CONVENTIONS)}."
        )
    unit = data.get("angles", "radians")
    if unit not in ("radians", "degrees"):
        raise RobotError(f"angles must be radians or degrees, not {abbreviate(unit)}.")
    scale = math.pi / 180.0 if unit == "degrees" else 1.0
    rows = _joint_rows(data.get("joints"), convention)
    is_prismatic = tuple(_is_prismatic(row, i) for i, row in enumerate(rows))
    robot = _geometry(data, rows, is_prismatic, convention, scale)
    if any(key in part for part in (data, *rows) for key in _TREE_KEYS):
        from taufit.robot.yaml_tree import tree_from_rows

        robot, rows = tree_from_rows(robot, data, rows, scale)
        is_prismatic = tuple(robot.is_prismatic.tolist())
        robot = replace(robot, limits=_limits(rows, is_prismatic, scale))
    zeros = [
        _angle(row.get("zero", 0.0), f"zero of joint {i + 1}", 1.0 if is_prismatic[i] else scale)
        for i, row in enumerate(rows)
    ]
    if any(zeros):
        robot = robot.with_joint_zeros(zeros)
    drives = _drives(rows, data.get("drives", {}))
    mounting = _mounting(data.get("mounting", "ground"), scale)
    compensators = _compensators(rows, scale)
    return validate_robot(
        replace(robot, drives=drives, mounting=mounting, compensators=compensators)
    )


def _joint_rows(rows: Any, convention: str) -> list[dict[str, Any]]:
    """Entries of all joints, with known keys."""
    if not isinstance(rows, list) or not rows:
        raise RobotError("a robot needs a list `joints` with one entry per joint.")
    if len(rows) > MAX_JOINTS:
        raise RobotError(f"{len(rows)} joints are more than a serial arm has ({MAX_JOINTS}).")
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RobotError(f"joint {i + 1} must be a mapping such as {{d: 0.1, a: 0.4}}.")
        _require_known_keys(row, (*_JOINT_KEYS, *_GEOMETRY_KEYS[convention]), f"joint {i + 1}")
    return rows


def _geometry(
    data: dict[str, Any],
    rows: list[dict[str, Any]],
    is_prismatic: tuple[bool, ...],
    convention: str,
    scale: float,
) -> Robot:
    """Links, joints and limits, by the convention of the rows."""
    names = [
        (str(row.get("link", link_name(i))), str(row.get("name", joint_name(i))))
        for i, row in enumerate(rows)
    ]
    parameters = np.array([_inertial(row, i) for i, row in enumerate(rows)])
    common: dict[str, Any] = {
        "name": str(data.get("name", "arm")),
        "source": str(data.get("source", "")).strip(),
        "tip": read_tip(data.get("tip"), scale),
        "limits": _limits(rows, is_prismatic, scale),
    }
    rotors = np.array([_joint_number(row, "rotor_inertia", i, 0.0) for i, row in enumerate(rows)])
    if convention == "frames":
        from taufit.robot.from_frames import from_frames

        robot = from_frames(
            rows, names=names, parameters=parameters, rotor_inertias=rotors, **common
        )
    elif convention == "screws":
        from taufit.robot.from_screws import from_screws

        robot = from_screws(
            np.array([parse_numbers(row.get("screw"), 6, f"screw of joint {i + 1}")
                      for i, row in enumerate(rows)]),
            names=names, parameters=parameters, rotor_inertias=rotors, **common,
        )  # fmt: skip
        declared_prismatic = tuple(row.get("type") == "prismatic" for row in rows)
        for i, link in enumerate(robot.links):
            if "type" in rows[i] and link.is_prismatic != declared_prismatic[i]:
                raise RobotError(f"joint {i + 1} is called {rows[i]['type']} but its screw is not.")
    else:
        table = [
            [
                _angle(row.get("theta", 0.0), f"theta of joint {i + 1}", scale),
                parse_number(row.get("d", 0.0), f"d of joint {i + 1}"),
                parse_number(row.get("a", 0.0), f"a of joint {i + 1}"),
                _angle(row.get("alpha", 0.0), f"alpha of joint {i + 1}", scale),
            ]
            for i, row in enumerate(rows)
        ]
        robot = from_dh(
            np.array(table), convention=convention, prismatic=is_prismatic,
            names=names, parameters=parameters, rotor_inertias=rotors, **common,
        )  # fmt: skip
    return robot


def _compensators(rows: list[dict[str, Any]], scale: float) -> tuple[Compensator, ...]:
    return tuple(
        _compensator(row["compensator"], i, scale)
        for i, row in enumerate(rows)
        if row.get("compensator") is not None
    )


def _compensator(value: Any, joint: int, scale: float) -> Compensator:
    """Gravity compensator from a joint's row: a kind, or a mapping."""
    from taufit.robot.compensator import COMPENSATOR_KEYS, Compensator

    data = {"kind": value} if isinstance(value, str) else value
    label = f"the compensator of joint {joint + 1}"
    if not isinstance(data, dict):
        raise RobotError(f"{label} must be a kind or a mapping, not {abbreviate(value)}.")
    _require_known_keys(data, ("kind", *COMPENSATOR_KEYS, "angle"), label)
    lengths = {
        key: parse_number(data[key], f"{key} of {label}") for key in COMPENSATOR_KEYS if key in data
    }
    angle = _angle(data.get("angle", 0.0), f"angle of {label}", scale)
    return Compensator(joint, str(data.get("kind", "unknown")), angle=angle, **lengths)


def load_yaml(text: str) -> dict[Any, Any]:
    """Parse one mapping of plain data; aliases are rejected, since they can expand without
    limit."""
    data = parse_yaml(text, "this", "valid YAML", error=RobotError)
    if not isinstance(data, dict):
        raise RobotError("a robot description is a mapping with `convention` and `joints`.")
    return data


def _require_known_keys(data: Mapping[Any, Any], keys: tuple[str, ...], label: str) -> None:
    for key in data:
        if key not in keys:
            similar = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"known are {', '.join(keys)}."
            raise RobotError(f"{label} has an unknown key {abbreviate(key)}: {hint}")


def _angle(value: Any, label: str, scale: float) -> float:
    """Angle [rad]; `pi/2`, `-pi`, `2*pi` are accepted in any unit."""
    if isinstance(value, str) and (match := _PI.match(value)):
        sign, factor, divisor = match.groups()
        top = parse_number(factor, label) if factor else 1.0
        bottom = parse_number(divisor, label) if divisor else 1.0
        if bottom == 0.0:
            raise RobotError(f"{label} divides by zero.")
        return (-1.0 if sign == "-" else 1.0) * top * math.pi / bottom
    return parse_number(value, label) * scale


def _joint_number(row: Mapping[str, Any], key: str, joint: int, default: float) -> float:
    return parse_number(row[key], f"{key} of joint {joint + 1}") if key in row else default


def _is_prismatic(row: Mapping[str, Any], joint: int) -> bool:
    kind = row.get("type", "revolute")
    if kind not in ("revolute", "prismatic"):
        raise RobotError(
            f"joint {joint + 1} is of type {abbreviate(kind)}: use revolute or prismatic."
        )
    return bool(kind == "prismatic")


def _inertial(row: Mapping[str, Any], joint: int) -> Float[Array, " 10"]:
    """Inertial parameters from mass, com and inertia about it, or from `parameters`."""
    label = f"of joint {joint + 1}"
    if "parameters" in row:
        if any(key in row for key in ("mass", "com", "inertia")):
            raise RobotError(f"give either parameters or mass, com and inertia {label}, not both.")
        return parse_numbers(row["parameters"], 10, f"parameters {label}")
    mass = _joint_number(row, "mass", joint, 0.0)
    if mass < 0.0:
        raise RobotError(f"mass {label} is negative ({mass:g} kg): it must be zero or positive.")
    centre = parse_numbers(row.get("com", [0, 0, 0]), 3, f"com {label}")
    inertia = row.get("inertia", [0, 0, 0])
    if isinstance(inertia, dict):
        _require_known_keys(inertia, ("xx", "xy", "yy", "xz", "yz", "zz"), f"inertia {label}")
        xx, xy, yy, xz, yz, zz = (
            parse_number(inertia.get(key, 0.0), f"inertia {key} {label}")
            for key in ("xx", "xy", "yy", "xz", "yz", "zz")
        )
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        tensor = np.diag(parse_numbers(inertia, 3, f"inertia {label}"))
    return from_centre_of_mass(mass, centre, tensor)


def _limits(
    rows: list[dict[str, Any]], is_prismatic: tuple[bool, ...], scale: float
) -> JointLimits:
    def column(key: str, missing: float) -> Float[Array, " j"]:
        values = []
        for i, row in enumerate(rows):
            if row.get(key) is None:
                values.append(missing)
            elif is_prismatic[i] or key == "torque":
                values.append(parse_number(row[key], f"{key} limit of joint {i + 1}"))
            else:
                values.append(_angle(row[key], f"{key} limit of joint {i + 1}", scale))
        return np.array(values)

    return JointLimits(
        column("lower", -np.inf),
        *(column(key, np.inf) for key in ("upper", "velocity", "acceleration", "torque")),
    )


def _drives(rows: list[dict[str, Any]], data: Any) -> Drives:
    if not isinstance(data, dict):
        raise RobotError(
            f"drives must be a mapping with side and coupling, not {abbreviate(data)}."
        )
    _require_known_keys(data, ("side", "coupling"), "drives")
    n = len(rows)
    ratio = np.array([_joint_number(row, "gear_ratio", i, 1.0) for i, row in enumerate(rows)])
    constant = np.array(
        [_joint_number(row, "torque_constant", i, np.nan) for i, row in enumerate(rows)]
    )
    product = ratio * constant
    gain = np.array(
        [
            _joint_number(row, "gain", i, product[i] if np.isfinite(product[i]) else 1.0)
            for i, row in enumerate(rows)
        ]
    )
    std = np.array([_joint_number(row, "gain_std", i, 0.0) for i, row in enumerate(rows)])
    coupling = data.get("coupling")
    if coupling is None:
        matrix = np.eye(n)
    elif not isinstance(coupling, list) or len(coupling) != n:
        raise RobotError(f"the coupling matrix must have {n} rows of {n} numbers.")
    else:
        matrix = np.array(
            [parse_numbers(row, n, "a row of the coupling matrix") for row in coupling]
        )
    side = str(data.get("side", "motor"))
    return Drives(gain, std, ratio, constant, side, matrix, _friction_places(rows))


def _friction_places(rows: list[dict[str, Any]]) -> Float[Array, "j j"] | None:
    """Factors of the joints at the further place of friction of each joint."""
    names = [str(row.get("name", joint_name(i))) for i, row in enumerate(rows)]
    out = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        factors = row.get("friction_at", {})
        label = f"friction_at of joint {names[i]!r}"
        if not isinstance(factors, dict):
            raise RobotError(
                f"{label} must be a mapping such as {{{names[0]}: 1.0}}, not {abbreviate(factors)}."
            )
        for other, value in factors.items():
            if str(other) not in names:
                raise RobotError(
                    f"{label} names no recorded joint: {other}. Available: {', '.join(names)}."
                )
            out[i, names.index(str(other))] = parse_number(value, f"{label}, {other}")
    return out if out.any() else None


def _mounting(value: Any, scale: float) -> tuple[float, float, float]:
    if isinstance(value, str):
        return parse_mounting(value)
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise RobotError("mounting must be ground, ceiling, wall or [roll, pitch, yaw].")
    return tuple(_angle(x, "mounting", scale) for x in value)  # type: ignore[return-value]


def read_tip(value: Any, scale: float) -> Float[Array, "4 4"]:
    """Pose of a tip in its link's frame."""
    if value is None:
        return np.eye(4)
    if not isinstance(value, dict):
        raise RobotError("tip must be a mapping such as {xyz: [0, 0, 0.1], rpy: [0, 0, 0]}.")
    _require_known_keys(value, ("xyz", "rpy", "rotation"), "tip")
    position = parse_numbers(value.get("xyz", [0, 0, 0]), 3, "xyz of the tip")
    if "rotation" in value:
        from taufit.robot.from_frames import parse_rotation

        out = np.eye(4)
        out[:3, :3] = parse_rotation(value["rotation"], "rotation of the tip")
        out[:3, 3] = position
        return out
    angles = value.get("rpy", [0, 0, 0])
    if not isinstance(angles, list) or len(angles) != 3:
        raise RobotError(f"rpy of the tip must be 3 angles, not {abbreviate(angles)}.")
    return pose_from_rpy(position, np.array([_angle(x, "rpy of the tip", scale) for x in angles]))


__all__ = ["CONVENTIONS", "from_yaml", "load_yaml"]
