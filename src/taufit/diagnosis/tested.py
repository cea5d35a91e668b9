"""Advice on units and clocks, tested by the arm before it is given."""

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
# Positions in the right unit: the links are as near to the nominal ones as this, and leave this
# many times what the joints' own columns leave.
_NEAR, _EXPLAINED = 6.0, 1.4


def settled(robot: Robot, recording: Recording, finding: Finding) -> Finding:
    """The finding with the one remedy that agrees with the arm's inertia, where that shows it.

    Torque grows with the square of the clock's factor and not with the velocity's unit, so the arm
    without the recorded velocity, and the same with the other clock, are compared.
    """
    factor = finding.value
    if not isinstance(factor, float):
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


def explained_in_degrees(robot: Robot, recording: Recording) -> bool:
    """Whether the arm explains the torque if positions are degrees, as far as that can be said."""
    degrees = replace(recording, position=np.radians(recording.position), velocity=None)
    evidence = _evidence(robot, degrees)
    if evidence is None:
        return True
    own = float(np.nanmean(evidence.own_shares()))
    return evidence.plain.prior < _NEAR and evidence.plain.share < _EXPLAINED * own


def _gained(robot: Robot, recording: Recording, factor: float) -> float:
    """Log odds (twice) of the other clock, zero where nothing can be said."""
    evidence = _evidence(robot, recording)
    return 0.0 if evidence is None else evidence.gained(clock_scale(factor))


def _evidence(robot: Robot, recording: Recording) -> Evidence | None:
    """Of a recording before its gains are known; None where nothing can be said."""
    if not np.any(robot.parameters) or recording.joints != robot.joints:
        return None
    try:
        gain = nominal_gains(robot, [recording]) if recording.gain is None else recording.gain
        samples = condition([recording], gains=gain)
    except TaufitError:
        return None
    evidence = Evidence(robot, samples)
    return evidence if evidence.enough else None
