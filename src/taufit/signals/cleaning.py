"""Cleaning of recordings, for batch and stream: time-ordered samples without invalid values.

Steps: check shapes and time stamps; convert the signal to joint torque (gains, then coupling); set
invalid values to nan; split where time jumps back; interpolate short gaps; replace single spikes;
average samples with equal time stamps. `condition` resamples the result to a uniform grid; the
payload stream takes it sample by sample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.quantity import slow_channels
from taufit.recording.timing import Timing, sampling_timing
from taufit.signals.drive_gains import DriveGains
from taufit.signals.motion_intervals import STANDSTILL_SPEED
from taufit.signals.noise import is_velocity_too_noisy, noise_std, quantisation_step
from taufit.signals.outliers import find_outliers, interpolate_outliers
from taufit.signals.resampling import merge_close_samples, monotonic_intervals

# Magnitudes above this are not measurements, in any unit.
_LARGEST = 1e12

# Minimum size of a spike in position, velocity and torque [rad, rad/s, N m].
_MIN_SPIKE = (1e-3, 5 * STANDSTILL_SPEED, 0.0)

# [N m]
_SMALLEST_TORQUE = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class MonotonicSection:
    """Samples between two jumps of time.

    Attributes:
        time: Strictly increasing time stamps [s].
        columns: Every channel of every joint, channel after channel.
        missing: Per joint, samples at which position, velocity or torque was interpolated because
            it was missing.
    """

    time: Float[Array, " n"]
    columns: Float[Array, "n c"]
    missing: Bool[Array, "n j"]


@dataclass(frozen=True, slots=True, eq=False)
class CleanRecording:
    """Time-ordered recording without invalid values; torque in N m.

    Attributes:
        name: Recording name, used in messages.
        timing: Sampling statistics of the longest section.
        sections: Sections with increasing time; at least one.
        channels: Names of the blocks of `joints` columns in `MonotonicSection.columns`:
            "position", "velocity" (zero if not measured), "torque", then further recorded
            channels.
        joints: Number of joints.
        has_velocity: Per joint, True if velocity was measured.
        velocity_step: Per joint, quantisation step of velocity; 0 for none.
        signed: Per joint, True if torque has a sign.
        findings: Findings about cleaned values.
    """

    name: str
    timing: Timing
    sections: tuple[MonotonicSection, ...]
    channels: tuple[str, ...]
    joints: int
    has_velocity: Bool[Array, " j"]
    velocity_step: Float[Array, " j"]
    signed: Bool[Array, " j"]
    findings: tuple[Finding, ...]

    def channel(self, name: str, columns: Float[Array, "n c"]) -> Float[Array, "n j"] | None:
        """Columns of one channel; None if it was not recorded."""
        if name not in self.channels:
            return None
        start = self.channels.index(name) * self.joints
        return columns[:, start : start + self.joints]

    def section_velocity(self, section: MonotonicSection) -> Float[Array, "n j"]:
        """Velocity at the time stamps of a section; differentiated position for joints whose
        measured velocity is missing or too noisy.
        """
        j = self.joints
        position, velocity = section.columns[:, :j], section.columns[:, j : 2 * j]
        noise = noise_std(section.columns[:, : 2 * j])
        derived = ~self.has_velocity | is_velocity_too_noisy(noise[j:], noise[:j])
        if not derived.any():
            return velocity
        slope = np.gradient(position[:, derived], section.time, axis=0)
        out = np.array(velocity)
        out[:, derived] = slope
        return out


def clean_recording(
    recording: Recording,
    gains: DriveGains,
    *,
    outliers: bool = True,
    extra_channels: Sequence[str] | None = None,
) -> CleanRecording:
    """Clean the columns of a recording at their original time stamps.

    Args:
        recording: Recording as read from file.
        gains: Joint torque per unit of the recorded signal.
        outliers: Replace single spikes.
        extra_channels: Further channels to include if recorded. Default: acceleration and every
            slow channel.
    """
    extra_channels = (
        ("acceleration", *slow_channels()) if extra_channels is None else extra_channels
    )
    name, joints = recording.name, recording.joints
    time = np.asarray(recording.time, float)
    _check_shapes(recording, name, ("position", "signal", "velocity", *extra_channels))
    has_stamp = _has_time_stamp(time, name)
    period = float(np.median(_forward_steps(time[has_stamp], name)))
    signed = np.ones(joints, bool) if recording.signed is None else np.asarray(recording.signed)
    channels, columns, measured = _channels(recording, gains, signed, name, extra_channels)
    if not has_stamp.all():
        columns, time = columns[has_stamp], time[has_stamp]

    missing = np.isnan(columns)
    counts = _CleaningCounts(missing=int(np.count_nonzero(missing)))
    ranges = monotonic_intervals(time)
    counts.backwards = len(ranges) - 1
    sections: list[MonotonicSection] = []
    for interval in ranges:
        if interval.stop - interval.start < 2:
            continue
        stamps, values, is_nan = time[interval], columns[interval], missing[interval]
        is_missing = (
            is_nan[:, :joints] | is_nan[:, joints : 2 * joints] | is_nan[:, 2 * joints : 3 * joints]
        )
        if counts.missing:
            values = interpolate_outliers(stamps, values, is_nan)
            if np.isnan(values).any():
                continue  # this section lacks a channel altogether
        if outliers:
            values = _remove_spikes(stamps, values, signed, counts)
        count_before = len(stamps)
        stamps, values, groups = merge_close_samples(stamps, values, period)
        if groups is not None:
            is_missing = np.logical_and.reduceat(is_missing[groups.order], groups.starts)
            counts.merged += count_before - len(stamps)
        if len(stamps) > 1:
            sections.append(MonotonicSection(stamps, values, is_missing))
    if not sections:
        raise RecordingError(
            f"{name} has no section in which position and torque of every joint are there. "
            "Check the column map and the file."
        )
    return CleanRecording(
        name,
        sampling_timing(max((section.time for section in sections), key=len)),
        tuple(sections),
        channels,
        joints,
        measured,
        quantisation_step(columns[:, joints : 2 * joints]),
        signed,
        counts.findings(name),
    )


@dataclass(slots=True)
class _CleaningCounts:
    """Numbers of cleaned values."""

    missing: int = 0
    backwards: int = 0
    merged: int = 0
    spikes: int = 0

    def findings(self, name: str) -> tuple[Finding, ...]:
        out = []
        if self.missing:
            out.append(
                Finding(
                    "missing",
                    "warning",
                    f"{self.missing} values of {name} are missing or not finite",
                    "bridged by straight lines; intervals too long for that are left out",
                )
            )
        if self.backwards:
            out.append(
                Finding(
                    "time_backwards",
                    "warning",
                    f"time jumps back {self.backwards} times in {name}",
                    "each section became a run of its own",
                )
            )
        if self.merged:
            out.append(
                Finding(
                    "duplicate",
                    "info",
                    f"{self.merged} samples of {name} repeat a time stamp or follow the last one "
                    "within a quarter of a period",
                    "averaged into one",
                )
            )
        if self.spikes:
            out.append(
                Finding(
                    "outlier",
                    "warning",
                    f"{self.spikes} values of {name} are single spikes far from their neighbours",
                    "replaced by the line between their neighbours",
                )
            )
        return tuple(out)


def require_valid_channels(recording: Recording, extra_channels: Sequence[str] = ()) -> None:
    """Raise a `RecordingError` if channels have different shapes or one has no values."""
    name, time = recording.name, np.asarray(recording.time, float)
    _check_shapes(recording, name, ("position", "signal", "velocity", *extra_channels))
    _forward_steps(time[_has_time_stamp(time, name)], name)
    for quantity, values in (("position", recording.position), ("torque", recording.signal)):
        _require_measurements(values, name, quantity)


def _check_shapes(recording: Recording, name: str, fields: Sequence[str]) -> None:
    expected = (len(recording.time), recording.joints)
    for field in fields:
        values = getattr(recording, field)
        if values is not None and np.shape(values) != expected:
            raise RecordingError(
                f"{name}: {field} has shape {np.shape(values)}, {expected} was expected from time "
                "and position."
            )


def _has_time_stamp(time: Float[Array, " n"], name: str) -> Bool[Array, " n"]:
    """Rows with a time stamp."""
    has_stamp = np.abs(time) < _LARGEST
    if np.count_nonzero(has_stamp) < 5:
        raise RecordingError(
            f"{name} has {np.count_nonzero(has_stamp)} samples with a time stamp; at least 5 are "
            "needed, and some seconds of motion for a fit."
        )
    return np.asarray(has_stamp)


def _forward_steps(time: Float[Array, " n"], name: str) -> Float[Array, " m"]:
    steps = np.diff(time)
    if not np.any(steps > 0):
        raise RecordingError(
            f"time stands still in {name}: all stamps are {time[0]:g} s. "
            "Name the right time column in the column map."
        )
    return steps[steps > 0]


def _channels(
    recording: Recording,
    gains: DriveGains,
    signed: Bool[Array, " j"],
    name: str,
    extra: Sequence[str],
) -> tuple[tuple[str, ...], Float[Array, "n c"], Bool[Array, " j"]]:
    """Names and columns of the channels, and per joint whether velocity was measured."""
    torque = joint_torque(recording, gains, signed, name)
    position = _require_measurements(recording.position, name, "position")
    velocity = np.full(position.shape, np.nan)
    if recording.velocity is not None:
        velocity = _measurements(recording.velocity)
    measured = ~np.isnan(velocity).all(axis=0)
    if not measured.all():
        velocity = np.where(measured, velocity, 0.0)
    names, blocks = ["position", "velocity", "torque"], [position, velocity, torque]
    for field in extra:
        if getattr(recording, field) is None:
            continue
        values = _measurements(getattr(recording, field))
        if field in slow_channels():
            # Joints without a sensor get a constant zero.
            values = np.where(np.isnan(values).all(axis=0), 0.0, values)
        elif not np.isfinite(values).any(axis=0).all():
            continue
        names.append(field)
        blocks.append(values)
    return tuple(names), np.concatenate(blocks, axis=1), measured


def joint_torque(
    recording: Recording, gains: DriveGains, signed: Bool[Array, " j"], name: str
) -> Float[Array, "n j"]:
    """Joint torque tau = C' (K s) with signal s, gains K and coupling C."""
    torque = _require_measurements(recording.signal, name, "torque") * gains.value
    # Squares of smaller numbers underflow; no torque is that small.
    torque[np.abs(torque) < _SMALLEST_TORQUE] = 0.0
    if not signed.all():
        torque = np.where(signed, torque, np.abs(torque))
    if recording.coupling is None:
        return np.asarray(torque)
    coupling = np.asarray(recording.coupling, float)
    coupled = (coupling != np.diag(np.diag(coupling))).any(axis=0)
    coupled |= (coupling != np.diag(np.diag(coupling))).any(axis=1)
    if np.any(coupled & ~signed):
        raise RecordingError(
            f"in {name} coupled joints have torques without a sign: they cannot be carried from "
            "the motors to the joints. Record signed torques, or leave the coupling out of the map."
        )
    return np.asarray(torque @ coupling)


def _measurements(values: Float[Array, "n j"]) -> Float[Array, "n j"]:
    """Copy of the values with nan for invalid ones."""
    out = np.asarray(values, float)
    # Comparisons with nan are false, so this condition also detects missing values.
    if not (out.max() < _LARGEST and out.min() > -_LARGEST):
        out = np.array(out)
        out[~(np.abs(out) < _LARGEST)] = np.nan
    return out


def _require_measurements(
    values: Float[Array, "n j"], name: str, quantity: str
) -> Float[Array, "n j"]:
    """Valid measurements; raises if a joint has none."""
    out = _measurements(values)
    empty = ~np.isfinite(out).any(axis=0)
    if empty.any():
        joint_numbers = ", ".join(str(j + 1) for j in np.flatnonzero(empty))
        raise RecordingError(
            f"{name} has no {quantity} for joint {joint_numbers}: every value is missing. "
            "Name the right columns in the column map."
        )
    return out


def _remove_spikes(
    time: Float[Array, " n"],
    columns: Float[Array, "n c"],
    signed: Bool[Array, " j"],
    counts: _CleaningCounts,
) -> Float[Array, "n c"]:
    """Replace single spikes of position, velocity and torque by interpolation."""
    joints = len(signed)
    spikes = np.zeros(columns.shape, bool)
    for k, min_size in enumerate(_MIN_SPIKE):
        block = slice(k * joints, (k + 1) * joints)
        spikes[:, block] = find_outliers(columns[:, block], min_deviation=min_size)
    # An absolute value dips to zero at every change of sign: only peaks are spikes.
    for j in np.flatnonzero(~signed):
        torque = columns[:, 2 * joints + j]
        spikes[torque < np.median(torque), 2 * joints + j] = False
    count = int(np.count_nonzero(spikes))
    counts.spikes += count
    return interpolate_outliers(time, columns, spikes) if count else columns
