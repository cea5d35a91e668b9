"""Recording -> Samples: one grid, one low-pass, derivatives, and which rows belong in a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.signals.cleaning import CleanRecording, clean
from taufit.signals.differentiation import DIFFERENTIATIONS
from taufit.signals.drive_gains import Gains, joint_gains
from taufit.signals.estimates.periodicity import find_period, fold
from taufit.signals.filtering import dilate_mask, settling_time, zero_phase
from taufit.signals.motion_intervals import (
    STANDSTILL_SPEED,
    after_breakaway,
    motion_mask,
    speed_threshold,
    standing_mask,
)
from taufit.signals.samples import Samples
from taufit.signals.uniform_grid import common_rate, require_valid_cutoff, resample
from taufit.signals.uniform_run import UniformRun


@dataclass(frozen=True, slots=True, eq=False)
class _Smoothing:
    """What is done to one run on its grid; attributes as the arguments of `condition`."""

    rate_hz: float
    cutoff_hz: float
    differentiation: str
    friction_delay: Float[Array, " j"]
    friction_cutoff: float | None
    measured_acceleration: bool
    trim: bool
    margin_s: float
    dead_zone: Float[Array, " j"]
    periodic: bool

    def smooth(self, columns: Float[Array, "n c"], hz: float | None = None) -> Float[Array, "n c"]:
        """Through the zero-phase low-pass."""
        cutoff = self.cutoff_hz if hz is None else hz
        return zero_phase(columns, self.rate_hz, cutoff, periodic=self.periodic)

    def differentiate(self, columns: Float[Array, "n c"]) -> Float[Array, "n c"]:
        """Differentiated in time."""
        method = DIFFERENTIATIONS[self.differentiation]
        return method(columns, self.rate_hz, self.cutoff_hz, self.periodic)


def condition(  # noqa: PLR0913 - the public call has one keyword per choice
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

    Example:
        >>> import taufit
        >>> samples = taufit.condition(taufit.read_recording("run.parquet"), cutoff_hz=5.0)
        >>> samples.joints, samples.cutoff_hz
        (6, 5.0)
    """
    if differentiation not in DIFFERENTIATIONS:
        raise RecordingError(
            f"unknown differentiation {differentiation!r}; there are {', '.join(DIFFERENTIATIONS)}."
        )
    recordings = [recording] if isinstance(recording, Recording) else list(recording)
    joints = _joint_count(recordings)
    drive_gains, gain_findings = joint_gains(recordings, gains)

    cleaned = [clean(r, g, outliers=outliers) for r, g in zip(recordings, drive_gains, strict=True)]
    grid_cutoff, rate_hz = _grid(cleaned, cutoff_hz, rate_hz)
    derive_velocity = velocity == "derived"
    runs = [
        run
        for recording_clean in cleaned
        for run in resample(recording_clean, rate_hz, grid_cutoff, derive_velocity=derive_velocity)
    ]
    cutoff, cutoff_reason = (grid_cutoff, "") if cutoff_hz != "auto" else _cutoff(runs, rate_hz)
    delay, delay_reason = (float(delay_s), "") if delay_s != "auto" else _delay(runs, rate_hz)
    runs = [run.with_motion_delay(delay) for run in runs]
    if average_periods:
        runs, rate_hz = _average_periods(runs, rate_hz)

    smoothing = _Smoothing(
        rate_hz=float(rate_hz),
        cutoff_hz=float(cutoff),
        differentiation=differentiation,
        friction_delay=np.broadcast_to(np.asarray(friction_delay_s, float), (joints,)),
        friction_cutoff=friction_cutoff_hz,
        measured_acceleration=acceleration == "measured",
        trim=trim,
        margin_s=margin_s,
        dead_zone=np.broadcast_to(np.asarray(dead_zone, float), (joints,)),
        periodic=average_periods,
    )
    samples = Samples.concatenate([_samples(run, smoothing) for run in runs])
    if trim:
        _require_motion(samples, recordings)
    is_torque = all(g.is_torque for g in drive_gains)
    return replace(
        samples,
        delay_s=delay,
        reason="; ".join(filter(None, (cutoff_reason, delay_reason))),
        gain=None if is_torque else drive_gains[0].value,
        gain_std=None if is_torque else drive_gains[0].std,
        findings=(*gain_findings, *samples.findings),
    )


def _grid(
    recordings: Sequence[CleanRecording],
    cutoff_hz: float | Literal["auto"] | None,
    rate_hz: float | None,
) -> tuple[float, float]:
    """Cut-off and rate of the grid as asked for, or as the recordings allow."""
    cutoff = 10.0 if cutoff_hz == "auto" else np.inf if cutoff_hz is None else float(cutoff_hz)
    if not cutoff > 0:
        raise RecordingError(f"a cut-off of {cutoff:g} Hz makes no sense; give a positive one.")
    rate_hz = common_rate(recordings, cutoff) if rate_hz is None else rate_hz
    if not 0 < rate_hz < np.inf:
        raise RecordingError(f"a grid of {rate_hz:g} Hz makes no sense; give a positive rate.")
    if cutoff_hz != "auto":
        require_valid_cutoff(recordings, cutoff, rate_hz)
    return cutoff, rate_hz


def _cutoff(runs: Sequence[UniformRun], rate_hz: float) -> tuple[float, str]:
    """Cut-off frequency from the spectra of the runs, and its reason."""
    from taufit.signals.estimates.cutoff import choose_cutoff

    return choose_cutoff([run.velocity for run in runs], [run.torque for run in runs], rate_hz)


def _delay(runs: Sequence[UniformRun], rate_hz: float) -> tuple[float, str]:
    """Delay of torque behind motion, and its reason."""
    from taufit.signals.delay import estimate_delay

    estimate = estimate_delay([(run.position, run.velocity, run.torque) for run in runs], rate_hz)
    return estimate.seconds, estimate.reason


def _require_motion(samples: Samples, recordings: Sequence[Recording]) -> None:
    if not samples.in_motion.any():
        names = ", ".join(r.name for r in recordings)
        raise RecordingError(
            f"nothing moves in {names}: no joint is faster than {1e3 * STANDSTILL_SPEED:g} mrad/s "
            "for long. "
            "Static poses are conditioned with trim=False; a fit needs motion."
        )


def _joint_count(recordings: Sequence[Recording]) -> int:
    """How many joints all of them have."""
    if not recordings:
        raise RecordingError("there is no recording to condition.")
    joints = recordings[0].joints
    for other in recordings[1:]:
        if other.joints != joints:
            raise RecordingError(
                f"{other.name} has {other.joints} joints, {recordings[0].name} has "
                f"{joints}. Condition recordings of one robot together."
            )
    return joints


def _average_periods(runs: list[UniformRun], rate_hz: float) -> tuple[list[UniformRun], float]:
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


def _samples(run: UniformRun, smoothing: _Smoothing) -> Samples:
    """One run through the low-pass, with its derivatives and the rows that belong in a fit."""
    rate_hz, cutoff = smoothing.rate_hz, smoothing.cutoff_hz
    position, velocity, torque = (
        smoothing.smooth(c) for c in (run.position, run.velocity, run.torque)
    )
    if not run.velocity_measured.all():
        velocity = np.where(run.velocity_measured, velocity, smoothing.differentiate(position))
    if smoothing.measured_acceleration and run.acceleration is not None:
        acceleration = smoothing.smooth(run.acceleration)
    else:
        acceleration = smoothing.differentiate(velocity)

    friction_velocity = run.friction_velocity(smoothing.friction_delay)
    friction_cutoff = (
        5.0 * cutoff if smoothing.friction_cutoff is None else smoothing.friction_cutoff
    )
    if friction_cutoff < 0.45 * rate_hz and (
        smoothing.friction_cutoff is not None or not run.velocity_measured.all()
    ):
        filtered = smoothing.smooth(friction_velocity, friction_cutoff)
        unfiltered_joints = run.velocity_measured & (smoothing.friction_cutoff is None)
        friction_velocity = np.where(unfiltered_joints, friction_velocity, filtered)

    motion, keep = _rows(run, velocity, friction_velocity, smoothing)
    return Samples(
        time=run.time,
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        torque=torque,
        friction_velocity=friction_velocity,
        keep=keep,
        run=np.zeros(len(run.time), np.int64),
        rate_hz=rate_hz,
        cutoff_hz=cutoff,
        noise=run.torque_noise,
        signed=run.signed,
        channels=run.channels,
        names=(run.name,),
        motion=motion,
        raw_torque=run.torque,
        periodic=smoothing.periodic,
        findings=run.findings,
    )


def _rows(
    run: UniformRun,
    velocity: Float[Array, "n j"],
    friction_velocity: Float[Array, "n j"],
    smoothing: _Smoothing,
) -> tuple[Bool[Array, " n"], Bool[Array, "n j"]]:
    """Rows in motion, and per joint the rows that belong in a fit."""
    rate_hz, cutoff, n = smoothing.rate_hz, smoothing.cutoff_hz, len(run.time)
    # The low-pass leaves this much of white noise; 2 fc / rate is its share of the band.
    noise_factor = min(1.0, np.sqrt(2.0 * cutoff / rate_hz)) if np.isfinite(cutoff) else 1.0
    raw_threshold = speed_threshold(run.velocity, run.velocity_noise)
    is_clear = run.velocity_measured & (
        raw_threshold <= np.maximum(5 * STANDSTILL_SPEED, 0.01 * np.abs(run.velocity).max(0))
    )
    speed = np.where(is_clear, run.velocity, velocity)
    threshold = np.where(
        is_clear, raw_threshold, speed_threshold(velocity, noise_factor * run.velocity_noise)
    )

    keep = ~dilate_mask(run.bad, rate_hz, settling_time(cutoff), periodic=smoothing.periodic)
    motion = np.ones(n, bool)
    reach = 0.5 * settling_time(cutoff)
    if smoothing.trim and not smoothing.periodic:
        motion = motion_mask(speed, rate_hz, threshold=threshold, margin_s=smoothing.margin_s)
        motion = after_breakaway(run.position, motion, rate_hz)
        standing = standing_mask(speed, rate_hz, threshold=threshold)
        keep &= ~dilate_mask(standing, rate_hz, reach)
    if not smoothing.periodic:
        # At rest the continuation beyond the end is exact; in motion it is a guess.
        edge = int(np.ceil(settling_time(cutoff) * rate_hz))
        moving = np.any(np.abs(speed) > threshold, axis=1)
        if moving[: edge // 4].any():
            motion[:edge] = False
        if moving[n - edge // 4 :].any():
            motion[n - edge :] = False
    if np.any(smoothing.dead_zone > 0):
        slow = np.abs(friction_velocity) < smoothing.dead_zone
        keep &= ~dilate_mask(slow, rate_hz, reach, periodic=smoothing.periodic)
    keep &= motion[:, None]
    return motion, keep
