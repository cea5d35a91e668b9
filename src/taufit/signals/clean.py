"""One cleaning for batch and stream: a recording in order of time, without impossible values.

Order of the steps: shapes and stamps are checked, the signal becomes torque at the joints (gains,
then coupling), what is no measurement becomes nan, time is cut where it jumps back, short holes are
bridged, single spikes are replaced, and samples that share a stamp are averaged. `condition` puts
the result on a grid; the payload stream takes it sample by sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.quantity import slow_channels
from taufit.recording.timing import Timing, timing
from taufit.signals.drive_gains import Gains
from taufit.signals.noise import noise_std, too_noisy
from taufit.signals.outliers import find_outliers, interpolate_outliers
from taufit.signals.resampling import merge_close_samples, monotonic_intervals
from taufit.signals.windows import SLOWEST

# Nothing an arm does is larger, in any unit.
_LARGEST = 1e12

# A spike is at least this large: 1 mrad, a few times the slowest motion, any torque.
_LEAST_SPIKE = (1e-3, 5 * SLOWEST, 0.0)

# [N m]
_SMALLEST_TORQUE = 1e-30


@dataclass(frozen=True, slots=True, eq=False)
class MonotonicSection:
    """Samples between two jumps of time.

    Attributes:
        time: Strictly rising stamps [s].
        columns: Every channel of every joint, channel after channel.
        missing: Per joint, where position, velocity or torque was bridged because it was missing.
    """

    time: Float[Array, " n"]
    columns: Float[Array, "n c"]
    missing: Bool[Array, "n j"]


@dataclass(frozen=True, slots=True, eq=False)
class CleanRecording:
    """A recording in order of time, without impossible values, torque in newton metres.

    Attributes:
        name: For messages.
        clock: Of the longest section.
        sections: At least one.
        channels: What `Section.columns` holds, one block of `joints` columns each: "position",
            "velocity" (zero where it was not measured), "torque", then what else was recorded.
        joints: How many.
        measured: Per joint, whether velocity was measured.
        signed: Per joint, whether torque carries its sign.
        findings: What was cleaned.
    """

    name: str
    clock: Timing
    sections: tuple[MonotonicSection, ...]
    channels: tuple[str, ...]
    joints: int
    measured: Bool[Array, " j"]
    signed: Bool[Array, " j"]
    findings: tuple[Finding, ...]

    def channel(self, name: str, columns: Float[Array, "n c"]) -> Float[Array, "n j"] | None:
        """The columns of one channel; None where it was not recorded."""
        if name not in self.channels:
            return None
        first = self.channels.index(name) * self.joints
        return columns[:, first : first + self.joints]

    def velocity_of(self, section: MonotonicSection) -> Float[Array, "n j"]:
        """At the section's own stamps; derived from position where that tells more."""
        j = self.joints
        position, velocity = section.columns[:, :j], section.columns[:, j : 2 * j]
        noise = noise_std(section.columns[:, : 2 * j])
        derived = ~self.measured | too_noisy(noise[j:], noise[:j])
        if not derived.any():
            return velocity
        slope = np.gradient(position[:, derived], section.time, axis=0)
        out = np.array(velocity)
        out[:, derived] = slope
        return out


def clean(
    recording: Recording,
    gains: Gains,
    *,
    outliers: bool = True,
    extra: Sequence[str] | None = None,
) -> CleanRecording:
    """Clean columns at their own time stamps.

    Args:
        recording: As it was read.
        gains: Joint torque per unit of its signal.
        outliers: Replace single impossible samples.
        extra: Further quantities of the recording to carry along, where it has them; by default
            acceleration and every channel that changes slowly.
    """
    extra = ("acceleration", *slow_channels()) if extra is None else extra
    name, joints = recording.name, recording.joints
    time = np.asarray(recording.time, float)
    _check_shapes(recording, name, ("position", "signal", "velocity", *extra))
    stamped = _stamped(time, name)
    period = float(np.median(_forward_steps(time[stamped], name)))
    signed = np.ones(joints, bool) if recording.signed is None else np.asarray(recording.signed)
    channels, columns, measured = _channels(recording, gains, signed, name, extra)
    if not stamped.all():
        columns, time = columns[stamped], time[stamped]

    missing = np.isnan(columns)
    found = _CleaningCounts(missing=int(np.count_nonzero(missing)))
    ranges = monotonic_intervals(time)
    found.backwards = len(ranges) - 1
    sections: list[MonotonicSection] = []
    for span in ranges:
        if span.stop - span.start < 2:
            continue
        stamps, whole, gone = time[span], columns[span], missing[span]
        lacking = gone[:, :joints] | gone[:, joints : 2 * joints] | gone[:, 2 * joints : 3 * joints]
        if found.missing:
            whole = interpolate_outliers(stamps, whole, gone)
            if np.isnan(whole).any():
                continue  # this section lacks a channel altogether
        if outliers:
            whole = _without_spikes(stamps, whole, signed, found)
        before = len(stamps)
        stamps, whole, groups = merge_close_samples(stamps, whole, period)
        if groups is not None:
            lacking = np.logical_and.reduceat(lacking[groups.order], groups.first)
            found.merged += before - len(stamps)
        if len(stamps) > 1:
            sections.append(MonotonicSection(stamps, whole, lacking))
    if not sections:
        raise RecordingError(
            f"{name} has no section in which position and torque of every joint are there. "
            "Check the column map and the file."
        )
    return CleanRecording(
        name,
        timing(max((section.time for section in sections), key=len)),
        tuple(sections),
        channels,
        joints,
        measured,
        signed,
        found.findings(name),
    )


@dataclass(slots=True)
class _CleaningCounts:
    """How much was cleaned."""

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


def check_channels(recording: Recording, extra: Sequence[str] = ()) -> None:
    """Refuse a recording whose columns do not belong together, or that lacks one altogether."""
    name, time = recording.name, np.asarray(recording.time, float)
    _check_shapes(recording, name, ("position", "signal", "velocity", *extra))
    _forward_steps(time[_stamped(time, name)], name)
    for quantity, values in (("position", recording.position), ("torque", recording.signal)):
        _required(values, name, quantity)


def _check_shapes(recording: Recording, name: str, fields: Sequence[str]) -> None:
    expected = (len(recording.time), recording.joints)
    for field in fields:
        values = getattr(recording, field)
        if values is not None and np.shape(values) != expected:
            raise RecordingError(
                f"{name}: {field} has shape {np.shape(values)}, {expected} was expected from time "
                "and position."
            )


def _stamped(time: Float[Array, " n"], name: str) -> Bool[Array, " n"]:
    """Rows with a time stamp."""
    stamped = np.abs(time) < _LARGEST
    if np.count_nonzero(stamped) < 5:
        raise RecordingError(
            f"{name} has {np.count_nonzero(stamped)} samples with a time stamp; at least 5 are "
            "needed, and some seconds of motion for a fit."
        )
    return np.asarray(stamped)


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
    gains: Gains,
    signed: Bool[Array, " j"],
    name: str,
    extra: Sequence[str],
) -> tuple[tuple[str, ...], Float[Array, "n c"], Bool[Array, " j"]]:
    """Names and columns of the channels, and per joint whether velocity was measured."""
    torque = joint_torque(recording, gains, signed, name)
    position = _required(recording.position, name, "position")
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
            # Joints without a sensor are known by their constant zero.
            values = np.where(np.isnan(values).all(axis=0), 0.0, values)
        elif not np.isfinite(values).any(axis=0).all():
            continue
        names.append(field)
        blocks.append(values)
    return tuple(names), np.concatenate(blocks, axis=1), measured


def joint_torque(
    recording: Recording, gains: Gains, signed: Bool[Array, " j"], name: str
) -> Float[Array, "n j"]:
    """tau = C' (K s) with signal s, gains K and coupling C."""
    torque = _required(recording.signal, name, "torque") * gains.value
    # Squares of smaller numbers underflow; no torque is that small.
    torque[np.abs(torque) < _SMALLEST_TORQUE] = 0.0
    if not signed.all():
        torque = np.where(signed, torque, np.abs(torque))
    if recording.coupling is None:
        return np.asarray(torque)
    coupling = np.asarray(recording.coupling, float)
    tied = (coupling != np.diag(np.diag(coupling))).any(axis=0)
    tied |= (coupling != np.diag(np.diag(coupling))).any(axis=1)
    if np.any(tied & ~signed):
        raise RecordingError(
            f"in {name} coupled joints have torques without a sign: they cannot be carried from "
            "the motors to the joints. Record signed torques, or leave the coupling out of the map."
        )
    return np.asarray(torque @ coupling)


def _measurements(values: Float[Array, "n j"]) -> Float[Array, "n j"]:
    """The values, with nan for everything that is no measurement."""
    out = np.asarray(values, float)
    # Comparisons with nan are false, so this also sees what is missing.
    if not (out.max() < _LARGEST and out.min() > -_LARGEST):
        out = np.array(out)
        out[~(np.abs(out) < _LARGEST)] = np.nan
    return out


def _required(values: Float[Array, "n j"], name: str, quantity: str) -> Float[Array, "n j"]:
    """Measurements of which every joint has some."""
    out = _measurements(values)
    empty = ~np.isfinite(out).any(axis=0)
    if empty.any():
        which = ", ".join(str(j + 1) for j in np.flatnonzero(empty))
        raise RecordingError(
            f"{name} has no {quantity} for joint {which}: every value is missing. "
            "Name the right columns in the column map."
        )
    return out


def _without_spikes(
    time: Float[Array, " n"],
    columns: Float[Array, "n c"],
    signed: Bool[Array, " j"],
    counts: _CleaningCounts,
) -> Float[Array, "n c"]:
    """Single spikes of position, velocity and torque replaced from their neighbours."""
    joints = len(signed)
    spikes = np.zeros(columns.shape, bool)
    for k, least in enumerate(_LEAST_SPIKE):
        block = slice(k * joints, (k + 1) * joints)
        spikes[:, block] = find_outliers(columns[:, block], least=least)
    # An absolute value dips to zero at every change of sign: only peaks are spikes.
    for j in np.flatnonzero(~signed):
        torque = columns[:, 2 * joints + j]
        spikes[torque < np.median(torque), 2 * joints + j] = False
    count = int(np.count_nonzero(spikes))
    counts.spikes += count
    return interpolate_outliers(time, columns, spikes) if count else columns
