"""Quality report of a recording before fitting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.recording import select_rows
from taufit.recording.timing import sampling_timing
from taufit.robot import Robot
from taufit.signals.conditioning import condition
from taufit.signals.delay import estimate_delay, tracking_delay
from taufit.signals.drive_gains import DriveGains
from taufit.signals.estimates.periodicity import find_period
from taufit.signals.motion_intervals import (
    STANDSTILL_SPEED,
    motion_mask,
    speed_threshold,
    true_intervals,
)
from taufit.signals.noise import noise_std
from taufit.signals.resampling import grid_rate, interpolate
from taufit.signals.samples import Samples

# Jitter that gives a warning, as a fraction of the period.
_JITTER = 0.05


def quality_report(
    recording: Recording, robot: Robot | None = None, samples: Samples | None = None
) -> tuple[Finding, ...]:
    """Report all findings about a recording and their handling by `condition`.

    Order: the reader's findings, rate and jitter, gaps, saturated, frozen and missing channels,
    units, standstill and motion, periodicity, joints that only move together, drive gains, delay,
    noise. Findings that need a model (excitation per base parameter, torque sign against gravity)
    are reported by `validation.excitation`.

    Args:
        recording: Recording as read from file.
        robot: Robot whose torque limits are used to check units.
        samples: Conditioned samples of the recording, if available.
    """
    recording, order = _in_order(recording)
    if len(recording) < 5:
        return (
            *recording.findings,
            Finding(
                "too_short",
                "error",
                f"{recording.name} has {len(recording)} samples",
                "cannot be used for a fit",
            ),
        )
    findings = [*recording.findings, *order]
    known_kinds = {finding.kind for finding in findings}
    findings += _sampling_findings(recording, known_kinds)
    findings += _channel_findings(recording, known_kinds)
    findings += _unit_findings(recording, robot)
    note: Finding | None = None
    if samples is None:
        try:
            samples = condition(recording, trim=False, cutoff_hz=_report_cutoff(recording))
        except RecordingError as error:
            note = Finding("conditioning", "error", str(error), "cannot be used for a fit as it is")
            try:
                samples = condition(
                    recording,
                    trim=False,
                    cutoff_hz=_report_cutoff(recording),
                    gains=DriveGains.from_values(np.ones(recording.joints)),
                )
            except RecordingError:
                return (*findings, note)
    moving = _motion_mask(recording, samples)
    findings += _motion_findings(samples, moving)
    findings += _equal_motion_findings(samples, moving)
    findings += [f for f in samples.findings if f.kind not in ("duplicate", "gap")]
    findings += _delay_findings(recording, samples, moving)
    findings += _noise_findings(samples, moving, "N m" if note is None else recording.signal_unit)
    return tuple(findings) if note is None else (*findings, note)


def _in_order(recording: Recording) -> tuple[Recording, list[Finding]]:
    """Recording with strictly increasing time stamps, and a finding if it was reordered."""
    time = np.asarray(recording.time, float)
    order = np.flatnonzero(np.abs(time) < 1e12)
    order = order[np.argsort(time[order], kind="stable")]
    order = order[np.concatenate([[True], np.diff(time[order]) > 0])] if len(order) else order
    if len(order) == len(time) and np.all(np.diff(order) == 1):
        return recording, []
    dropped = len(time) - len(order)
    finding = Finding(
        "time_order",
        "warning",
        f"time does not simply increase: {dropped} stamps repeat or are missing, others out of "
        "order",
        "judged in order of time, each stamp once",
        value=dropped,
    )
    return select_rows(recording, order), [finding]


def _report_cutoff(recording: Recording) -> float | None:
    rate = sampling_timing(recording.time).nominal_hz
    return 10.0 if rate > 25.0 else None


def _motion_mask(recording: Recording, samples: Samples) -> Bool[Array, " n"]:
    """Samples in motion, by measured speed if it is clear of noise, else by filtered speed."""
    raw_velocity = _speed_on_grid(recording, samples)
    noise = noise_std(raw_velocity)
    raw_threshold = speed_threshold(raw_velocity, noise)
    is_clear = raw_threshold <= np.maximum(
        5.0 * STANDSTILL_SPEED, 0.01 * np.abs(raw_velocity).max(axis=0, initial=0.0)
    )
    # Factor by which the low-pass reduces the std of white noise.
    noise_factor = min(1.0, np.sqrt(2.0 * samples.cutoff_hz / samples.rate_hz))
    speed = np.where(is_clear, raw_velocity, samples.velocity)
    threshold = np.where(
        is_clear, raw_threshold, speed_threshold(samples.velocity, noise_factor * noise)
    )
    return motion_mask(speed, samples.rate_hz, threshold=threshold)


def _speed_on_grid(recording: Recording, samples: Samples) -> Float[Array, "n j"]:
    """Unfiltered velocity if measured (it is zero at standstill), else filtered velocity."""
    if recording.velocity is None or len(set(samples.names)) != len(samples.run_slices()):
        return samples.velocity
    return samples.friction_velocity if samples.cutoff_hz < np.inf else samples.velocity


def _sampling_findings(recording: Recording, known_kinds: set[str]) -> list[Finding]:
    sampling = sampling_timing(recording.time)
    jitter = sampling.jitter * sampling.nominal_hz
    findings = [
        Finding(
            "rate",
            "warning" if jitter > _JITTER else "info",
            f"{len(recording)} samples in {sampling.duration:.4g} s: {sampling.mean_hz:.4g} Hz on "
            f"average, meant to be {grid_rate(sampling):.4g} Hz; steps of "
            f"{1e3 * sampling.min_step:.3g} to {1e3 * sampling.max_step:.3g} ms, "
            + (f"jitter {1e3 * sampling.jitter:.2g} ms" if sampling.jitter > 1e-7 else "no jitter"),
            "resampled to a uniform grid from the time stamps",
            value=sampling.mean_hz,
        )
    ]
    if len(sampling.gaps) and "gaps" not in known_kinds:
        missing_fraction = sampling.lost_samples / (sampling.lost_samples + len(recording))
        findings.append(
            Finding(
                "gaps",
                "warning" if missing_fraction > 0.01 else "info",
                f"{len(sampling.gaps)} gaps longer than {1.5e3 / sampling.nominal_hz:.3g} ms, "
                "about "
                f"{sampling.lost_samples} samples ({missing_fraction:.1%}) missing; the longest is "
                f"{1e3 * sampling.max_step:.3g} ms",
                "short ones are bridged, the run is cut at long ones",
                value=sampling.lost_samples,
            )
        )
    return findings


def _motion_findings(samples: Samples, moving: Bool[Array, " n"]) -> list[Finding]:
    """Findings about motion, standstill and periodicity."""
    if not moving.any():
        return [
            Finding(
                "motion",
                "warning",
                "nothing moves: these are static poses",
                "used only where a method asks for poses",
            )
        ]
    findings = []
    for rows in samples.run_slices()[:20]:
        moving_intervals = true_intervals(moving[rows])
        time = samples.time[rows]
        if not moving_intervals:
            continue
        interval_text = ", ".join(
            f"{time[a]:.2f} to {time[b - 1]:.2f} s" for a, b in moving_intervals[:8]
        )
        omitted_text = f" and {len(moving_intervals) - 8} more" if len(moving_intervals) > 8 else ""
        before, after = moving_intervals[0][0], len(time) - moving_intervals[-1][1]
        findings.append(
            Finding(
                "motion",
                "info",
                f"moves from {interval_text}{omitted_text}; {before / samples.rate_hz:.2f} s of "
                "rest before and "
                f"{after / samples.rate_hz:.2f} s after",
                "fits use the part in motion, rest lets the filter settle",
                time=float(time[moving_intervals[0][0]]),
                value=float(np.mean(moving[rows])),
            )
        )
        if min(before, after) < 0.1 * samples.rate_hz:
            which_end = "starts" if before < 0.1 * samples.rate_hz else "ends"
            findings.append(
                Finding(
                    "no_rest",
                    "info",
                    f"the recording {which_end} in motion",
                    "the first and last moments, where the filter settles, are left out",
                )
            )
        longest_interval = max(moving_intervals, key=lambda s: s[1] - s[0])
        period = find_period(
            samples.velocity[rows][longest_interval[0] : longest_interval[1]], samples.rate_hz
        )
        if period is not None:
            duration = (longest_interval[1] - longest_interval[0]) / samples.rate_hz
            findings.append(
                Finding(
                    "period",
                    "info",
                    f"the motion repeats every {period:.4g} s, {duration / period:.1f} times",
                    "average_periods=True would fold it onto one period",
                    value=period,
                )
            )
    return findings


def _saturation_findings(signal: Float[Array, " n"], joint: int) -> list[Finding]:
    """Findings about limits at which a signal stays."""
    findings = []
    for limit, side in ((signal.max(), "highest"), (signal.min(), "lowest")):
        is_at_limit = signal == limit
        longest = max((b - a for a, b in true_intervals(is_at_limit)), default=0)
        # A peak touches its top once; a limit is held.
        if longest >= 5 and np.count_nonzero(is_at_limit) > 0.002 * len(signal) and abs(limit) > 0:
            findings.append(
                Finding(
                    "saturation",
                    "warning",
                    f"joint {joint + 1} stays at its {side} signal, {limit:.4g}, for "
                    f"{np.count_nonzero(is_at_limit)} samples (up to {longest} in a row): a limit?",
                    "kept; leave such moments out, or record with less load",
                    joint=joint + 1,
                    value=float(limit),
                )
            )
    return findings


def _channel_findings(recording: Recording, known_kinds: set[str]) -> list[Finding]:
    """Findings about missing, frozen and saturated channels."""
    findings = []
    signal, position = np.asarray(recording.signal), np.asarray(recording.position)
    for j in range(recording.joints):
        finite = np.isfinite(signal[:, j])
        if not finite.any():
            findings.append(
                Finding(
                    "missing_joint",
                    "error",
                    f"joint {j + 1} has no torque signal",
                    "cannot be used for a fit",
                    joint=j + 1,
                )
            )
            continue
        x = signal[finite, j]
        if np.ptp(x) == 0:
            if "constant_signal" not in known_kinds:
                findings.append(
                    Finding(
                        "constant_signal",
                        "warning",
                        f"the torque channel of joint {j + 1} is {x[0]:g} throughout: stuck, or "
                        "not recorded",
                        joint=j + 1,
                    )
                )
            continue
        limits = _saturation_findings(x, j)
        findings += limits
        is_repeated = np.concatenate([[False], signal[1:, j] == signal[:-1, j]])
        changes = np.concatenate([[False], position[1:, j] != position[:-1, j]])
        step = float(np.median(np.diff(recording.time)))
        frozen = [s for s in true_intervals(is_repeated & changes) if (s[1] - s[0]) * step > 0.25]
        if frozen and not limits:
            total = sum(b - a for a, b in frozen)
            findings.append(
                Finding(
                    "frozen_signal",
                    "warning",
                    f"the torque of joint {j + 1} does not change for {total} samples while it "
                    f"moves, first at t = {recording.time[frozen[0][0]]:.6g} s",
                    "kept; check the logger",
                    joint=j + 1,
                    time=float(recording.time[frozen[0][0]]),
                )
            )
    return findings


def _equal_motion_findings(samples: Samples, moving: Bool[Array, " n"]) -> list[Finding]:
    """Findings about joints with equal motion, whose parameters are confounded."""
    if np.count_nonzero(moving) < 50:
        return []
    velocity = samples.velocity[moving]
    active = np.flatnonzero(np.std(velocity, axis=0) > 5e-3)
    if len(active) < 2:
        return []
    correlation = np.abs(np.corrcoef(velocity[:, active].T))
    groups: list[list[int]] = []
    for a in range(len(active)):
        matching_group = next((g for g in groups if correlation[a, g[0]] > 0.99), None)
        if matching_group is None:
            groups.append([a])
        else:
            matching_group.append(a)
    return [
        Finding(
            "moves_together",
            "warning",
            f"joints {_join_numbers(active[group] + 1)} move together (correlation above 0.99)",
            "their parameters can be told apart only by constraints; record a motion in which "
            "every joint has a course of its own",
        )
        for group in groups
        if len(group) > 1
    ]


def _unit_findings(recording: Recording, robot: Robot | None) -> list[Finding]:
    """Findings about signals with implausible units."""
    findings = []
    signal = np.abs(np.nan_to_num(recording.signal))
    high_signal = np.percentile(signal, 99.0, axis=0)
    if recording.signal_unit == "N m" and recording.gain is None:
        target = recording.target_torque
        if target is not None and np.isfinite(target).all():
            power = np.sum(np.square(target), axis=0)
            is_loaded = power > 1e-6 * power.max()
            slope = (
                np.sum(target * np.nan_to_num(recording.signal), axis=0)[is_loaded]
                / power[is_loaded]
            )
            if len(slope) and np.median(np.abs(slope)) < 0.4:
                findings.append(
                    Finding(
                        "unit_suspicion",
                        "warning",
                        f"the torque is about {np.median(slope):.2g} of the controller's own "
                        "target torque: a current, or torque before the gear?",
                        "taken as newton metres at the joint, as the map says",
                        value=float(np.median(slope)),
                    )
                )
        if robot is not None and robot.joints == recording.joints:
            limit = robot.limits.torque
            findings.extend(
                Finding(
                    "unit_suspicion",
                    "warning",
                    f"joint {j + 1} shows {high_signal[j]:.4g} N m, more than twice its limit of "
                    f"{limit[j]:.4g} N m: another unit?",
                    "taken as the map says",
                    joint=int(j) + 1,
                    value=float(high_signal[j]),
                )
                for j in np.flatnonzero(np.isfinite(limit) & (high_signal > 2.0 * limit))
            )
            has_limit = np.isfinite(limit) & (limit > 0)
            if has_limit.any() and np.max(high_signal[has_limit] / limit[has_limit]) < 0.01:
                findings.append(
                    Finding(
                        "unit_suspicion",
                        "warning",
                        "no joint reaches 1 % of its torque limit: currents, motor-side torque or "
                        "another unit?",
                        "taken as the map says",
                    )
                )
    if robot is not None and robot.joints == recording.joints:
        span = np.ptp(np.nan_to_num(recording.position), axis=0)
        joint_range = robot.limits.upper - robot.limits.lower
        findings.extend(
            Finding(
                "unit_suspicion",
                "warning",
                f"joint {j + 1} moves over {span[j]:.4g}, its range is {joint_range[j]:.4g} rad: "
                "degrees?",
                "taken as the map says",
                joint=int(j) + 1,
                value=float(span[j]),
            )
            for j in np.flatnonzero(np.isfinite(joint_range) & (span > 1.2 * joint_range))
        )
    return findings


def _delay_findings(
    recording: Recording, samples: Samples, moving: Bool[Array, " n"]
) -> list[Finding]:
    findings = []
    if np.count_nonzero(moving) > 2.0 * samples.rate_hz and (
        samples.signed is None or samples.signed.all()
    ):
        raw = samples.torque if samples.raw_torque is None else samples.raw_torque
        runs = [
            (samples.position[r], samples.friction_velocity[r], raw[r])
            for r in samples.run_slices()
        ]
        try:
            delay = estimate_delay(runs, samples.rate_hz)
        except RecordingError:
            pass
        else:
            findings.append(
                Finding(
                    "delay",
                    "info",
                    delay.reason,
                    "not compensated unless asked for (delay_s, friction_delay_s)",
                    value=delay.seconds,
                )
            )
    if recording.commanded_position is not None:
        grid_time = (
            recording.time[0]
            + np.arange(int((recording.time[-1] - recording.time[0]) * samples.rate_hz) + 1)
            / samples.rate_hz
        )
        commanded = interpolate(recording.time, np.asarray(recording.commanded_position), grid_time)
        measured = interpolate(recording.time, np.asarray(recording.position), grid_time)
        if np.isfinite(commanded).all() and np.isfinite(measured).all():
            lag = tracking_delay(commanded, measured, samples.rate_hz)
            findings.append(
                Finding(
                    "tracking_delay",
                    "info",
                    f"the arm follows its command {1e3 * lag:.1f} ms later"
                    if lag >= 0
                    else f"the arm is {-1e3 * lag:.1f} ms ahead of its recorded command",
                    "measured positions are used",
                    value=lag,
                )
            )
    return findings


def _noise_findings(samples: Samples, moving: Bool[Array, " n"], unit: str) -> list[Finding]:
    if samples.noise is None:
        return []
    noise_text = ", ".join(f"{x:.3g}" for x in samples.noise)
    findings = [
        Finding(
            "noise",
            "info",
            f"torque noise per joint {noise_text} {unit}".rstrip(),
            "used as weights",
        )
    ]
    if moving.any():
        signal = np.std(samples.torque[moving], axis=0)
        filtered_noise = samples.noise * np.sqrt(
            min(1.0, 2.0 * min(samples.cutoff_hz, 1e9) / samples.rate_hz)
        )
        findings.extend(
            Finding(
                "noise",
                "warning",
                f"the torque of joint {j + 1} is mostly noise ({filtered_noise[j]:.2g} of "
                f"{signal[j]:.2g})",
                "kept with little weight; a lower cut-off or more repetitions would help",
                joint=int(j) + 1,
            )
            for j in np.flatnonzero((signal > 0) & (filtered_noise > 0.5 * signal))
        )
    return findings


def _join_numbers(numbers: Sequence[int] | Array) -> str:
    texts = [str(int(n)) for n in numbers]
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]
