"""Contradiction between recording and robot: find the single correction that resolves it.

If the links explain the torque as well as independent columns of each joint do, and are close to
the nominal ones, nothing is wrong. Else every hypothesis is tested. One is reported if its odds are
overwhelming, if it holds in every fold of the cross-validation, and if the robot then explains
about as much as can be explained. Hypotheses that explain no more torque but bring the links back
to the nominal ones (a unit, all signs, another robot) are reported if they do so completely.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import Cause
from taufit.diagnosis.gravity_scale import (
    PLAUSIBLE_SCALES,
    SUSPICIOUS_NRMSE,
    gravity_scales,
    median_gravity_scale,
)
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.nominal_contradiction import (
    direction_warning,
    nominal_contradiction,
    unit_contradiction,
    zero_causes,
)
from taufit.diagnosis.nominal_torque import sign_evidence
from taufit.diagnosis.other_robots import likely_other_robot, robot_from_short_motion
from taufit.diagnosis.torque_delay import delay_finding
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.robot import Robot

# Hypotheses are tested if nrmse exceeds its lower bound by this factor, or the links are this far
# from the nominal ones (squared, in units of 100 %).
_SUSPICIOUS_RATIO, _SUSPICIOUS_PRIOR = 1.4, 4.0
# Likewise for a tilt of gravity above this value [rad].
_SUSPICIOUS_TILT = np.radians(1.0)
# Smallest number of rows by which the unit of torque is compared with the nominal robot.
_MIN_UNIT_ROWS = 100


def find_model_contradiction(
    robot: Robot, recordings: Sequence[Recording], evidence: HypothesisTest
) -> list[Cause]:
    """Causes of a contradiction between rows and robot, or a delay; empty if there are none."""
    if not evidence.has_enough_data:
        other_robot = robot_from_short_motion(evidence)
        if other_robot is not None:
            from taufit.diagnosis.best_correction import correction_cause

            return [correction_cause(*other_robot, None, robot)]
        unit = unit_contradiction(evidence) if len(evidence.indices) >= _MIN_UNIT_ROWS else None
        if unit is not None:
            return [unit]
        return [*_other_robot_warning(evidence), *_too_short_causes(evidence)]
    has_gains = all(r.gain is not None for r in recordings)
    evidence = evidence.with_gain(evidence.samples.gain if has_gains else None)
    if len(set(evidence.samples.names)) > 1:
        from taufit.diagnosis.outlier_file import find_reversed_file

        reversed_file = find_reversed_file(evidence)
        if reversed_file is not None:
            return [reversed_file]
    signs = sign_evidence(evidence)
    if signs.is_reversed_throughout:
        from taufit.diagnosis.nominal_causes import torque_sign_cause

        return [torque_sign_cause(signs, list(range(robot.joints)))]
    cause = _suspicious_cause(robot, recordings, evidence)
    if cause is not None and cause.finding.severity == "error":
        return [cause]
    error = nominal_contradiction(evidence, signs)
    if error is not None:
        return [error]
    if cause is not None:
        return [cause]
    lag = delay_finding(evidence)
    if lag is not None:
        return [Cause(lag)]
    return (
        _other_robot_warning(evidence)
        or zero_causes(evidence)
        or direction_warning(evidence, signs)
    )


def _suspicious_cause(
    robot: Robot, recordings: Sequence[Recording], evidence: HypothesisTest
) -> Cause | None:
    """Cause by the best correction of rows that disagree with the robot, if one resolves it."""
    scales = gravity_scales(evidence)
    if not _is_suspicious(evidence, scales):
        return None
    from taufit.diagnosis.best_correction import best_cause

    return best_cause(robot, recordings, evidence, scales)


def _other_robot_warning(evidence: HypothesisTest) -> list[Cause]:
    """Warning if the fitted links match another robot."""
    other_robot = likely_other_robot(evidence)
    return (
        []
        if other_robot is None
        else [Cause(Finding("wrong_arm", "warning", other_robot[0].message))]
    )


def _too_short_causes(evidence: HypothesisTest) -> list[Cause]:
    """Warning that the motion is too short for these checks."""
    if len(evidence.indices) == 0:
        return []
    return [
        Cause(
            Finding(
                "unchecked",
                "warning",
                f"{evidence.seconds:.1f} s of motion are too short to check units, signs, the "
                "order of the joints and the robot itself against the torque. Record 10 s or more",
                value=evidence.seconds,
            )
        )
    ]


def _is_suspicious(evidence: HypothesisTest, scales: Float[Array, " j"]) -> bool:
    """Whether robot and rows disagree enough to look for a cause."""
    unchanged = evidence.unchanged_fit
    nrmse_ratio = np.nanmax(
        unchanged.nrmse_by_joint / np.maximum(evidence.nrmse_lower_bound(), 0.01)
    )
    tilted = evidence.gravity_tilt() > _SUSPICIOUS_TILT
    median_scale = median_gravity_scale(scales)
    wrong_scale = (
        np.isfinite(median_scale) and not PLAUSIBLE_SCALES[0] < median_scale < PLAUSIBLE_SCALES[1]
    )
    return bool(
        nrmse_ratio > _SUSPICIOUS_RATIO
        or unchanged.prior > _SUSPICIOUS_PRIOR
        or unchanged.nrmse > SUSPICIOUS_NRMSE
        or wrong_scale
        or tilted
    )
