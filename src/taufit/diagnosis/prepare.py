"""Preparation of recordings as their column maps declare them: joint torque before conditioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.dynamics import gravity_torque, inverse_dynamics
from taufit.recording import Recording, sampling_timing
from taufit.recording.finding import Finding
from taufit.robot import Robot
from taufit.signals import condition, lowpass

# Cut-off as a fraction of a slow recording's rate, used if the rate is below this multiple of the
# default cut-off.
_CUTOFF_RATE_FRACTION, _MIN_RATE_FACTOR = 0.4, 2.0
_DEFAULT_CUTOFF_HZ = 10.0
# Relative standard deviation of nominal masses, and of gains derived from them.
_NOMINAL_STD = 0.3


def apply_declared_torque_kind(
    robot: Robot, recordings: Sequence[Recording]
) -> tuple[list[Recording], list[Finding]]:
    """Add gravity where the controller subtracted it, and nominal drive gains where unknown.

    The findings state the consequences for the result.
    """
    _require_torque_kind(robot, recordings)
    out = [_restore_removed_gravity(robot, recording) for recording in recordings]
    findings = []
    if any(r.meta.get("gravity_removed") for r in recordings):
        findings.append(
            Finding(
                "gravity_added",
                "warning",
                "the torque was recorded without gravity, as declared; the nominal robot's was "
                "added. Gravity, and with it masses and centres, is therefore the controller's, "
                "not measured",
            )
        )
    unscaled = [r for r in out if r.meta.get("gains") == "unknown" and r.gain is None]
    if unscaled:
        gain = nominal_gains(robot, unscaled)
        unit = "ampere" if all(r.signal_unit == "A" for r in unscaled) else "the signal's unit"
        out = [
            replace(r, gain=gain, gain_std=_NOMINAL_STD * gain) if r in unscaled else r for r in out
        ]
        findings.append(
            Finding(
                "gains_unknown",
                "warning",
                f"the drive gains are unknown, so this fit is in {unit}: newton metres are those "
                "of the nominal robot's masses, known to about 30 %. `taufit gains ROBOT RECORDING "
                "--loaded FILE --mass KG` finds gains from a run with a known mass; write them "
                "into the column map (gains: [..])",
            )
        )
    return out, findings


def _require_torque_kind(robot: Robot, recordings: Sequence[Recording]) -> None:
    for recording in recordings:
        is_declared = bool(recording.signal_unit) or recording.meta.get("gains") == "unknown"
        if not is_declared and recording.gain is None:
            from taufit.diagnosis.effort_kind import unknown_effort

            raise unknown_effort(robot, recording)


def _restore_removed_gravity(robot: Robot, recording: Recording) -> Recording:
    if not recording.meta.get("gravity_removed"):
        return recording
    if not np.any(robot.parameters):
        raise RecordingError(
            "the torque was recorded without gravity, and the robot's description has no masses "
            "to put it back. Give a description with masses, or record torque with gravity."
        )
    gain = np.ones(recording.joints) if recording.gain is None else recording.gain
    gravity = gravity_torque(robot, recording.position)
    meta = {key: value for key, value in recording.meta.items() if key != "gravity_removed"}
    return replace(recording, signal=recording.signal + gravity / gain, meta=meta)


def nominal_gains(robot: Robot, recordings: Sequence[Recording]) -> Float[Array, " j"]:
    """Drive gains with which the signal matches the nominal robot's torque, joint by joint.

    With tau_n the nominal rigid-body torque, signal_j = tau_n_j / k_j + friction + offset; joints
    without sufficient rigid-body torque get the median of the others.
    """
    if not np.any(robot.parameters):
        raise RecordingError(
            "neither the drive gains nor the robot's masses are known, so nothing gives a scale. "
            "Find the gains with a known mass: `taufit gains ROBOT RECORDING --loaded FILE --mass "
            "KG`, or give a description of the robot with masses."
        )
    samples = condition(recordings, gains=np.ones(robot.joints))
    rows = samples.in_motion
    rigid = inverse_dynamics(
        robot, samples.position[rows], samples.velocity[rows], samples.acceleration[rows]
    )
    slip = lowpass(samples, np.tanh(samples.friction_velocity / 0.01))[rows]
    inverse_gain = np.full(robot.joints, np.nan)
    for j in range(robot.joints):
        v = samples.velocity[rows, j]
        columns = np.column_stack([rigid[:, j], slip[:, j], v, np.abs(v) * v, np.ones(len(v))])
        size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        x = np.linalg.lstsq(columns / size, samples.torque[rows, j], rcond=1e-8)[0] / size
        rigid_std = abs(x[0]) * rigid[:, j].std()
        if x[0] > 0 and rigid_std > 0.1 * samples.torque[rows, j].std():
            inverse_gain[j] = x[0]
    if not np.isfinite(inverse_gain).any():
        raise RecordingError(
            "the current follows the nominal robot's torque in no joint, so nothing gives a scale. "
            "Check the columns, or find the gains with a known mass (`taufit gains`)."
        )
    return 1.0 / np.where(np.isfinite(inverse_gain), inverse_gain, np.nanmedian(inverse_gain))


def suitable_cutoff(
    recordings: Sequence[Recording], cutoff_hz: float | Literal["auto"]
) -> tuple[float | Literal["auto"], Finding | None]:
    """Cut-off frequency, reduced for slow recordings, with the finding that explains it."""
    # Cut-offs above the default are explicit: conditioning reports the possible range.
    if cutoff_hz == "auto" or cutoff_hz > _DEFAULT_CUTOFF_HZ:
        return cutoff_hz, None
    slowest = min(sampling_timing(r.time).nominal_hz for r in recordings)
    if slowest <= 0.0 or cutoff_hz < slowest / _MIN_RATE_FACTOR:
        return cutoff_hz, None
    reduced_hz = float(f"{_CUTOFF_RATE_FRACTION * slowest:.2g}")
    return reduced_hz, Finding(
        "too_slow",
        "warning",
        f"the slowest recording has {slowest:.4g} samples per second, too few for a low-pass of "
        f"{cutoff_hz:g} Hz: {reduced_hz:g} Hz is used. Log at 100 Hz or more to see friction and "
        "inertia well",
        value=slowest,
    )
