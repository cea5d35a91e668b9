"""Advice where nothing says what the effort of a recording is: torque, current or another."""

from __future__ import annotations

import numpy as np

from taufit.core.errors import RecordingError
from taufit.dynamics import gravity_torque
from taufit.recording import Recording
from taufit.recording.readers.bag_messages import effort_advice
from taufit.robot import Robot


def unknown_effort(robot: Robot, recording: Recording) -> RecordingError:
    """Error that names the likely kind, by the nominal gravity and by the driver's joint names."""
    name = recording.meta.get("file", "the recording")
    ratio = _gravity_ratio(robot, recording)
    hint = ""
    if ratio is not None and 0.4 < ratio < 2.5:
        hint = f" It is {ratio:.2g} times the nominal robot's gravity: likely torque."
    elif ratio is not None and abs(ratio) < 0.25:
        hint = (
            f" It is {ratio:.2g} times the nominal robot's gravity: likely current, or "
            "torque_without_gravity."
        )
    start, names = recording.meta.get("start_time_ns"), recording.meta.get("joint_names") or ()
    advice = effort_advice(tuple(names), start) if isinstance(start, int) else ""
    hint += f" {advice}" if advice else ""
    return RecordingError(
        f"{name} does not say what its effort is. Say it with --torque-kind torque (N m), "
        f"current (A) or torque_without_gravity (N m, gravity subtracted by the "
        f"controller).{hint} "
        "For example: `taufit fit ROBOT RECORDING --torque-kind torque --holdout 30%`."
    )


def _gravity_ratio(robot: Robot, recording: Recording) -> float | None:
    """Ratio of the signal to the nominal gravity torque, median over loaded joints."""
    if not np.any(robot.parameters) or recording.joints != robot.joints:
        return None
    rows = slice(None, None, max(1, len(recording) // 2000))
    gravity = gravity_torque(robot, np.ascontiguousarray(recording.position[rows]))
    spread = gravity.std(axis=0)
    slopes = []
    for j in np.flatnonzero(spread > max(0.3 * spread.max(), 1e-6)):
        g = gravity[:, j] - gravity[:, j].mean()
        slopes.append(float(recording.signal[rows][:, j] @ g / (g @ g)))
    return float(np.median(slopes)) if slopes else None
