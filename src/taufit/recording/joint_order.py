"""The arm's joints in the arm's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding
from taufit.recording.recording import Recording


def require_joints(count: int, expected: int, *, name: str, robot: str) -> None:
    """Refuse what has another number of joints than the robot.

    Args:
        count: Joints of the recording.
        expected: Joints of the robot.
        name: Of the recording.
        robot: Its name.
    """
    if count != expected:
        raise RecordingError(
            f"expected {expected} joints ({robot}), found {count} in {name}. Give the robot that "
            "was recorded, or a column map (--map) that names this robot's joints."
        )


def reorder_joints(
    recording: Recording,
    joints: Sequence[str],
    *,
    robot: str = "the robot",
    name: str | None = None,
) -> Recording:
    """The recording with its joints in the given order.

    Where the recording names its joints they are sorted by name, and others left out; where it
    does not, or none of the names is known, their number must fit and their order is kept.

    Args:
        recording: Of this robot.
        joints: Names in the robot's order.
        robot: Its name, for messages.
        name: What messages call the recording; by default its own name.
    """
    names = recording.meta.get("joint_names")
    if not isinstance(names, list) or not set(joints) <= set(names):
        require_joints(recording.joints, len(joints), name=name or recording.name, robot=robot)
        return recording
    indices = [names.index(joint) for joint in joints]
    if indices == list(range(recording.joints)):
        return recording
    changes: dict[str, Any] = {}
    for name in ("signed", "gain", "gain_std"):
        if getattr(recording, name) is not None:
            changes[name] = getattr(recording, name)[indices]
    if recording.coupling is not None:
        changes["coupling"] = recording.coupling[indices][:, indices]
    meta = {**recording.meta, "joint_names": list(joints)}
    if isinstance(meta.get("gear_ratio"), list):
        meta["gear_ratio"] = [meta["gear_ratio"][i] for i in indices]
    findings = tuple(f for f in recording.findings if f.kind != "joint_order")
    order_finding = Finding(
        "joint_order",
        "info",
        f"the file's joints come as {', '.join(names)}",
        f"put into the robot's order: {', '.join(joints)}",
    )
    return replace(
        recording.map(lambda values: values[:, indices]),
        **changes,
        meta=meta,
        findings=(*findings, order_finding),
    )
