"""Validation of robot descriptions, and warnings about incomplete ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.robot.inertia import pseudo_inertia
from taufit.robot.robot import Drives, Link, Robot

MAX_JOINTS = 100


def parse_number(value: Any, label: str) -> float:
    """Convert to a finite number; raises an error that names its place.

    Text such as `1e-3` is accepted, since YAML reads it as a string.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise RobotError(f"{label} must be a number, not {abbreviate(value)}.")
    try:
        result = float(value)
    except (ValueError, OverflowError):
        raise RobotError(f"{label} must be a number, not {abbreviate(value)}.") from None
    if not np.isfinite(result) or abs(result) > 1e12:
        raise RobotError(f"{label} must be a finite number, not {abbreviate(value)}.")
    return result


def parse_numbers(value: Any, count: int, label: str) -> Float[Array, " count"]:
    """Convert to an array of `count` finite numbers."""
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise RobotError(f"{label} must be {count} numbers, not {abbreviate(value)}.")
    return np.array([parse_number(x, label) for x in value])


def abbreviate(value: Any) -> str:
    """Text of a value in one line."""
    if isinstance(value, (dict, list, tuple)):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def normalise_axis(axis: Float[Array, " 3"], label: str) -> Float[Array, " 3"]:
    """Unit vector of a direction; components from rounding are set to zero."""
    length = float(np.linalg.norm(axis))
    if length < 1e-6:
        raise RobotError(
            f"{label} has a zero axis: give the direction the joint moves about or along."
        )
    unit = np.asarray(axis, float) / length
    unit[np.abs(unit) < 1e-5] = 0.0
    return unit / np.linalg.norm(unit)


def validate_robot(robot: Robot) -> Robot:
    """Return the robot if limits are ordered, masses nonnegative and all values finite; else
    raise."""
    if robot.joints == 0:
        raise RobotError(f"{robot.name} has no joint that moves.")
    for kind, names in (("joints", robot.joint_names), ("links", robot.link_names)):
        if len(set(names)) != len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise RobotError(
                f"{robot.name} has two {kind} called {duplicate!r}: give each its own name."
            )
    for link in robot.links:
        _check_link(link)
    for i, name in enumerate(robot.joint_names):
        _check_limits(robot, i, f"joint {name!r}")
    _check_drives(robot.drives)
    return robot


def _check_link(link: Link) -> None:
    label = f"joint {link.joint!r}"
    if not (np.all(np.isfinite(link.placement)) and np.all(np.isfinite(link.screw))):
        raise RobotError(f"{label} has a pose that is not finite.")
    if not np.all(np.isfinite(link.parameters)):
        raise RobotError(f"link {link.name!r} has an inertial parameter that is not finite.")
    if link.parameters[0] < 0.0:
        raise RobotError(
            f"link {link.name!r} has a negative mass ({link.parameters[0]:g} kg): a mass must "
            "be zero (unknown) or positive."
        )
    if link.rotor_inertia < 0.0:
        raise RobotError(f"{label} has a negative rotor inertia ({link.rotor_inertia:g}).")


def _check_limits(robot: Robot, joint: int, label: str) -> None:
    lower, upper = robot.limits.lower[joint], robot.limits.upper[joint]
    if not lower < upper:
        raise RobotError(
            f"{label} has its lower limit {lower:g} not below its upper limit {upper:g}."
        )
    for quantity in ("velocity", "acceleration", "torque"):
        value = getattr(robot.limits, quantity)[joint]
        if not value > 0.0:
            raise RobotError(f"{label} has a {quantity} limit of {value:g}: it must be positive.")


def _check_drives(drives: Drives) -> None:
    if drives.side not in ("motor", "link"):
        raise RobotError(f"drive side {drives.side!r} is not known: use motor or link.")
    if np.any(drives.gain == 0.0) or np.any(drives.gear_ratio == 0.0):
        raise RobotError("a drive's gain and gear ratio cannot be zero.")
    if abs(np.linalg.det(drives.coupling)) < 1e-9:
        raise RobotError("the coupling matrix of the drives cannot be inverted.")


def description_warnings(robot: Robot) -> tuple[str, ...]:
    """Warnings about a valid description that is incomplete or physically inconsistent."""
    warnings = []
    unknown = [link.name for link in robot.links if not np.any(link.parameters)]
    if unknown:
        warnings.append("no nominal mass for " + ", ".join(unknown))
    impossible = [
        link.name
        for link in robot.links
        if np.any(link.parameters)
        and np.linalg.eigvalsh(pseudo_inertia(link.parameters))[0]
        < -1e-9 * max(1e-6, float(np.abs(link.parameters).max()))
    ]
    if impossible:
        warnings.append("nominal inertia is physically impossible for " + ", ".join(impossible))
    unlimited = [
        name
        for name, limit in zip(robot.joint_names, robot.limits.velocity, strict=True)
        if not np.isfinite(limit)
    ]
    if unlimited:
        warnings.append("no velocity limit for " + ", ".join(unlimited))
    return tuple(warnings)
