"""Conditioning of recordings: uniform grid, low-pass, derivatives, selection of rows for a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.signals.cleaning import CleanRecording, clean_recording
from taufit.signals.differentiation import DIFFERENTIATIONS
from taufit.signals.drive_gains import DriveGains, joint_gains
from taufit.signals.estimates.periodicity import average_over_periods, find_period
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
    """Settings of the filters for one run; attributes as the arguments of `condition`."""

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
        """Apply the zero-phase low-pass."""
        cutoff = self.cutoff_hz if hz is None else hz
        return zero_phase(columns, self.rate_hz, cutoff, periodic=self.periodic)

    def differentiate(self, columns: Float[Array, "n c"]) -> Float[Array, "n c"]:
        """Time derivative by the selected method."""
        method = DIFFERENTIATIONS[self.differentiation]
        return method(columns, self.rate_hz, self.cutoff_hz, self.periodic)


def condition(  # noqa: PLR0913 - the public call has one keyword per choice
    recording: Recording | Sequence[Recording],
    *,
    cutoff_hz: float | Literal["auto"] | None = 10.0,
    rate_hz: float | None = None,
    differentiation: str = "central",
    delay_s: float | tuple[float, ...] | Literal["auto"] = 0.0,
    friction_delay_s: float | Float[Array, " j"] = 0.0,
    velocity: Literal["auto", "derived"] = "auto",
    acceleration: Literal["derived", "measured"] = "derived",
    friction_cutoff_hz: float | None = None,
    trim: bool = True,
    margin_s: float = 0.0,
    dead_zone: float | Float[Array, " j"] = 0.0,
    outliers: bool = True,
    average_periods: bool = False,
    gains: DriveGains | Float[Array, " j"] | None = None,
) -> Samples:
    """Condition recordings: uniform grid, low-pass, derivatives, rows for a fit.

    Values are resampled from their time stamps to a uniform grid by local cubic interpolation,
    spikes are interpolated, and position, velocity, acceleration and torque pass the same
    zero-phase low-pass (Butterworth, order 4, forwards and backwards). Long gaps split a run;
    filters do not cross them. `motion` marks samples in motion, `keep` rows to be fitted.

    Args:
        recording: One recording, or several of the same robot (each becomes a run).
        cutoff_hz: Cut-off of the low-pass [Hz]; lower values remove noise and fast dynamics.
            "auto" estimates it from the spectrum (see `Samples.reason`); None for no low-pass.
        rate_hz: Rate of the grid [Hz]. Default: the recorded rate, at most 250 Hz (faster
            recordings are decimated by an integer factor with an anti-aliasing filter), or ten
            times the cut-off if that is more.
        differentiation: "central", "savgol" or "fourier".
        delay_s: Delay of torque behind motion [s]; one number, one per joint, or "auto" for an
            estimate. Motion is shifted by the longest, and torque by the rest.
        friction_delay_s: Additional delay of `friction_velocity` [s]; one number or one per joint.
        velocity: "auto" uses measured velocity unless it is much noisier than differentiated
            position; "derived" always differentiates position.
        acceleration: "derived" from the velocity, or "measured" as recorded.
        friction_cutoff_hz: Low-pass of `friction_velocity` [Hz]. Default: none for measured
            velocity, five times the cut-off for differentiated position.
        trim: Exclude standstill from `motion` and, per joint, from `keep`.
        margin_s: Time before and after each motion that still counts as motion [s].
        dead_zone: Speed below which rows of a joint are excluded from `keep`, extended by the
            filter's settling time [rad/s]; one number or one per joint.
        outliers: Interpolate single spikes.
        average_periods: Fold a periodic motion onto one averaged period.
        gains: Joint torque per unit of the recorded signal; overrides those of the recording.

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

    cleaned = [
        clean_recording(r, g, outliers=outliers)
        for r, g in zip(recordings, drive_gains, strict=True)
    ]
    grid_cutoff, rate_hz = _grid(cleaned, cutoff_hz, rate_hz)
    derive_velocity = velocity == "derived"
    runs = [
        run
        for recording_clean in cleaned
        for run in resample(recording_clean, rate_hz, grid_cutoff, derive_velocity=derive_velocity)
    ]
    cutoff, cutoff_reason = (grid_cutoff, "") if cutoff_hz != "auto" else _cutoff(runs, rate_hz)
    delay, delay_reason = (delay_s, "") if delay_s != "auto" else _delay(runs, rate_hz)
    _require_one_delay_each(delay, joints)
    runs = [run.without_torque_delay(delay) for run in runs]
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
    """Cut-off and grid rate [Hz], validated, with defaults from the recordings."""
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


def _require_one_delay_each(delay: float | tuple[float, ...], joints: int) -> None:
    if isinstance(delay, tuple) and len(delay) != joints:
        raise RecordingError(f"there are {len(delay)} delays for {joints} joints: give one each.")


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
    """Number of joints, which must be equal in all recordings."""
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
    """Average each run over its periods, on a grid that divides the period evenly."""
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
    return [average_over_periods(run, period, count) for run in runs], count / period


def _threshold(run: UniformRun) -> Float[Array, " j"]:
    return speed_threshold(run.velocity, run.velocity_noise)


def _samples(run: UniformRun, smoothing: _Smoothing) -> Samples:
    """Filter and differentiate one run and select the rows for a fit."""
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
    """Mask of samples in motion and, per joint, of rows to be fitted."""
    rate_hz, cutoff, n = smoothing.rate_hz, smoothing.cutoff_hz, len(run.time)
    # Factor by which the low-pass reduces the std of white noise: sqrt(2 fc / rate).
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
        # Padding beyond the ends is exact at standstill only.
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
    # Torque that never changes was not measured.
    keep &= np.ptp(run.torque, axis=0) > 1e-9 * np.maximum(np.abs(run.torque).max(axis=0), 1e-6)
    return motion, keep
