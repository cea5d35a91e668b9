"""A clean recording on a uniform grid: one `UniformRun` per uninterrupted section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.recording.channels import Channels
from taufit.recording.finding import Finding
from taufit.recording.quantity import slow_channels
from taufit.recording.timing import Timing
from taufit.signals.cleaning import CleanRecording
from taufit.signals.differentiation import DIFFERENTIATIONS
from taufit.signals.filtering import settling_time
from taufit.signals.noise import is_velocity_too_noisy, noise_std
from taufit.signals.resampling import decimate, grid_rate, in_long_gap, interpolate, split_at_gaps
from taufit.signals.uniform_run import UniformRun

# Faster than this the grid need not be: the low-pass leaves nothing up there, and every later step
# costs in proportion. A cut-off above 25 Hz raises it to ten times the cut-off.
MAX_RATE_HZ = 250.0

# A step up to this many periods is bridged whatever the cut-off.
_MAX_GAP_PERIODS = 3.5

# The five-point difference turns white position noise s into 0.95 s rate.
_DERIVED_NOISE = 0.95


def common_rate(recordings: Sequence[CleanRecording], cutoff: float) -> float:
    """The rate of the slowest logger, each divided by a whole number where it is faster than needed
    for a low-pass at `cutoff` (infinite for none)."""
    max_rate = max(MAX_RATE_HZ, 10.0 * cutoff) if np.isfinite(cutoff) else MAX_RATE_HZ
    return min(_decimated_rate(recording.timing, max_rate) for recording in recordings)


def _decimated_rate(timing: Timing, max_rate: float) -> float:
    rate = grid_rate(timing)
    return float(rate / max(1.0, np.ceil(rate / max_rate - 1e-9)))


def require_valid_cutoff(
    recordings: Sequence[CleanRecording], cutoff: float, rate_hz: float
) -> None:
    """Refuse a cut-off (finite) that is not below half the rate."""
    if not np.isfinite(cutoff):
        return
    for recording in recordings:
        lowest_rate = min(recording.timing.nominal_hz, rate_hz)
        if cutoff >= 0.5 * lowest_rate:
            raise RecordingError(
                f"a cut-off of {cutoff:g} Hz is not below half the rate of {recording.name} "
                f"({lowest_rate:.4g} Hz recorded or asked for). Choose one below "
                f"{0.4 * lowest_rate:.3g} Hz."
            )


def resample(
    recording: CleanRecording, rate_hz: float, cutoff: float, *, derive_velocity: bool = False
) -> list[UniformRun]:
    """Its uninterrupted intervals on the grid.

    Args:
        recording: Clean.
        rate_hz: Of the grid.
        cutoff: Of the low-pass to come, which decides how long a gap may be bridged [Hz].
        derive_velocity: Differentiate position even where velocity was measured.
    """
    timing = recording.timing
    period = 1.0 / timing.nominal_hz
    max_gap_s = max(_MAX_GAP_PERIODS * period, 0.25 / (cutoff if np.isfinite(cutoff) else 10.0))
    factor = max(1, round(grid_rate(timing) / rate_hz))
    min_samples = max(20, int(np.ceil(2.0 * settling_time(cutoff) * rate_hz)))
    measured = recording.has_velocity & (not derive_velocity)
    runs: list[UniformRun] = []
    cuts = too_short = 0
    for section in recording.sections:
        intervals = split_at_gaps(section.time, max_gap_s)
        cuts += len(intervals) - 1
        for interval in intervals:
            stamps = section.time[interval]
            fine_time = np.arange(
                int((stamps[-1] - stamps[0]) * factor * rate_hz * (1 + 1e-12)) + 1
            )
            if len(fine_time) // factor < min_samples:
                too_short += 1
                continue
            fine_time = stamps[0] + fine_time / (factor * rate_hz)
            part = section.columns[interval]
            noise = noise_std(part[:, : 3 * recording.joints])
            grid_time = fine_time[::factor]
            runs.append(
                _uniform_run(
                    recording,
                    grid_time - section.time[0],
                    decimate(interpolate(stamps, part, fine_time), factor),
                    _long_gap_mask(stamps, section.missing[interval], grid_time, max_gap_s),
                    measured,
                    noise=noise / np.sqrt(max(1.0, timing.nominal_hz / rate_hz)),
                    rate_hz=rate_hz,
                )
            )
    if not runs:
        count = sum(len(section.time) for section in recording.sections)
        raise RecordingError(
            f"{recording.name} is too short: {count} samples give no interval of "
            f"{min_samples / rate_hz:.2g} s, which a {cutoff:g} Hz low-pass needs to settle. "
            "Record "
            "longer, or raise the cut-off."
        )
    findings = list(recording.findings)
    if cuts:
        findings.append(
            Finding(
                "gap",
                "warning",
                f"{cuts} gaps in {recording.name} are longer than {1e3 * max_gap_s:.0f} ms",
                f"cut there into {len(runs)} runs"
                + (f"; {too_short} too short to filter were left out" if too_short else ""),
            )
        )
    return [replace(run, findings=tuple(findings) if k == 0 else ()) for k, run in enumerate(runs)]


def _long_gap_mask(
    stamps: Float[Array, " m"],
    is_missing: Bool[Array, "m j"],
    grid_time: Float[Array, " n"],
    max_gap_s: float,
) -> Bool[Array, "n j"]:
    """Per joint, where missing values were bridged over too long a time."""
    out = np.zeros((len(grid_time), is_missing.shape[1]), bool)
    for j in np.flatnonzero(is_missing.any(axis=0)):
        valid_time = stamps[~is_missing[:, j]]
        out[:, j] = True if len(valid_time) < 2 else in_long_gap(valid_time, grid_time, max_gap_s)
        if len(valid_time):
            out[:, j] |= (grid_time < valid_time[0]) | (grid_time > valid_time[-1])
    return out


def _uniform_run(
    recording: CleanRecording,
    time: Float[Array, " n"],
    grid: Float[Array, "n c"],
    bad: Bool[Array, "n j"],
    has_velocity: Bool[Array, " j"],
    *,
    noise: Float[Array, " k"],
    rate_hz: float,
) -> UniformRun:
    j = recording.joints
    position, velocity, torque = grid[:, :j], grid[:, j : 2 * j], grid[:, 2 * j : 3 * j]
    velocity_noise = noise[j : 2 * j]
    has_velocity = has_velocity & ~is_velocity_too_noisy(velocity_noise, noise[:j])
    if not has_velocity.all():
        slope = DIFFERENTIATIONS["central"](position, rate_hz, np.inf, False)
        velocity = np.where(has_velocity, velocity, slope)
        velocity_noise = np.where(
            has_velocity, velocity_noise, _DERIVED_NOISE * noise[:j] * rate_hz
        )
    return UniformRun(
        name=recording.name,
        time=time,
        position=position,
        velocity=velocity,
        velocity_measured=has_velocity,
        acceleration=recording.channel("acceleration", grid),
        torque=torque,
        signed=recording.signed,
        channels=Channels.from_values(
            **{name: recording.channel(name, grid) for name in slow_channels()}
        ),
        bad=bad,
        torque_noise=noise[2 * j : 3 * j],
        velocity_noise=velocity_noise,
    )
