"""Causes that the comparison with the nominal robot shows: sign, unit, joint zero, mounting."""

from __future__ import annotations

import numpy as np

from taufit.diagnosis.correction import Cause, Correction, torque_scale, torque_sign, zero_offset
from taufit.diagnosis.hypotheses import rank_corrections
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.nominal_torque import SignEvidence, nominal_log_odds
from taufit.recording.finding import Finding

# Residual with a corrected joint zero over that without, below which the zero is an error.
_MAX_ZERO_RATIO = 0.5


def torque_sign_cause(signs: SignEvidence, joints: list[int]) -> Cause:
    """Error on torque that agrees with the nominal robot only with the other sign."""
    correction = torque_sign(joints, len(signs.decided))
    shown = ", ".join(str(j + 1) for j in signs.reversed_joints)
    message = f"{correction.message} (joint {shown} against the nominal robot)"
    return Cause(
        Finding(
            correction.kind, "error", message, joint=correction.joint, remedy=correction.remedy
        ),
        correction,
    )


def unit_correction(scale: float) -> Correction:
    """Correction of the torque unit that explains the gravity scale."""
    size, unit = abs(scale), None
    if 500 < size < 2000:
        unit = "mN m"
    elif 5e-4 < size < 2e-3:
        unit = "kN m"
    elif 6.0 < size < 12.0:
        unit = "lbf in"
    if unit is not None:
        cause = f"it is in {unit}? Give `unit: {unit}` at the torque in the column map"
    elif size < 0.5:
        cause = (
            "it is a current, or the torque of the motor before its gear? Give `current:` with "
            "gains, or gear_ratio, in the column map"
        )
    else:
        cause = "check its unit, the drive gains in the column map, and whether it is this robot"
    return torque_scale(
        1.0 / scale,
        f"the torque is {scale:.2g} times what gravity on the nominal robot makes of it: "
        f"{cause}; a factor of {1 / scale:.3g} (`scale`) makes them agree",
        unit,
    )


def unlike_robot_cause(residual: float) -> Cause:
    """Error on a robot that explains less torque than a constant does.

    Args:
        residual: What it leaves over the standard deviation of torque.
    """
    message = (
        "the described robot explains nothing of the torque of its first joints, even with masses "
        f"of 0.4 to 2.5 times the nominal ones: it leaves {residual:.1f} times the "
        "torque's standard deviation. Is it the right robot, are the order of the joints and their "
        "zeros right, and has it springs (`--term spring`)?"
    )
    return Cause(Finding("wrong_arm", "error", message, value=residual))


def zero_cause(evidence: HypothesisTest, joint: int, angle: float) -> Cause:
    """Error or warning on the zero of a joint, from 0, by about an angle [rad].

    An error if the correction at least halves the residual on rows that are left out, with links
    that are fitted: they do not make up for it then. Right structures keep 0.97 or more of it
    (eleven shared recordings, six simulated ones); 0.5 is a requirement, not chosen on them.
    """
    joints = evidence.rows.robot.joints
    odds = {
        factor * angle: nominal_log_odds(evidence, zero_offset(joint, factor * angle, joints))
        for factor in (0.5, 1.0, 1.5, 2.0)
    }
    angle = max(odds, key=odds.__getitem__)
    best = rank_corrections(evidence, [zero_offset(joint, angle, joints)])[0].correction
    if evidence.compare(best).holdout_ratio < _MAX_ZERO_RATIO:
        return Cause(
            Finding(best.kind, "error", best.message, joint=joint + 1, remedy=best.remedy), best
        )
    return Cause(
        Finding(
            "zero_offset",
            "warning",
            f"the zero of joint {joint + 1} may be {np.degrees(-angle):.0f} deg off: with "
            f"`offset` {angle:.2f} rad for it at the position in the column map the nominal "
            "robot explains the torque better. The model makes up for it by other links; check "
            "the zero before the model is used with other loads or exported to a simulator",
            joint=joint + 1,
            value=float(-angle),
        )
    )


def direction_cause(tilt_ratio: float, severity: str) -> Cause:
    """Finding on gravity that does not come from where the mounting and the joint zeros say.

    Args:
        tilt_ratio: Residual with the declared direction over that with gravity from anywhere.
        severity: "error" or "warning".
    """
    verb = "is" if severity == "error" else "may be"
    message = (
        "gravity in the torque does not come from the declared direction: from another one, "
        f"the nominal robot leaves {tilt_ratio:.1f} times less. The mounting or a joint "
        f"zero {verb} wrong: check --mounting, and `offset` at the position in the column map"
    )
    return Cause(Finding("mounting", severity, message, value=tilt_ratio))


__all__ = [
    "direction_cause",
    "torque_sign_cause",
    "unit_correction",
    "unlike_robot_cause",
    "zero_cause",
]
