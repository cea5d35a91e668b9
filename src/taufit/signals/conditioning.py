"""Recording -> Samples: one grid, one low-pass, derivatives, and which rows belong in a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.timing import Timing, timing
from taufit.signals.cutoff import choose_cutoff
from taufit.signals.delay import estimate_delay
from taufit.signals.differentiation import DIFFERENTIATIONS, Differentiation
from taufit.signals.drive_gains import Gains, joint_gains
from taufit.signals.filtering import settling_time, smeared, zero_phase
from taufit.signals.noise import noise_std, too_noisy
from taufit.signals.outliers import bridged, find_outliers
from taufit.signals.periodicity import find_period, fold
from taufit.signals.resampling import (
    decimate,
    grid_rate,
    interpolate,
    long_gaps,
    merged,
    pieces,
    rising,
)
from taufit.signals.samples import Samples
from taufit.signals.uniform_run import UniformRun
from taufit.signals.windows import SLOWEST, motion_mask, speed_threshold, standing_mask

# Faster than this the grid need not be: the low-pass leaves nothing up there, and every later step
# costs in proportion. A cut-off above 25 Hz raises it to ten times the cut-off.
FASTEST_HZ = 250.0

# A step up to this many periods is bridged whatever the cut-off.
_BRIDGE_PERIODS = 3.5

# Nothing an arm does is larger, in any unit.
_LARGEST = 1e12


def condition(
    recording: Recording | Sequence[Recording],
    *,
    cutoff_hz: float | Literal["auto"] | None = 10.0,
    rate_hz: float | None = None,
    differentiation: str = "central",
    delay_s: float | Literal["auto"] = 0.0,
    friction_delay_s: float | Float[Array, " j"] = 0.0,
    velocity: Literal["auto", "derived"] = "auto",
    acceleration: Literal["derived", "measured"] = "derived",
    friction_cutoff_hz: float | None = None,
    trim: bool = True,
    margin_s: float = 0.0,
    dead_zone: float | Float[Array, " j"] = 0.0,
    outliers: bool = True,
    average_periods: bool = False,
    gains: Gains | Float[Array, " j"] | None = None,
) -> Samples:
    """Turn what was measured into what can be fitted.

    Time stamps are taken as they came: values move to a uniform grid by local cubic interpolation,
    spikes are bridged, and position, velocity, acceleration and torque pass the same zero-phase
    low-pass (Butterworth, order 4, run forwards and backwards). A step in time too long to bridge
    cuts the run; nothing is filtered across the cut. Rows in motion are marked in `motion`, rows
    that belong in a fit in `keep`.

    Args:
        recording: One, or several of the same robot (each stays a run of its own).
        cutoff_hz: Of the low-pass; "auto" reads it from the spectrum and says why in
            `Samples.reason`; None for no low-pass.
        rate_hz: Of the grid. By default the logger's own rate, at most 250 Hz (faster recordings
            are decimated by a whole number, with a filter against aliasing), or ten times the
            cut-off where that is more.
        differentiation: "central", "savgol" or "fourier".
        delay_s: By how much torque was recorded later than the motion it belongs to; the motion is
            shifted to meet it. "auto" estimates it.
        friction_delay_s: By how much `friction_velocity` lags behind on top of that; one number or
            one per joint.
        velocity: "auto" uses the measured velocity where there is one, unless it is far noisier
            than what position tells; "derived" always differentiates the position.
        acceleration: "derived" from the velocity, or "measured" as recorded.
        friction_cutoff_hz: Low-pass of `friction_velocity`. By default none where velocity was
            measured, five times the cut-off where it had to be derived from position.
        trim: Leave rest out of `motion` and, per joint, standstill out of `keep`.
        margin_s: Rest kept before and after each motion.
        dead_zone: Speed below which a joint's rows are left out of `keep`, widened by the filter;
            one number or one per joint [rad/s].
        outliers: Bridge single impossible samples.
        average_periods: Fold a periodic motion onto one averaged period.
        gains: Joint torque per unit of the recorded signal, instead of the recording's own.
    """
    if differentiation not in DIFFERENTIATIONS:
        raise RecordingError(
            f"unknown differentiation {differentiation!r}; there are {', '.join(DIFFERENTIATIONS)}."
        )
    recordings = [recording] if isinstance(recording, Recording) else list(recording)
    if not recordings:
        raise RecordingError("there is no recording to condition.")
    joints = recordings[0].joints
    for other in recordings[1:]:
        if other.joints != joints:
            raise RecordingError(
                f"{name_of(other)} has {other.joints} joints, {name_of(recordings[0])} has "
                f"{joints}. Condition recordings of one robot together."
            )
    scale, gain_findings = joint_gains(recordings, gains)

    tracks = [_track(r, g, outliers) for r, g in zip(recordings, scale, strict=True)]
    fixed = 10.0 if cutoff_hz == "auto" else np.inf if cutoff_hz is None else float(cutoff_hz)
    if not fixed > 0:
        raise RecordingError(f"a cut-off of {fixed:g} Hz makes no sense; give a positive one.")
    if rate_hz is None:
        fastest = max(FASTEST_HZ, 10.0 * fixed) if np.isfinite(fixed) else FASTEST_HZ
        rate_hz = min(_grid_rate(track.clock, fastest) for track in tracks)
    if not (np.isfinite(rate_hz) and rate_hz > 0):
        raise RecordingError(f"a grid of {rate_hz:g} Hz makes no sense; give a positive rate.")
    if cutoff_hz != "auto":
        _check_cutoff(tracks, fixed, rate_hz)

    runs = [
        run
        for track in tracks
        for run in _on_grid(track, rate_hz, fixed, derived=velocity == "derived")
    ]
    cutoff, reason = fixed, ""
    if cutoff_hz == "auto":
        cutoff, reason = choose_cutoff(
            [run.velocity for run in runs], [run.torque for run in runs], rate_hz
        )
    delay = 0.0
    if delay_s == "auto":
        found = estimate_delay([(run.position, run.velocity, run.torque) for run in runs], rate_hz)
        delay = found.seconds
        reason = "; ".join(filter(None, (reason, found.reason)))
    else:
        delay = float(delay_s)
    runs = [run.shifted(delay) for run in runs]
    if average_periods:
        runs, rate_hz = _folded(runs, rate_hz)

    samples = Samples.joined(
        [
            _samples(
                run,
                rate_hz,
                cutoff,
                DIFFERENTIATIONS[differentiation],
                friction_delay=np.broadcast_to(np.asarray(friction_delay_s, float), (joints,)),
                friction_cutoff=friction_cutoff_hz,
                measured_acceleration=acceleration == "measured",
                trim=trim,
                margin_s=margin_s,
                dead_zone=np.broadcast_to(np.asarray(dead_zone, float), (joints,)),
                periodic=average_periods,
            )
            for run in runs
        ]
    )
    if trim and not samples.in_motion.any():
        names = ", ".join(name_of(r) for r in recordings)
        raise RecordingError(
            f"nothing moves in {names}: no joint is faster than {1e3 * SLOWEST:g} mrad/s for long. "
            "Static poses are conditioned with trim=False; a fit needs motion."
        )
    torque_already = all(g.exact for g in scale)
    return replace(
        samples,
        delay_s=delay,
        reason=reason,
        gain=None if torque_already else scale[0].value,
        gain_std=None if torque_already else scale[0].std,
        findings=(*gain_findings, *samples.findings),
    )


def name_of(recording: Recording) -> str:
    """What to call a recording in messages."""
    return str(recording.meta.get("file") or recording.meta.get("name") or "the recording")


@dataclass(frozen=True, slots=True, eq=False)
class _Track:
    """A recording in order of time, without impossible values, torque in newton metres."""

    name: str
    clock: Timing
    parts: tuple[tuple[Float[Array, " n"], Float[Array, "n c"], Bool[Array, "n j"]], ...]
    joints: int
    measured: Bool[Array, " j"]
    accelerations: bool
    temperatures: bool
    signed: Bool[Array, " j"]
    findings: tuple[Finding, ...]


def _track(recording: Recording, gains: Gains, outliers: bool) -> _Track:
    """Clean columns [position, velocity, torque, acceleration?, temperature?] at their stamps."""
    name, joints = name_of(recording), recording.joints
    time = np.asarray(recording.time, float)
    for field in ("position", "signal", "velocity", "acceleration", "temperature"):
        values = getattr(recording, field)
        if values is not None and np.shape(values) != (len(time), joints):
            raise RecordingError(
                f"{name}: {field} has shape {np.shape(values)}, {(len(time), joints)} was expected "
                "from time and position."
            )
    stamped = np.abs(time) < _LARGEST
    if np.count_nonzero(stamped) < 5:
        raise RecordingError(
            f"{name} has {np.count_nonzero(stamped)} samples with a time stamp; at least 5 are "
            "needed, and some seconds of motion for a fit."
        )
    steps = np.diff(time[stamped])
    if not np.any(steps > 0):
        raise RecordingError(
            f"time stands still in {name}: all stamps are {time[stamped][0]:g} s. "
            "Name the right time column in the column map."
        )
    signed = np.ones(joints, bool) if recording.signed is None else np.asarray(recording.signed)
    torque = _joint_torque(recording, gains, signed, name)
    position = _finite(recording.position, name, "position", joints, required=True)
    velocity = _finite(recording.velocity, name, "velocity", joints)
    acceleration = _finite(recording.acceleration, name, "acceleration", joints)
    temperature = _finite(recording.temperature, name, "temperature", joints)
    assert position is not None
    if velocity is None:
        velocity = np.full(position.shape, np.nan)
    measured = ~np.isnan(velocity).all(axis=0)
    if not measured.all():
        velocity = np.where(measured, velocity, 0.0)
    if acceleration is not None and not np.isfinite(acceleration).any(axis=0).all():
        acceleration = None
    if temperature is not None:
        temperature = np.where(np.isnan(temperature).all(axis=0), 0.0, temperature)
    extra = [c for c in (acceleration, temperature) if c is not None]
    columns = np.concatenate([position, velocity, torque, *extra], axis=1)
    if not stamped.all():
        columns, time = columns[stamped], time[stamped]

    findings: list[Finding] = []
    missing = np.isnan(columns)
    holes = bool(missing.any())
    if holes:
        findings.append(
            Finding(
                "missing",
                "warning",
                f"{np.count_nonzero(missing)} values of {name} are missing or not finite",
                "bridged by straight lines; stretches too long for that are left out",
            )
        )
    parts = []
    absorbed = spikes = 0
    period = float(np.median(steps[steps > 0]))
    stretches = rising(time)
    for stretch in stretches:
        a, b = stretch.start, stretch.stop
        if b - a < 2:
            continue
        lacking = missing[a:b, :joints] | missing[a:b, 2 * joints : 3 * joints]
        lacking |= missing[a:b, joints : 2 * joints]
        whole = columns[a:b]
        if holes:
            whole = bridged(time[a:b], whole, missing[a:b])
            if np.isnan(whole).any():
                continue  # this stretch lacks a channel altogether
        if outliers:
            found = np.concatenate(
                [
                    find_outliers(whole[:, k * joints : (k + 1) * joints], least=least)
                    for k, least in enumerate((1e-3, 5 * SLOWEST, 0.0))
                ],
                axis=1,
            )
            # An absolute value dips to zero at every change of sign: only peaks are spikes.
            for j in np.flatnonzero(~signed):
                dip = whole[:, 2 * joints + j] < np.median(whole[:, 2 * joints + j])
                found[dip, 2 * joints + j] = False
            if found.any():
                spikes += int(np.count_nonzero(found))
                found = np.concatenate(
                    [found, np.zeros((b - a, whole.shape[1] - 3 * joints), bool)], axis=1
                )
                whole = bridged(time[a:b], whole, found)
        stamps, whole, groups = merged(time[a:b], whole, period)
        if groups is not None:
            lacking = np.logical_and.reduceat(lacking[groups.order], groups.first)
            absorbed += (b - a) - len(stamps)
        if len(stamps) > 1:
            parts.append((stamps, whole, lacking))
    if not parts:
        raise RecordingError(
            f"{name} has no stretch in which position and torque of every joint are there. "
            "Check the column map and the file."
        )
    if len(stretches) > 1:
        findings.append(
            Finding(
                "time_backwards",
                "warning",
                f"time jumps back {len(stretches) - 1} times in {name}",
                "each stretch became a run of its own",
            )
        )
    if absorbed:
        findings.append(
            Finding(
                "duplicate",
                "info",
                f"{absorbed} samples of {name} repeat a time stamp or follow the last one within a "
                "quarter of a period",
                "averaged into one",
            )
        )
    if spikes:
        findings.append(
            Finding(
                "outlier",
                "warning",
                f"{spikes} values of {name} are single spikes far from their neighbours",
                "replaced by the line between their neighbours",
            )
        )
    return _Track(
        name,
        timing(max((stamps for stamps, *_ in parts), key=len)),
        tuple(parts),
        joints,
        measured,
        acceleration is not None,
        temperature is not None,
        signed,
        tuple(findings),
    )


def _joint_torque(
    recording: Recording, gains: Gains, signed: Bool[Array, " j"], name: str
) -> Float[Array, "n j"]:
    """tau = C' (K s) with signal s, gains K and coupling C."""
    signal = _finite(recording.signal, name, "torque", recording.joints, required=True)
    torque = signal * gains.value
    if not signed.all():
        torque = np.where(signed, torque, np.abs(torque))
    if recording.coupling is None:
        return torque
    coupling = np.asarray(recording.coupling, float)
    tied = (coupling != np.diag(np.diag(coupling))).any(axis=0)
    tied |= (coupling != np.diag(np.diag(coupling))).any(axis=1)
    if np.any(tied & ~signed):
        raise RecordingError(
            f"in {name} coupled joints have torques without a sign: they cannot be carried from "
            "the motors to the joints. Record signed torques, or leave the coupling out of the map."
        )
    return torque @ coupling


def _finite(
    values: Float[Array, "n j"] | None,
    name: str,
    quantity: str,
    joints: int,
    *,
    required: bool = False,
) -> Float[Array, "n j"] | None:
    """The values, with nan for everything that is no measurement."""
    if values is None:
        return None
    out = np.asarray(values, float)
    # Comparisons with nan are false, so this also sees what is missing.
    if not (out.max() < _LARGEST and out.min() > -_LARGEST):
        out = np.array(out)
        out[~(np.abs(out) < _LARGEST)] = np.nan
    if required:
        empty = ~np.isfinite(out).any(axis=0)
        if empty.any():
            which = ", ".join(str(j + 1) for j in np.flatnonzero(empty))
            raise RecordingError(
                f"{name} has no {quantity} for joint {which}: every value is missing. "
                "Name the right columns in the column map."
            )
    return out


def _grid_rate(clock: Timing, fastest: float) -> float:
    """The logger's own rate, divided by a whole number where it is faster than needed."""
    rate = grid_rate(clock)
    return float(rate / max(1.0, np.ceil(rate / fastest - 1e-9)))


def _check_cutoff(tracks: Sequence[_Track], cutoff: float, rate_hz: float) -> None:
    if not np.isfinite(cutoff):
        return
    for track in tracks:
        slowest = min(track.clock.nominal_hz, rate_hz)
        if cutoff >= 0.5 * slowest:
            raise RecordingError(
                f"a cut-off of {cutoff:g} Hz is not below half the rate of {track.name} "
                f"({slowest:.4g} Hz recorded or asked for). Choose one below "
                f"{0.4 * slowest:.3g} Hz."
            )


def _on_grid(track: _Track, rate_hz: float, cutoff: float, *, derived: bool) -> list[UniformRun]:
    """The track's uninterrupted stretches on the grid."""
    period = 1.0 / track.clock.nominal_hz
    longest = max(_BRIDGE_PERIODS * period, 0.25 / (cutoff if np.isfinite(cutoff) else 10.0))
    factor = max(1, round(grid_rate(track.clock) / rate_hz))
    shortest = max(20, int(np.ceil(2.0 * settling_time(cutoff) * rate_hz)))
    measured = track.measured & (not derived)
    findings = list(track.findings)
    runs: list[UniformRun] = []
    cuts = short = 0
    for time, columns, lacking in track.parts:
        stretches_ = pieces(time, longest)
        cuts += len(stretches_) - 1
        for piece in stretches_:
            stamps = time[piece]
            fine = np.arange(int((stamps[-1] - stamps[0]) * factor * rate_hz * (1 + 1e-12)) + 1)
            if len(fine) // factor < shortest:
                short += 1
                continue
            fine = stamps[0] + fine / (factor * rate_hz)
            part = columns[piece]
            grid = decimate(interpolate(stamps, part, fine), factor)
            at = fine[::factor]
            runs.append(
                _uniform(
                    track,
                    at - time[0],
                    grid,
                    _bridges(stamps, lacking[piece], at, longest),
                    measured,
                    rate_hz,
                    noise=noise_std(part[:, : 3 * track.joints])
                    / np.sqrt(max(1.0, track.clock.nominal_hz / rate_hz)),
                )
            )
    if not runs:
        raise RecordingError(
            f"{track.name} is too short: {sum(len(t) for t, *_ in track.parts)} samples give no "
            f"stretch of {shortest / rate_hz:.2g} s, which a {cutoff:g} Hz low-pass needs to "
            "settle. Record longer, or raise the cut-off."
        )
    if cuts:
        findings.append(
            Finding(
                "gap",
                "warning",
                f"{cuts} gaps in {track.name} are longer than {1e3 * longest:.0f} ms",
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
    track: _Track,
    time: Float[Array, " n"],
    grid: Float[Array, "n c"],
    bad: Bool[Array, "n j"],
    measured: Bool[Array, " j"],
    rate_hz: float,
    *,
    noise: Float[Array, " c"],
) -> UniformRun:
    j = track.joints
    position, velocity, torque = grid[:, :j], grid[:, j : 2 * j], grid[:, 2 * j : 3 * j]
    velocity_noise = noise[j : 2 * j]
    measured = measured & ~too_noisy(velocity_noise, noise[:j])
    if not measured.all():
        velocity = np.where(
            measured, velocity, DIFFERENTIATIONS["central"](position, rate_hz, np.inf, False)
        )
        # The five-point difference turns white position noise s into 0.95 s rate.
        velocity_noise = np.where(measured, velocity_noise, 0.95 * noise[:j] * rate_hz)
    rest = [grid[:, k : k + j] for k in range(3 * j, grid.shape[1], j)]
    return UniformRun(
        name=track.name,
        time=time,
        position=position,
        velocity=velocity,
        measured=measured,
        acceleration=rest[0] if track.accelerations else None,
        torque=torque,
        signed=track.signed,
        temperature=rest[-1] if track.temperatures else None,
        bad=bad,
        torque_noise=noise[2 * j : 3 * j],
        velocity_noise=velocity_noise,
    )


def _folded(runs: list[UniformRun], rate_hz: float) -> tuple[list[UniformRun], float]:
    """Every run as one averaged period, all on the grid that divides it evenly."""
    periods = []
    for run in runs:
        moving = motion_mask(run.velocity, rate_hz, threshold=_threshold(run))
        period = find_period(run.velocity[moving], rate_hz)
        if period is None:
            raise RecordingError(
                f"the motion of {run.name} does not repeat: there are no periods to average. "
                "Leave average_periods out."
            )
        periods.append(period)
    period = float(np.median(periods))
    if max(periods) - min(periods) > 0.01 * period:
        raise RecordingError(
            f"the recordings repeat every {min(periods):.4g} to {max(periods):.4g} s: average only "
            "recordings of one motion together."
        )
    count = round(period * rate_hz)
    return [fold(run, period, count) for run in runs], count / period


def _threshold(run: UniformRun) -> Float[Array, " j"]:
    return speed_threshold(run.velocity, run.velocity_noise)


def _samples(
    run: UniformRun,
    rate_hz: float,
    cutoff: float,
    derive: Differentiation,
    *,
    friction_delay: Float[Array, " j"],
    friction_cutoff: float | None,
    measured_acceleration: bool,
    trim: bool,
    margin_s: float,
    dead_zone: Float[Array, " j"],
    periodic: bool,
) -> Samples:
    n = len(run.time)

    def smooth(columns: Float[Array, "n c"], hz: float = cutoff) -> Float[Array, "n c"]:
        return zero_phase(columns, rate_hz, hz, periodic=periodic)

    position, velocity, torque = (smooth(c) for c in (run.position, run.velocity, run.torque))
    if not run.measured.all():
        velocity = np.where(run.measured, velocity, derive(position, rate_hz, cutoff, periodic))
    if measured_acceleration and run.acceleration is not None:
        acceleration = smooth(run.acceleration)
    else:
        acceleration = derive(velocity, rate_hz, cutoff, periodic)

    friction_velocity = run.friction_velocity(friction_delay)
    gentle = 5.0 * cutoff if friction_cutoff is None else friction_cutoff
    if gentle < 0.45 * rate_hz and (friction_cutoff is not None or not run.measured.all()):
        softened = smooth(friction_velocity, gentle)
        chosen = run.measured & (friction_cutoff is None)
        friction_velocity = np.where(chosen, friction_velocity, softened)

    # The low-pass leaves this much of white noise; 2 fc / rate is its share of the band.
    left = min(1.0, np.sqrt(2.0 * cutoff / rate_hz)) if np.isfinite(cutoff) else 1.0
    fine = speed_threshold(run.velocity, run.velocity_noise)
    clear = run.measured & (fine <= np.maximum(5 * SLOWEST, 0.01 * np.abs(run.velocity).max(0)))
    speed = np.where(clear, run.velocity, velocity)
    threshold = np.where(clear, fine, speed_threshold(velocity, left * run.velocity_noise))

    keep = ~smeared(run.bad, rate_hz, settling_time(cutoff), periodic=periodic)
    motion = np.ones(n, bool)
    reach = 0.5 * settling_time(cutoff)
    if trim and not periodic:
        motion = motion_mask(speed, rate_hz, threshold=threshold, margin_s=margin_s)
        standing = standing_mask(speed, rate_hz, threshold=threshold)
        keep &= ~smeared(standing, rate_hz, reach)
    if not periodic:
        # At rest the continuation beyond the end is exact; in motion it is a guess.
        edge = int(np.ceil(settling_time(cutoff) * rate_hz))
        moving = np.any(np.abs(speed) > threshold, axis=1)
        if moving[: edge // 4].any():
            motion[:edge] = False
        if moving[n - edge // 4 :].any():
            motion[n - edge :] = False
    if np.any(dead_zone > 0):
        slow = np.abs(friction_velocity) < dead_zone
        keep &= ~smeared(slow, rate_hz, reach, periodic=periodic)
    keep &= motion[:, None]
    return Samples(
        time=run.time,
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        torque=torque,
        friction_velocity=friction_velocity,
        keep=keep,
        run=np.zeros(n, np.int64),
        rate_hz=float(rate_hz),
        cutoff_hz=float(cutoff),
        noise=run.torque_noise,
        signed=run.signed,
        temperature=run.temperature,
        names=(run.name,),
        motion=motion,
        raw_torque=run.torque,
        periodic=periodic,
        findings=run.findings,
    )
