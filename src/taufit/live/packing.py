"""Readings -> what the page gets: every sample, packed; what changes slowly, as plain data."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.plain_data import to_plain_data

if TYPE_CHECKING:
    from taufit.live.monitor import Reading
    from taufit.robot import Robot

# Of every sample and joint, in this order; the page is told so.
FIELDS = (
    "position",
    "torque",
    "filtered",
    "predicted",
    "half_width",
    "external",
    "external_half_width",
)


def pack(readings: Sequence[Reading], before: int, more: dict[str, Any]) -> str:
    """One batch as JSON on one line.

    `rows` holds, as float32 in base64, per sample the time since `time` and then FIELDS of every
    joint; not-a-number where a reading has none.

    Args:
        readings: In order, at least one.
        before: How many samples came before them.
        more: What else to send along.
    """
    first, last = readings[0], readings[-1]
    joints = len(last.position)
    rows = np.empty((len(readings), 1 + len(FIELDS) * joints), np.float32)
    rows[:, 0] = [reading.time - first.time for reading in readings]
    for k, name in enumerate(FIELDS):
        part = rows[:, 1 + k * joints : 1 + (k + 1) * joints]
        for i, reading in enumerate(readings):
            value = getattr(reading, name)
            part[i] = np.nan if value is None else value
    page = {
        "first": before,
        "count": len(readings),
        "time": float(first.time),
        "rows": base64.b64encode(rows.tobytes()).decode(),
        "payload": _payload(last),
        "contact": None if last.contact is None else _contact(last.contact),
        "temperature": _listed(last.temperature),
        "friction_index": _listed(last.friction_index),
        "events": [
            to_plain_data(event.to_dict()) for reading in readings for event in reading.events
        ],
        **to_plain_data(more),
    }
    return json.dumps(page, allow_nan=False)


def _listed(values: Any) -> list[float | None] | None:
    """Numbers for JSON, None for those that are not known."""
    if values is None:
        return None
    return [x if isfinite(x) else None for x in np.asarray(values, float).tolist()]


def _payload(reading: Reading) -> dict[str, Any] | None:
    estimate = reading.payload
    if estimate is None:
        return None
    return {
        "mass": float(estimate.mass),
        "interval": _listed(estimate.mass_interval),
        "centre": _listed(estimate.centre),
        "centre_interval": [_listed(x) for x in estimate.centre_interval],
        "ready": bool(estimate.ready),
        "empty": bool(estimate.empty),
    }


def _contact(contact: Any) -> dict[str, Any]:
    return {"since": float(contact.start_time), "link": contact.link, "kind": contact.kind}


def chain(robot: Robot) -> dict[str, Any]:
    """The arm's kinematics for the page: placements M, screws S, tip, and the base in the world.

    The page computes the poses M exp([S] q) itself, in every frame.
    """
    from taufit.dynamics import forward_kinematics
    from taufit.robot.mounting import rotation_rpy

    poses = forward_kinematics(robot, np.zeros((1, robot.joints)))[0, :, :3, 3]
    steps = np.diff(np.vstack([np.zeros(3), poses]), axis=0)
    reach = float(np.linalg.norm(steps, axis=1).sum())
    return {
        "placements": [link.placement.ravel().tolist() for link in robot.links],
        "screws": [link.screw.tolist() for link in robot.links],
        "tip": robot.tip.ravel().tolist(),
        "base": rotation_rpy(*robot.mounting).ravel().tolist(),
        "reach": max(reach, 1e-3),
    }
