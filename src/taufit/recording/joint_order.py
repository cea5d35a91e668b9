"""Order of a recording's joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding
from taufit.recording.recording import Recording


def require_joints(count: int, expected: int, *, name: str, robot: str) -> None:
    """Raise a `RecordingError` if the number of joints differs from the robot's.

    Args:
        count: Number of joints of the recording.
        expected: Number of joints of the robot.
        name: Name of the recording.
        robot: Name of the robot.
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
    """Copy of a recording with its joints in the given order.

    Joints are selected by name if the recording has joint names; otherwise, or if the names are
    unknown, their number must match and their order is kept.

    Args:
        recording: Recording of this robot.
        joints: Joint names in the robot's order.
        robot: Name of the robot, used in messages.
        name: Name of the recording in messages; default its name.
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
