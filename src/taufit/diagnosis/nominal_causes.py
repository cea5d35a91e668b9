"""Causes that the comparison with the nominal robot shows: reversed torque, and its unit."""

from __future__ import annotations

from taufit.diagnosis.correction import Cause, Correction, torque_scale, torque_sign
from taufit.diagnosis.nominal_torque import SignEvidence
from taufit.recording.finding import Finding


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


__all__ = ["torque_sign_cause", "unit_correction"]
