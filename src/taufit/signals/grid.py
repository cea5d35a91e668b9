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
from taufit.signals.clean import CleanRecording
from taufit.signals.differentiation import DIFFERENTIATIONS
from taufit.signals.filtering import settling_time
from taufit.signals.noise import noise_std, too_noisy
from taufit.signals.resampling import decimate, grid_rate, interpolate, long_gaps, split_at_gaps
from taufit.signals.uniform_run import UniformRun

# Faster than this the grid need not be: the low-pass leaves nothing up there, and every later step
# costs in proportion. A cut-off above 25 Hz raises it to ten times the cut-off.
FASTEST_HZ = 250.0

# A step up to this many periods is bridged whatever the cut-off.
_BRIDGE_PERIODS = 3.5

# The five-point difference turns white position noise s into 0.95 s rate.
_DERIVED_NOISE = 0.95


def common_rate(recordings: Sequence[CleanRecording], cutoff: float) -> float:
    """The rate of the slowest logger, each divided by a whole number where it is faster than needed
    for a low-pass at `cutoff` (infinite for none)."""
    fastest = max(FASTEST_HZ, 10.0 * cutoff) if np.isfinite(cutoff) else FASTEST_HZ
    return min(_own_rate(one.clock, fastest) for one in recordings)


def _own_rate(clock: Timing, fastest: float) -> float:
    rate = grid_rate(clock)
    return float(rate / max(1.0, np.ceil(rate / fastest - 1e-9)))


def check_cutoff(recordings: Sequence[CleanRecording], cutoff: float, rate_hz: float) -> None:
    """Refuse a cut-off (finite) that is not below half the rate."""
    if not np.isfinite(cutoff):
        return
    for one in recordings:
        slowest = min(one.clock.nominal_hz, rate_hz)
        if cutoff >= 0.5 * slowest:
            raise RecordingError(
                f"a cut-off of {cutoff:g} Hz is not below half the rate of {one.name} "
                f"({slowest:.4g} Hz recorded or asked for). Choose one below "
                f"{0.4 * slowest:.3g} Hz."
            )


def on_grid(
    recording: CleanRecording, rate_hz: float, cutoff: float, *, derived: bool = False
) -> list[UniformRun]:
    """Its uninterrupted intervals on the grid.

    Args:
        recording: Clean.
        rate_hz: Of the grid.
        cutoff: Of the low-pass to come, which decides how long a gap may be bridged [Hz].
        derived: Differentiate position even where velocity was measured.
    """
    clock = recording.clock
    period = 1.0 / clock.nominal_hz
    longest = max(_BRIDGE_PERIODS * period, 0.25 / (cutoff if np.isfinite(cutoff) else 10.0))
    factor = max(1, round(grid_rate(clock) / rate_hz))
    shortest = max(20, int(np.ceil(2.0 * settling_time(cutoff) * rate_hz)))
    measured = recording.measured & (not derived)
    runs: list[UniformRun] = []
    cuts = short = 0
    for section in recording.sections:
        intervals = split_at_gaps(section.time, longest)
        cuts += len(intervals) - 1
        for interval in intervals:
            stamps = section.time[interval]
            fine = np.arange(int((stamps[-1] - stamps[0]) * factor * rate_hz * (1 + 1e-12)) + 1)
            if len(fine) // factor < shortest:
                short += 1
                continue
            fine = stamps[0] + fine / (factor * rate_hz)
            part = section.columns[interval]
            noise = noise_std(part[:, : 3 * recording.joints])
            at = fine[::factor]
            runs.append(
                _uniform(
                    recording,
                    at - section.time[0],
                    decimate(interpolate(stamps, part, fine), factor),
                    _bridges(stamps, section.missing[interval], at, longest),
                    measured,
                    noise=noise / np.sqrt(max(1.0, clock.nominal_hz / rate_hz)),
                    rate_hz=rate_hz,
                )
            )
    if not runs:
        count = sum(len(section.time) for section in recording.sections)
        raise RecordingError(
            f"{recording.name} is too short: {count} samples give no interval of "
            f"{shortest / rate_hz:.2g} s, which a {cutoff:g} Hz low-pass needs to settle. Record "
            "longer, or raise the cut-off."
        )
    findings = list(recording.findings)
    if cuts:
        findings.append(
            Finding(
                "gap",
                "warning",
                f"{cuts} gaps in {recording.name} are longer than {1e3 * longest:.0f} ms",
                f"cut there into {len(runs)} runs"
                + (f"; {short} too short to filter were left out" if short else ""),
            )
        )
    return [replace(run, findings=tuple(findings) if k == 0 else ()) for k, run in enumerate(runs)]


def _bridges(
    stamps: Float[Array, " m"],
    lacking: Bool[Array, "m j"],
    at: Float[Array, " n"],
    longest: float,
) -> Bool[Array, "n j"]:
    """Per joint, where missing values were bridged over too long a time."""
    out = np.zeros((len(at), lacking.shape[1]), bool)
    for j in np.flatnonzero(lacking.any(axis=0)):
        there = stamps[~lacking[:, j]]
        out[:, j] = True if len(there) < 2 else long_gaps(there, at, longest)
        if len(there):
            out[:, j] |= (at < there[0]) | (at > there[-1])
    return out


def _uniform(
    recording: CleanRecording,
    time: Float[Array, " n"],
    grid: Float[Array, "n c"],
    bad: Bool[Array, "n j"],
    measured: Bool[Array, " j"],
    *,
    noise: Float[Array, " k"],
    rate_hz: float,
) -> UniformRun:
    j = recording.joints
    position, velocity, torque = grid[:, :j], grid[:, j : 2 * j], grid[:, 2 * j : 3 * j]
    velocity_noise = noise[j : 2 * j]
    measured = measured & ~too_noisy(velocity_noise, noise[:j])
    if not measured.all():
        slope = DIFFERENTIATIONS["central"](position, rate_hz, np.inf, False)
        velocity = np.where(measured, velocity, slope)
        velocity_noise = np.where(measured, velocity_noise, _DERIVED_NOISE * noise[:j] * rate_hz)
    return UniformRun(
        name=recording.name,
        time=time,
        position=position,
        velocity=velocity,
        measured=measured,
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
