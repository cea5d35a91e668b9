"""Contradictions between recorded torque and the nominal robot.

Sign, unit, direction of gravity, and a robot that explains nothing whatever its masses are.

They rest on `taufit.diagnosis.nominal_torque` alone, in which no link is fitted, and so also hold
where free links would absorb the fault.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK
from taufit.diagnosis.correction import Cause, zero_offset
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.nominal_torque import (
    SignEvidence,
    gravity_factors,
    inertia_factors,
    nominal_log_odds,
)
from taufit.recording.finding import Finding

# Factors of nominal gravity and inertia outside which the unit of torque is wrong. Set with all of
# these in view: UR10e, Panda, KR300, TX40 and Med 7 have an inertia of 0.96 to 2.5; LWR4, UR10,
# xMate, Airbot and Gen3 of 0.54 to 2.8. Rotors and loads only increase them.
_MIN_GRAVITY, _MIN_INERTIA, _MAX_FACTOR = 0.25, 0.3, 4.0
# Joints whose inertia is that of the links more than that of the rotors: the first ones.
_BASE_JOINTS = 3
# Ratio of residuals, declared direction of gravity over any, above which the direction is doubtful,
# and wrong. Set with all of these arms in view: at most 1.2 as described, 1.7 with links missing,
# 1.45 with masses off by 30 %; the LWR4 with joint 2 off by 30 deg, which passed before, has 2.0.
_DOUBTFUL_TILT_RATIO, _MAX_TILT_RATIO = 1.3, 1.8

# Residual of the nominal robot over the standard deviation of torque, median over the first joints,
# above which it explains less than a constant. Set with ten shared recordings in view, whose right
# robots have 0.01 to 0.35.
_MAX_RESIDUAL = 1.0

# Step of the search for a joint zero [rad]; odds (twice the logarithm) of the nominal robot from
# which on it is doubtful, whatever the masses: 2 ln(100 x 6), for one wrong zero in a hundred and
# six that are tried. Masses: as described, and drawn sets that are off by up to 30 %.
_ZERO_STEP, _MIN_ZERO_ODDS = np.radians(10.0), 12.8
_MASS_DRAWS, _MASS_ERROR = 8, 0.3


def nominal_contradiction(evidence: HypothesisTest, signs: SignEvidence) -> Cause | None:
    """Error on sign, unit, direction of gravity or the robot itself, or None."""
    if signs.reversed_joints:
        from taufit.diagnosis.nominal_causes import torque_sign_cause

        return torque_sign_cause(signs, signs.reversed_joints)
    unit = unit_contradiction(evidence)
    if unit is not None:
        return unit
    if signs.tilt_ratio > _MAX_TILT_RATIO:
        from taufit.diagnosis.nominal_causes import direction_cause

        return direction_cause(signs.tilt_ratio, "error")
    return _unlike_robot_cause(signs)


def unit_contradiction(evidence: HypothesisTest) -> Cause | None:
    """Error on the unit of torque by significant gravity and inertia, or None.

    It holds on short motion, too: no alarm on 134 clean parts of 3 and 4.5 s (nine real and six
    simulated arms), on which 142 of 172 torques times 0.1 or 8.85 are found.
    """
    gravity, inertia = gravity_factors(evidence), inertia_factors(evidence)[:_BASE_JOINTS]
    factor = _unit_factor(gravity, inertia)
    if factor is None:
        return None
    from taufit.diagnosis.nominal_causes import unit_correction

    unit = unit_correction(factor)
    return Cause(Finding(unit.kind, "error", unit.message, remedy=unit.remedy), unit)


def _unlike_robot_cause(signs: SignEvidence) -> Cause | None:
    """Error on a robot that explains less torque of the first joints than a constant does.

    Masses and inertia are free within a factor of 2.5, so that it is not their accuracy.
    """
    residual = signs.residual[:_BASE_JOINTS]
    residual = residual[np.isfinite(residual)]
    if len(residual) < 2 or np.median(residual) <= _MAX_RESIDUAL:
        return None
    from taufit.diagnosis.nominal_causes import unlike_robot_cause

    return unlike_robot_cause(float(np.median(residual)))


def direction_warning(evidence: HypothesisTest, signs: SignEvidence) -> list[Cause]:
    """Warning on a doubtful direction of gravity, unless a load explains it."""
    if signs.tilt_ratio < _DOUBTFUL_TILT_RATIO:
        return []
    from taufit.diagnosis.undescribed_load import load_finding, missing_links_finding

    if load_finding(evidence) is not None:
        return []
    if missing_links_finding(evidence) is not None:
        return []
    from taufit.diagnosis.nominal_causes import direction_cause

    return [direction_cause(signs.tilt_ratio, "warning")]


def zero_causes(evidence: HypothesisTest) -> list[Cause]:
    """Error or warning on a joint zero with which the nominal robot explains the torque better."""
    joint, angle, odds = zero_evidence(evidence)
    if odds <= _MIN_ZERO_ODDS:
        return []
    from taufit.diagnosis.nominal_causes import zero_cause
    from taufit.diagnosis.undescribed_load import load_finding

    # A load that the description does not have may look like an offset.
    return [] if load_finding(evidence) is not None else [zero_cause(evidence, joint, angle)]


def zero_evidence(evidence: HypothesisTest) -> tuple[int, float, float]:
    """Most likely zero offset: joint from 0, angle [rad], and its odds (twice the logarithm).

    The odds are the smallest over the masses as described and drawn ones. Joints 2 to 4 are
    compared, which carry gravity; 0 without one.
    """
    robot = evidence.rows.robot
    odds = {
        (j, angle): nominal_log_odds(evidence, zero_offset(j, angle, robot.joints))
        for j in range(1, min(robot.joints - 1, 4))
        if not robot.is_prismatic[j]
        for angle in (-_ZERO_STEP, _ZERO_STEP)
    }
    joint, angle = max(odds, key=odds.__getitem__, default=(0, 0.0))
    smallest = odds.get((joint, angle), 0.0)
    if smallest > _MIN_ZERO_ODDS:
        bounds, size = (1.0 - _MASS_ERROR, 1.0 + _MASS_ERROR), len(robot.parameters) // PER_LINK
        for factors in np.random.default_rng(0).uniform(*bounds, (_MASS_DRAWS, size)):
            variant = robot.with_parameters(robot.parameters * np.repeat(factors, PER_LINK))
            offset = zero_offset(joint, angle, robot.joints)
            smallest = min(smallest, nominal_log_odds(evidence.with_robot(variant), offset))
    return joint, angle, smallest


def _unit_factor(gravity: Float[Array, " j"], inertia: Float[Array, " b"]) -> float | None:
    """Factor by which the torque is off; None if it is plausible.

    Too small: the median gravity, or all inertia. Too large: all of both, gravity included.
    """
    size, inertia = np.abs(gravity[np.isfinite(gravity)]), inertia[np.isfinite(inertia)]
    if len(size) > 1 and np.median(size) < _MIN_GRAVITY:
        return float(np.median(size))
    if len(inertia) > 1 and np.max(np.abs(inertia)) < _MIN_INERTIA:
        return float(np.median(np.abs(inertia)))
    # A gravity compensator reverses the gravity of its joint.
    loads = gravity[gravity > 0.0]
    factors = np.concatenate([loads, inertia])
    is_large = len(loads) > 0 and len(factors) > 1 and bool(np.min(factors) > _MAX_FACTOR)
    return float(np.median(factors)) if is_large else None


__all__ = [
    "direction_warning",
    "nominal_contradiction",
    "unit_contradiction",
    "zero_causes",
    "zero_evidence",
]
