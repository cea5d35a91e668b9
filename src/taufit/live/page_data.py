"""Data of readings for the live page: all samples packed, slow values as JSON."""

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

# Values of every sample and joint, in this order.
SAMPLE_FIELDS = (
    "position",
    "torque",
    "filtered",
    "predicted",
    "half_width",
    "external",
    "external_half_width",
)


def pack_readings(
    readings: Sequence[Reading], sample_count: int, extra_data: dict[str, Any]
) -> str:
    """Pack a batch of readings as one line of JSON.

    `rows` holds, as float32 in base64, per sample the time since `time` and then SAMPLE_FIELDS of
    every joint; nan for missing values.

    Args:
        readings: Readings in order, at least one.
        sample_count: Number of samples before them.
        extra_data: Further entries.
    """
    first, last = readings[0], readings[-1]
    joints = len(last.position)
    rows = np.empty((len(readings), 1 + len(SAMPLE_FIELDS) * joints), np.float32)
    rows[:, 0] = [reading.time - first.time for reading in readings]
    for k, name in enumerate(SAMPLE_FIELDS):
        columns = rows[:, 1 + k * joints : 1 + (k + 1) * joints]
        for i, reading in enumerate(readings):
            value = getattr(reading, name)
            columns[i] = np.nan if value is None else value
    page = {
        "first": sample_count,
        "count": len(readings),
        "time": float(first.time),
        "rows": base64.b64encode(rows.tobytes()).decode(),
        "payload": _payload(last),
        "contact": None if last.contact is None else _contact(last.contact),
        "temperature": _json_numbers(last.temperature),
        "friction_index": _json_numbers(last.friction_index),
        "events": [
            to_plain_data(event.to_dict()) for reading in readings for event in reading.events
        ],
        **to_plain_data(extra_data),
    }
    return json.dumps(page, allow_nan=False)


def _json_numbers(values: Any) -> list[float | None] | None:
    """Numbers for JSON, None for those not finite."""
    if values is None:
        return None
    return [x if isfinite(x) else None for x in np.asarray(values, float).tolist()]


def _payload(reading: Reading) -> dict[str, Any] | None:
    estimate = reading.payload
    if estimate is None:
        return None
    return {
        "mass": float(estimate.mass),
        "interval": _json_numbers(estimate.mass_interval),
        "centre": _json_numbers(estimate.centre),
        "centre_interval": [_json_numbers(x) for x in estimate.centre_interval],
        "ready": bool(estimate.ready),
        "empty": bool(estimate.empty),
    }


def _contact(contact: Any) -> dict[str, Any]:
    return {"since": float(contact.start_time), "link": contact.link, "kind": contact.kind}


def kinematic_chain(robot: Robot) -> dict[str, Any]:
    """Kinematics of the robot for the page: placements M, screws S, tip, and base in the world.

    The page computes the poses M exp([S] q) in every frame.
    """
    from taufit.dynamics import forward_kinematics
    from taufit.robot.mounting import rotation_rpy

    robot.require_serial("the live page")
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
