"""Advice on units and clocks, tested against the robot's inertia before it is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.prepare import nominal_gains
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import MapEdit, Remedy
from taufit.recording.timing import USUAL_HZ, timing
from taufit.robot import Robot
from taufit.signals import condition
from taufit.signals.drive_gains import joint_gains

# Log odds (twice) by inertia that decide between clock and velocity unit.
_MIN_LOG_ODDS = 6.0
# Relative tolerance of usual logging rates, log odds (twice) in favour of one, and independent
# samples per second.
_RATE_TOLERANCE, _USUAL_RATE_LOG_ODDS, _INDEPENDENT_PER_SECOND = 0.002, 10.0, 2.0
# With positions in the right unit: largest distance of the links from the nominal ones, and largest
# ratio of nrmse to its lower bound.
_MAX_PRIOR, _MAX_NRMSE_RATIO = 6.0, 1.4


def choose_unit_remedy(robot: Robot, recording: Recording, finding: Finding) -> Finding:
    """Reduce a finding to the remedy that agrees with the robot's inertia, if that decides.

    Torque grows with the square of the clock factor and not with the velocity unit, so the robot is
    fitted without the recorded velocity, with the recorded and with the corrected clock. A usual
    logging rate supports the corrected clock.
    """
    factor, remedy = finding.value, finding.remedy
    if not isinstance(factor, float) or remedy is None:
        return finding
    scale = remedy.edits[0].value
    assert isinstance(scale, float)
    is_usual_rate = (
        np.abs(USUAL_HZ * scale / timing(recording.time).nominal_hz - 1.0).min() < _RATE_TOLERANCE
    )
    inertia_log_odds = _clock_log_odds(robot, replace(recording, velocity=None), scale)
    log_odds = inertia_log_odds + (_USUAL_RATE_LOG_ODDS if is_usual_rate else 0.0)
    if abs(log_odds) < _MIN_LOG_ODDS:
        return finding
    head, text = finding.message.split(": ", 1)
    if log_odds > 0.0:
        inertia_text = ", and the arm's inertia fits" if inertia_log_odds > 0.0 else ""
        return replace(finding, message=f"{head}: {text.split(',')[0]}{inertia_text}")
    scale = float(f"{1 / factor:.4g}")
    return replace(
        finding,
        message=f"{head}: `scale: {scale:g}` at velocity in the column map makes them agree, and "
        "the arm's inertia fits the clock as it is",
        remedy=Remedy(edits=(MapEdit("velocity", "scale", scale),)),
    )


def is_explained_in_degrees(robot: Robot, recording: Recording) -> bool:
    """Whether the robot explains the torque if positions are degrees; True if undecidable."""
    degrees = replace(recording, position=np.radians(recording.position), velocity=None)
    evidence = hypothesis_test_for(robot, degrees)
    if evidence is None:
        return True
    lower_bound = float(np.nanmean(evidence.nrmse_lower_bound()))
    return (
        evidence.unchanged_fit.prior < _MAX_PRIOR
        and evidence.unchanged_fit.nrmse < _MAX_NRMSE_RATIO * lower_bound
    )


def _clock_log_odds(robot: Robot, recording: Recording, factor: float) -> float:
    """Twice the log odds of the rescaled clock; zero if undecidable.

    Each clock has its own low-pass and acceleration; both are compared on equal numbers of rows.
    """
    time = recording.time[0] + factor * (recording.time - recording.time[0])
    recorded, rescaled = (
        hypothesis_test_for(robot, variant)
        for variant in (recording, replace(recording, time=time))
    )
    if recorded is None or rescaled is None:
        return 0.0
    rows = _INDEPENDENT_PER_SECOND * min(recorded.seconds, rescaled.seconds)
    log_ratios = np.log(
        recorded.unchanged_fit.nrmse_by_joint / rescaled.unchanged_fit.nrmse_by_joint
    )
    return float(
        2.0 * rows * np.nansum(log_ratios)
        + recorded.unchanged_fit.prior
        - rescaled.unchanged_fit.prior
    )


def measured_gains(recording: Recording) -> Float[Array, " j"] | None:
    """Drive gains, given or from the controller's targets; None if unknown."""
    try:
        return joint_gains([recording], None)[0][0].value
    except TaufitError:
        return None


def hypothesis_test_for(robot: Robot, recording: Recording) -> HypothesisTest | None:
    """Hypothesis test of a recording, with its gains or those of the nominal robot.

    Returns None if there are too few data or no gains.
    """
    if not np.any(robot.parameters) or recording.joints != robot.joints:
        return None
    try:
        measured = measured_gains(recording)
        gain = nominal_gains(robot, [recording]) if measured is None else measured
        samples = condition([recording], gains=gain)
    except TaufitError:
        return None
    evidence = HypothesisTest(robot, samples)
    return evidence if evidence.has_enough_data else None
