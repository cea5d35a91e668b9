"""Digests of the inputs of a clearance: they only name what changed since `design`.

A digest is not a signature: whoever edits a motion can make a new one. Protection comes from the
proof, which is always made anew.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from taufit.clearance.cell import Cell
from taufit.core.arrays import Array, Float
from taufit.excitation import Motion
from taufit.excitation.motion_file import motion_to_dict
from taufit.robot import Robot

SCHEMA = 1
# Part of a clearance -> its name in messages.
PARTS = {
    "motion": "the motion itself",
    "geometry": "the arm's geometry",
    "limits": "the joint limits",
    "inertia": "the arm's inertia",
    "mounting": "the mounting",
    "scene": "the cell",
    "certificate": "the certificate",
}
# Digits of geometry [m, rad]: the last digit of sines differs between computers.
_DIGITS = 9


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, shortest doubles, 1 = 1.0, -0 = 0, infinity as text."""
    if isinstance(value, dict):
        entries = (json.dumps(key) + ":" + canonical(value[key]) for key in sorted(value))
        return "{" + ",".join(entries) + "}"
    if isinstance(value, np.ndarray):
        return canonical(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError("NaN has no digest")
    return repr(number + 0.0) if math.isfinite(number) else f'"{number}"'


def digest(value: Any) -> str:
    """BLAKE2b of the canonical JSON, 160 bits."""
    return hashlib.blake2b(canonical(value).encode(), digest_size=20).hexdigest()


def digests(
    motion: Motion, robot: Robot, cell: Cell, home: Float[Array, " j"] | None
) -> dict[str, str]:
    """One digest per part of PARTS."""
    geometry = [
        {"placement": _round_geometry(link.placement), "screw": _round_geometry(link.screw)}
        for link in robot.links
    ]
    cell_data = cell.to_dict()
    limits = {"cell": cell_data.pop("limits"), "jerk": cell_data.pop("jerk")}
    robot_limits = {
        name: getattr(robot.limits, name)
        for name in ("lower", "upper", "velocity", "acceleration", "torque")
    }
    return {
        "motion": digest(motion_to_dict(motion)),
        "geometry": digest([geometry, _round_geometry(robot.tip), list(robot.joint_names)]),
        "limits": digest({**limits, "robot": robot_limits}),
        "inertia": digest([robot.parameters, robot.rotor_inertias]),
        "mounting": digest(_round_geometry(np.array(robot.mounting))),
        "scene": digest(cell_data),
        "certificate": digest({"schema": SCHEMA, "home": home}),
    }


def _round_geometry(values: Array) -> Array:
    # Adding zero turns -0 into 0.
    return np.round(values, _DIGITS) + 0.0
