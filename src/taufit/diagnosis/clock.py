"""Whether the clock or the velocity is wrong, where velocity is not the change of position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.diagnosis.change import clock_scale
from taufit.diagnosis.evidence import Evidence
from taufit.diagnosis.prepare import nominal_gains
from taufit.errors import TaufitError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import MapEdit, Remedy
from taufit.robot import Robot
from taufit.signals import condition

# Log odds (twice) from which the arm's inertia says which of the two it is.
_TELLS = 6.0


def settled(robot: Robot, recording: Recording, finding: Finding) -> Finding:
    """The finding with the one remedy that agrees with the arm's inertia, where that shows it.

    Torque grows with the square of the clock's factor and not with the velocity's unit, so the arm
    without the recorded velocity, and the same with the other clock, are compared.
    """
    factor = finding.value
    if not isinstance(factor, float) or recording.joints != robot.joints:
        return finding
    gained = _gained(robot, replace(recording, velocity=None), 1.0 / factor)
    if abs(gained) < _TELLS:
        return finding
    what = "time" if gained > 0.0 else "velocity"
    head = finding.message.split(": ")[0]
    reason = "fits" if what == "time" else "fits the clock as it is"
    scale = float(f"{1 / factor:.4g}")
    more = (
        finding.message.split(": ", 1)[1].split(",")[0]
        if what == "time"
        else (f"`scale: {scale:g}` at velocity in the column map makes them agree")
    )
    return replace(
        finding,
        message=f"{head}: {more}, and the arm's inertia {reason}",
        remedy=Remedy(edits=(MapEdit(what, "scale", scale),)),
    )


def _gained(robot: Robot, recording: Recording, factor: float) -> float:
    """Log odds (twice) of the other clock, zero where nothing can be said."""
    if not np.any(robot.parameters):
        return 0.0
    try:
        gain = nominal_gains(robot, [recording]) if recording.gain is None else recording.gain
        samples = condition([recording], gains=gain)
    except TaufitError:
        return 0.0
    evidence = Evidence(robot, samples)
    return evidence.gained(clock_scale(factor)) if evidence.enough else 0.0
