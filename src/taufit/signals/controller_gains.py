"""Drive gains from the target moment m and target current i that a controller logs.

K = m / i at standstill. In motion the target current also contains a friction term,

    i = m / K + sign(v) f(|v|),

so K comes from a regression, with about 1 % uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.signals.drive_gains import DriveGains
from taufit.signals.filtering import dilate_mask
from taufit.signals.motion_intervals import STANDSTILL_SPEED

# Largest relative std of a gain from standstill that is used.
_MAX_STANDSTILL_STD = 0.01
# Relative std of the regression in motion against standstill.
_MOTION_STD = 0.015
# Relative std between drives of one type; the controller's constant is that of the type.
_TYPE_STD = 0.01
# Largest relative difference between standstill and motion for drives of one size.
_SAME_SIZE_TOLERANCE = 0.03


def _recordings_with_targets(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings that have the controller's target moment and target current."""
    usable = [r for r in recordings if r.target_current is not None and r.target_torque is not None]
    if not usable:
        raise RecordingError(
            f"the drive gains cannot be read from {_names(recordings)}: target moment and target "
            "current are not in it. Give the gains in the column map (gains: [..] in N m/A; "
            "`taufit gains ROBOT RECORDING --loaded FILE --mass KG` finds them with a known mass), "
            "fit in ampere with `gains: unknown` there, or condition it together with a recording "
            "of the same robot that has both."
        )
    return usable


def controller_gains(recording: Recording | Sequence[Recording]) -> DriveGains:
    """Estimate drive gains from the controller's target moment and target current.

    Per joint, over samples in which it stands still (others may move): K = sum m i / sum i^2. For a
    joint without load at standstill, K is that of the joint whose gain agrees with the regression
    in motion, or the regression's value; then `findings` has a warning and `std` is larger.

    Args:
        recording: One recording, or several of the same robot, which are pooled.
    """
    usable = _recordings_with_targets(
        [recording] if isinstance(recording, Recording) else list(recording)
    )
    joints = usable[0].joints
    value, std = np.full(joints, np.nan), np.full(joints, np.nan)
    source = [""] * joints
    findings: list[Finding] = []
    for j in range(joints):
        value[j], std[j] = _at_standstill(usable, j)
        if std[j] <= _MAX_STANDSTILL_STD * abs(value[j]):
            source[j] = "controller's target moment / target current at standstill"
    measured_joints = [j for j in range(joints) if source[j]]
    for j in sorted({*range(joints)} - {*measured_joints}):
        moving_gain, moving_std = _in_motion(usable, j)
        problem = "never carries load at standstill"
        if std[j] < abs(value[j]):
            problem = f"carries too little load at standstill: {value[j]:.4g} +- {std[j]:.2g} N m/A"
        same_size_joint = _joint_of_same_size(
            value[measured_joints], moving_gain, j, measured_joints
        )
        if same_size_joint is not None:
            assumed = f"that of joint {same_size_joint + 1} ({value[same_size_joint]:.5g} N m/A)"
            reason = f"which it matches in motion ({moving_gain:.4g} +- {moving_std:.2g} N m/A)"
            value[j], std[j] = (
                value[same_size_joint],
                max(abs(moving_gain - value[same_size_joint]), 0.5 * moving_std),
            )
        elif np.isfinite(moving_gain):
            assumed = f"the value while moving, {moving_gain:.4g} N m/A"
            reason = "from a regression that also fits the controller's friction term"
            value[j], std[j] = moving_gain, moving_std
        elif np.isfinite(value[j]) and std[j] <= 0.1 * abs(value[j]):
            assumed, reason = f"{value[j]:.4g} N m/A", "from the little load there is"
        elif measured_joints:
            same_size_joint = min(measured_joints, key=lambda k: (abs(k - j), -k))
            assumed = f"that of joint {same_size_joint + 1} ({value[same_size_joint]:.5g} N m/A)"
            reason = "the nearest joint that could be measured, without evidence"
            value[j], std[j] = value[same_size_joint], 0.1 * abs(value[same_size_joint])
        else:
            raise RecordingError(
                f"the drive gains cannot be read from {_names(usable)}: no joint carries load at "
                "standstill, and the motion does not show them either. Give the gains in the "
                "column map (gains: [..] in N m per A; `taufit gains ROBOT RECORDING --loaded FILE "
                "--mass KG` finds them with a known mass), fit in ampere with `gains: unknown`, or "
                "add a recording with a standstill."
            )
        source[j] = f"assumed: {assumed}"
        relative_std = np.hypot(std[j] / abs(value[j]), _TYPE_STD)
        findings.append(
            Finding(
                "drive_gain",
                "warning",
                f"the drive gain of joint {j + 1} is not measurable (it {problem})",
                f"assumed {assumed}, {reason}; its standard deviation is set to "
                f"{100 * relative_std:.1f} %",
                joint=j + 1,
            )
        )
    return DriveGains(value, np.hypot(std, _TYPE_STD * value), tuple(source), tuple(findings))


def _at_standstill(recordings: Sequence[Recording], j: int) -> tuple[float, float]:
    """Gain K and its std at standstill of joint j, averaged over recordings by inverse variance;
    nan if there is no load.

    Recordings are weighted by what each of them tells.
    """
    gains, weights = [], []
    for recording in recordings:
        speed = np.abs(np.nan_to_num(_velocity(recording, j), nan=np.inf))
        rate = 1.0 / max(float(np.median(np.diff(recording.time))), 1e-6)
        # The controller's target changes before the joint moves, and the log is one cycle late.
        standing = ~dilate_mask(~(speed <= STANDSTILL_SPEED), rate, 0.25)
        assert recording.target_current is not None and recording.target_torque is not None
        i, m = recording.target_current[standing, j], recording.target_torque[standing, j]
        is_valid = np.isfinite(i) & np.isfinite(m)
        i, m = i[is_valid], m[is_valid]
        power = float(i @ i)
        if len(i) < 10 or power == 0.0:
            continue
        gain = float(i @ m) / power
        # Rounding does not average out at one pose, so it counts once per distinct current.
        rounding = np.hypot(_resolution(m), gain * _resolution(i)) / np.sqrt(12.0)
        poses = min(len(np.unique(i)), 100)
        residual_std = float(np.std(m - gain * i)) / np.sqrt(power)
        std = float(np.hypot(residual_std, rounding / np.sqrt(power / len(i) * poses)))
        gains.append(gain)
        weights.append(1.0 / max(std, 1e-9 * abs(gain), 1e-12) ** 2)
    if not gains:
        return np.nan, np.inf
    return float(np.average(gains, weights=weights)), float(1.0 / np.sqrt(np.sum(weights)))


def _in_motion(recordings: Sequence[Recording], j: int) -> tuple[float, float]:
    """K from i = m / K + sign(v) (c + d |v| + e v^2) over the rows in which joint j moves."""
    rows, targets = [], []
    for recording in recordings:
        assert recording.target_current is not None and recording.target_torque is not None
        v = _velocity(recording, j)
        i, m = recording.target_current[:, j], recording.target_torque[:, j]
        is_valid = np.isfinite(v) & np.isfinite(i) & np.isfinite(m) & (np.abs(v) > 0.02)
        v, s = v[is_valid], np.sign(v[is_valid])
        rows.append(np.stack([m[is_valid], s, v, v * np.abs(v), np.ones_like(v)], axis=1))
        targets.append(i[is_valid])
    if not rows or sum(map(len, rows)) < 200:
        return np.nan, np.inf
    columns, target = np.concatenate(rows), np.concatenate(targets)
    weight = np.ones(len(target))
    for _ in range(10):
        solution = np.linalg.lstsq(columns * weight[:, None], target * weight, rcond=None)[0]
        residual = target - columns @ solution
        scale = max(1.4826 * float(np.median(np.abs(residual))), 1e-9)
        weight = np.sqrt(np.minimum(1.0, 2.0 * scale / np.maximum(np.abs(residual), 1e-12)))
    inverse_gain = solution[0]
    moment_fraction = float(
        np.std(columns[:, 0]) * abs(inverse_gain) / max(float(np.std(target)), 1e-300)
    )
    if inverse_gain <= 0 or moment_fraction < 0.03:
        return np.nan, np.inf
    # Where friction is nearly all of the current, its shape leaks into the gain.
    return 1.0 / float(inverse_gain), _MOTION_STD * max(1.0, 0.15 / moment_fraction) / float(
        inverse_gain
    )


def _joint_of_same_size(
    measured_gains: Float[Array, " s"], moving_gain: float, joint: int, joints: list[int]
) -> int | None:
    """Nearest joint whose measured gain agrees with the gain in motion; None if there is none."""
    if not np.isfinite(moving_gain):
        return None
    similar_joints = [
        k
        for k, gain in zip(joints, measured_gains, strict=True)
        if abs(moving_gain / gain - 1.0) < _SAME_SIZE_TOLERANCE
    ]
    return min(similar_joints, key=lambda k: (abs(k - joint), -k), default=None)


def _velocity(recording: Recording, j: int) -> Float[Array, " n"]:
    """Recorded velocity of a joint, or the slope of its position over 0.2 s, which suppresses
    encoder quantisation.
    """
    if recording.velocity is not None and np.isfinite(recording.velocity[:, j]).any():
        return np.asarray(recording.velocity[:, j], float)
    t, q = recording.time, recording.position[:, j]
    width = max(1, round(0.1 / max(float(np.median(np.diff(t))), 1e-6)))
    ahead = np.minimum(np.arange(len(t)) + width, len(t) - 1)
    behind = np.maximum(np.arange(len(t)) - width, 0)
    return np.asarray((q[ahead] - q[behind]) / np.maximum(t[ahead] - t[behind], 1e-6))


def _resolution(x: Float[Array, " n"]) -> float:
    """Last decimal digit printed by the logger; zero for binary data."""
    size = max(float(np.abs(x).max(initial=0.0)), 1e-300)
    for digits in range(10):
        scaled = x * 10.0**digits
        if np.all(np.abs(scaled - np.round(scaled)) < 1e-6 + 1e-13 * size * 10.0**digits):
            return float(10.0**-digits)
    return 0.0


def _names(recordings: Sequence[Recording]) -> str:
    return ", ".join(r.name for r in recordings)
