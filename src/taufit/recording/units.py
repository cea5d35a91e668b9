"""Detection of wrong units and clocks, from velocity against position and by magnitude.

With v the recorded velocity and dq/dt the slope of position over the recorded time, their ratio is
one number for all joints where a unit or the clock is wrong:

    57.3 deg/s, 1/57.3 degrees, 9.55 rpm, 1000 ms, -1 sign, 101 the motor's speed, 0.8 the clock.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import MapEdit, Remedy
from taufit.recording.recording import Recording
from taufit.recording.timing import USUAL_HZ, timing

# Largest ratio of velocity to slope of position that counts as agreement.
AGREEMENT_RATIO = 1.15
# Minimum correlation of velocity and slope of position for a valid ratio.
_MIN_CORRELATION = 0.9
# Plausible range of logger rates [Hz]; milliseconds read as seconds are outside.
SLOW_HZ, FAST_HZ = 2.0, 50_000.0
_RATIO_TOLERANCE = 0.04
_MAX_ANGLE = 4 * np.pi


def unit_findings(recording: Recording) -> list[Finding]:
    """Findings about units of time, velocity and position; empty if they agree."""
    findings = _clock_findings(recording)
    if recording.velocity is not None and len(recording) >= 10:
        findings += _velocity_findings(recording)
    if not findings:
        findings = _angle_findings(recording)
    return findings


def velocity_ratios(recording: Recording) -> Float[Array, " j"]:
    """Ratio of recorded velocity to slope of position, per joint; nan if they do not correlate."""
    out = np.full(recording.joints, np.nan)
    if recording.velocity is None or len(recording) < 10:
        return out
    span = np.ptp(recording.position, axis=0)
    # Comparison over windows is insensitive to noise and jitter.
    time = recording.time
    velocity_integral = np.vstack(
        [
            np.zeros(recording.joints),
            np.cumsum(
                0.5 * (recording.velocity[1:] + recording.velocity[:-1]) * np.diff(time)[:, None],
                axis=0,
            ),
        ]
    )
    edges = np.unique(np.linspace(0, len(time) - 1, min(400, len(time))).astype(int))
    step = np.diff(time)
    gaps = np.concatenate([[0], np.cumsum(step > 3.0 * np.median(step))])
    # Velocity is unknown within a gap.
    without_gap = np.diff(gaps[edges]) == 0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        change = np.diff(recording.position[edges], axis=0)[without_gap]
        integral = np.diff(velocity_integral[edges], axis=0)[without_gap]
        power = np.sum(change**2, axis=0)
        ratio = np.sum(change * integral, axis=0) / power
        correlation = np.abs(ratio) * np.sqrt(power / np.sum(integral**2, axis=0))
    is_valid = (span > 0.02) & (correlation > _MIN_CORRELATION) & np.isfinite(ratio)
    out[is_valid] = ratio[is_valid]
    return out


def _clock_findings(recording: Recording) -> list[Finding]:
    sampling = timing(recording.time)
    if SLOW_HZ <= sampling.nominal_hz <= FAST_HZ or sampling.nominal_hz == 0.0:
        return []
    step = 1.0 / sampling.nominal_hz
    unit = next(
        (
            name
            for name, factor in (("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("min", 60.0))
            if 4e-5 <= step * factor <= 0.3
        ),
        None,
    )
    hint = (
        f"in {unit} they would be {1 / (step * _TIME_UNITS[unit]):.4g} Hz: give `unit: {unit}` at "
        "time "
        "in the column map"
        if unit is not None
        else "name the right time column in the column map"
    )
    return [
        Finding(
            "unit",
            "error",
            f"the time stamps say {sampling.nominal_hz:.3g} samples per second; {hint}",
            "taken as the map says",
            column="time",
            value=sampling.nominal_hz,
            remedy=None if unit is None else _unit_remedy("time", unit),
        )
    ]


def _unit_remedy(quantity: str, unit: str) -> Remedy:
    return Remedy(edits=(MapEdit(quantity, "unit", unit),))


# Correction for motion in degrees.
DEGREES_REMEDY = Remedy(
    edits=(
        MapEdit("position", "unit", "deg"),
        MapEdit("velocity", "unit", "deg/s"),
        MapEdit("acceleration", "unit", "deg/s^2"),
    )
)
_TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}


def _velocity_findings(recording: Recording) -> list[Finding]:
    ratios = velocity_ratios(recording)
    valid_joints = np.flatnonzero(np.isfinite(ratios))
    wrong_joints = [
        j for j in valid_joints if not 1 / AGREEMENT_RATIO < ratios[j] < AGREEMENT_RATIO
    ]
    if not wrong_joints:
        return []
    is_common = len(wrong_joints) == len(valid_joints) and _are_equal(ratios[valid_joints])
    if is_common:
        factor = float(np.median(ratios[valid_joints]))
        kind, text, remedy = _ratio_cause(factor, recording)
        subject = (
            "the recorded velocity" if recording.joints > 1 else "joint 1: the recorded velocity"
        )
        message = f"{subject} is {factor:.4g} times the change of position: {text}"
        return [_mismatch(kind, message, None, factor, remedy)]
    out = []
    for j in wrong_joints:
        kind, text, remedy = _ratio_cause(float(ratios[j]), recording, single_joint=True)
        if remedy is not None:
            # The unit of a quantity is that of every joint; one joint has a factor.
            joint_scales = [1.0 / ratios[j] if k == j else 1.0 for k in range(recording.joints)]
            scales = tuple(float(f"{x:.4g}") for x in joint_scales)
            remedy = Remedy(edits=(MapEdit("velocity", "scale", scales),))
        out.append(
            _mismatch(
                kind,
                f"joint {j + 1}: the recorded velocity is {ratios[j]:.4g} times the change of "
                f"position: {text}",
                int(j) + 1,
                float(ratios[j]),
                remedy,
            )
        )
    return out


def _mismatch(
    kind: str, message: str, joint: int | None, value: float, remedy: Remedy | None
) -> Finding:
    action = "taken as the map says"
    return Finding(kind, "error", message, action, joint=joint, value=value, remedy=remedy)


def _are_equal(ratios: Float[Array, " k"]) -> bool:
    median = float(np.median(ratios))
    return bool(np.all(np.abs(ratios / median - 1.0) < 0.1))


def _ratio_cause(
    factor: float, recording: Recording, single_joint: bool = False
) -> tuple[str, str, Remedy | None]:
    """Kind of finding, text and remedy for a ratio of velocity to slope of position."""
    degree = 180.0 / np.pi
    drop_velocity = Remedy(edits=(MapEdit("velocity", "drop"),))

    def is_close(value: float) -> bool:
        return abs(factor / value - 1.0) < _RATIO_TOLERANCE

    if -AGREEMENT_RATIO < factor < -1 / AGREEMENT_RATIO:
        return (
            "velocity_sign",
            (
                "it has the other sign. Give `sign: -1` at velocity in the column map, or leave "
                "velocity out of it"
            ),
            Remedy(edits=(MapEdit("velocity", "sign", -1.0),)),
        )
    if is_close(degree):
        text = "it is in degrees per second. Give `unit: deg/s` at velocity"
        return "unit", text, _unit_remedy("velocity", "deg/s")
    if is_close(1 / degree):
        text = "positions are in degrees. Give `unit: deg` at position"
        return "unit", text, None if single_joint else _unit_remedy("position", "deg")
    if is_close(60.0 / (2 * np.pi)):
        return "unit", "it is in rpm. Give `unit: rpm` at velocity", _unit_remedy("velocity", "rpm")
    for unit, scale in (("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        if is_close(scale) and not single_joint:
            return (
                "unit",
                f"time is in {unit}. Give `unit: {unit}` at time",
                _unit_remedy("time", unit),
            )
    if abs(factor) > 20.0:
        return (
            "unit",
            (
                f"it is the motor's own speed (gear ratio about {abs(factor):.4g})? Give `side: "
                "motor` at velocity and gear_ratio, or leave velocity out of the column map"
            ),
            drop_velocity,
        )
    rate = timing(recording.time).nominal_hz
    agreed_rate = rate * factor
    usual_rate = float(USUAL_HZ[np.argmin(np.abs(USUAL_HZ / max(abs(agreed_rate), 1e-9) - 1.0))])
    agreed_rate = usual_rate if abs(usual_rate / agreed_rate - 1.0) < 0.01 else agreed_rate
    if single_joint:
        return (
            "unit",
            (
                f"wrong unit or scale. Give `scale: {1 / factor:.4g}` for it at velocity, or leave "
                "velocity out of the column map"
            ),
            drop_velocity,
        )
    if factor < 0:
        text = "wrong sign and scale. Leave velocity out of the column map"
        return "velocity_sign", text, drop_velocity
    scale = float(f"{rate / agreed_rate:.4g}")
    return (
        "clock_scale",
        (
            f"rate_hz {agreed_rate:.4g} instead of {rate:.4g} (time with `scale: {scale:g}`) "
            f"would make them agree, if the clock is wrong; `scale: {1 / factor:.4g}` at velocity, "
            "if its unit is"
        ),
        Remedy(edits=(MapEdit("time", "scale", scale),)),
    )


def _angle_findings(recording: Recording) -> list[Finding]:
    largest = np.abs(recording.position).max(axis=0)
    is_large: Bool[Array, " j"] = largest > _MAX_ANGLE
    if not is_large.any():
        return []
    joint_text = ", ".join(f"joint {j + 1} reaches {largest[j]:.4g} rad" for j in
                       np.flatnonzero(is_large)[:3])  # fmt: skip
    size = float(np.median(largest[largest > 0])) if (largest > 0).any() else 0.0
    guess = (
        "degrees? Give `unit: deg` at position (and deg/s at velocity) in the column map"
        if largest.max() < 800.0 and size < 400.0
        else "the motor's own angle? Give `side: motor` and gear_ratio in the column map"
    )
    return [
        Finding(
            "unit",
            "warning",
            f"{joint_text}, more than two turns: {guess}",
            "taken as the map says",
            joint=int(np.flatnonzero(is_large)[0]) + 1,
            value=float(largest.max()),
        )
    ]
