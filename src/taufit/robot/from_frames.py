"""Robots from the placement and the screw of every joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.robot.checks import parse_numbers
from taufit.robot.from_screws import normalise_screw
from taufit.robot.robot import Drives, JointLimits, Link, Robot


def from_frames(
    rows: Sequence[Mapping[str, Any]],
    *,
    tip: Float[Array, "4 4"],
    name: str,
    parameters: Float[Array, "j 10"],
    limits: JointLimits,
    names: Sequence[tuple[str, str]],
    rotor_inertias: Float[Array, " j"],
    source: str,
) -> Robot:
    """Create a robot from rows with `placement` M (3 rows of 4) and `screw` S of every joint."""
    links = []
    for i, row in enumerate(rows):
        label = f"placement of joint {i + 1}"
        value = row.get("placement")
        if not isinstance(value, list) or len(value) != 3:
            raise RobotError(f"{label} must be 3 rows of 4 numbers.")
        top = np.array([parse_numbers(line, 4, label) for line in value])
        placement = np.eye(4)
        placement[:3, :3] = parse_rotation(top[:, :3].tolist(), label)
        placement[:3, 3] = top[:, 3]
        screw = normalise_screw(
            parse_numbers(row.get("screw"), 6, f"screw of joint {i + 1}"), f"joint {i + 1}"
        )
        links.append(Link(*names[i], placement, screw, parameters[i], float(rotor_inertias[i])))
    drives = Drives.direct_drive(len(links))
    return Robot(name, tuple(links), limits, drives, tip=tip, source=source)


def parse_rotation(value: Any, label: str) -> Float[Array, "3 3"]:
    """Convert three rows of three numbers to a rotation matrix."""
    if not isinstance(value, list) or len(value) != 3:
        raise RobotError(f"{label} must be 3 rows of 3 numbers.")
    matrix = np.array([parse_numbers(row, 3, label) for row in value])
    if np.abs(matrix @ matrix.T - np.eye(3)).max() > 1e-6 or np.linalg.det(matrix) < 0.0:
        raise RobotError(f"{label} is not a rotation matrix.")
    return matrix
