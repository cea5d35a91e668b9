"""Resampling of a clean recording to a uniform grid: one `UniformRun` per uninterrupted section."""

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

# Largest default rate of the grid [Hz]; ten times the cut-off if that is more. The low-pass removes
# higher frequencies, and the cost of later steps is proportional to the rate.
MAX_RATE_HZ = 250.0

# Gaps up to this many sampling periods are interpolated at any cut-off.
_MAX_GAP_PERIODS = 3.5

# Velocity noise of the five-point difference: 0.95 s rate for position noise s.
_DERIVED_NOISE = 0.95

# Largest step of a quantised velocity, relative to the noise of differentiated position in the band
# of friction (five times the cut-off); sqrt(12) is a step as noisy as that. Chosen on the Panda:
# its recorded velocity is the better one in steps of 0.02 rad/s (3 to 6), the worse one in steps of
# 0.05 rad/s (8 to 16).
_MAX_COARSENESS = 5.0


def common_rate(recordings: Sequence[CleanRecording], cutoff: float) -> float:
    """Grid rate for several recordings: the lowest of their rates, each decimated by an integer if
    faster than needed for a low-pass at `cutoff` (infinite for none).
    """
    max_rate = max(MAX_RATE_HZ, 10.0 * cutoff) if np.isfinite(cutoff) else MAX_RATE_HZ
    return min(_grid_rate_limit(recording.timing, max_rate) for recording in recordings)


def _grid_rate_limit(timing: Timing, max_rate: float) -> float:
    rate = grid_rate(timing)
    return float(rate / max(1.0, np.ceil(rate / max_rate - 1e-9)))


def require_valid_cutoff(
    recordings: Sequence[CleanRecording], cutoff: float, rate_hz: float
) -> None:
    """Raise a `RecordingError` if the cut-off is not below half the rate."""
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
    """Resample the uninterrupted intervals of a recording to a uniform grid.

    Args:
        recording: Clean recording.
        rate_hz: Rate of the grid [Hz].
        cutoff: Cut-off of the low-pass applied later [Hz]; a lower one allows longer gaps to be
            interpolated.
        derive_velocity: Differentiate position even if velocity was measured.
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
                    slope_noise=_slope_noise(cutoff, rate_hz),
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


def _slope_noise(cutoff: float, rate_hz: float) -> float:
    """Noise of differentiated position behind the low-pass of friction, per unit of position noise.

    White noise over half the rate, up to f Hz: 2 pi f sqrt(2 f / (3 rate)).
    """
    f = 5.0 * cutoff
    if not f < 0.45 * rate_hz:
        return _DERIVED_NOISE * rate_hz
    return float(2.0 * np.pi * f * np.sqrt(2.0 * f / (3.0 * rate_hz)))


def _long_gap_mask(
    stamps: Float[Array, " m"],
    is_missing: Bool[Array, "m j"],
    grid_time: Float[Array, " n"],
    max_gap_s: float,
) -> Bool[Array, "n j"]:
    """Per joint, grid samples inside gaps of missing values that are too long to interpolate."""
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
    slope_noise: float,
) -> UniformRun:
    j = recording.joints
    position, velocity, torque = grid[:, :j], grid[:, j : 2 * j], grid[:, 2 * j : 3 * j]
    velocity_noise = noise[j : 2 * j]
    # Irregular time stamps add to differences of the recorded positions, not to those on the grid.
    position_noise = noise_std(position)
    has_velocity = (
        has_velocity
        & ~is_velocity_too_noisy(velocity_noise, noise[:j])
        & (recording.velocity_step <= _MAX_COARSENESS * slope_noise * position_noise)
    )
    if not has_velocity.all():
        slope = DIFFERENTIATIONS["central"](position, rate_hz, np.inf, False)
        velocity = np.where(has_velocity, velocity, slope)
        velocity_noise = np.where(
            has_velocity, velocity_noise, _DERIVED_NOISE * position_noise * rate_hz
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
