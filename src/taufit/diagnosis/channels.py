"""Checks for stuck, clipped, empty or repeated channels of a recording, without a model."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.signals.motion_intervals import true_intervals

# A position that does not change at all for this long [s] while the joint was moving this fast
# [rad/s or m/s] just before is a stuck sensor: arms slow down before they stop.
_STUCK_DURATION_S, _STUCK_SPEED = 1.0, 0.1
# Travel by the recorded velocity that a position without any change contradicts [rad or m].
_STUCK_TRAVEL = 0.03
# Additional time removed next to a stuck interval [s].
_MARGIN_S = 0.05
# Fraction of the moving time at the extreme value above which torque counts as clipped.
_CLIPPED_FRACTION = 0.01
# Smallest number of different torque values while moving.
_MIN_LEVELS = 12
# Fraction of repeated rows, among moving ones, that counts as a duplicated log.
_REPEATED_FRACTION = 0.2
# Smallest number of rows in a row that repeat earlier ones in the same order.
_MIN_REPEATED_RUN = 20


def channel_findings(recording: Recording) -> list[Finding]:
    """Findings on channels that cannot be a measurement of this motion."""
    moving = _moving_rows(recording)
    if np.count_nonzero(moving) < 20:
        return []
    findings = []
    for j in range(recording.joints):
        findings += _stuck_encoder_findings(recording, j)
        findings += _torque_findings(recording, j, moving)
    if sum(finding.kind == "dead_torque" for finding in findings) == recording.joints:
        findings = [
            Finding(
                "no_variation",
                "error",
                "the torque of every joint is constant: not recorded. Name the right columns in "
                "the column map, or record it",
            )
        ]
    return [
        *findings,
        *_missing_sign_findings(recording, moving),
        *_duplicate_row_findings(recording, moving),
    ]


def _moving_rows(recording: Recording) -> Bool[Array, " n"]:
    speed = np.abs(_difference_velocity(recording)).max(axis=1)
    return speed > max(0.02, 0.02 * float(np.percentile(speed, 99)))


def _difference_velocity(recording: Recording) -> Float[Array, "n j"]:
    """Velocity by differences over several rows, to average out encoder quantisation."""
    width = max(1, int(0.02 * len(recording) / max(recording.time[-1] - recording.time[0], 1e-9)))
    q, t = recording.position, recording.time
    out = np.zeros_like(q)
    out[width:-width] = (q[2 * width :] - q[: -2 * width]) / (t[2 * width :] - t[: -2 * width])[
        :, None
    ]
    return out


def _stuck_encoder_findings(recording: Recording, j: int) -> list[Finding]:
    """Finding on an interval in which a position does not change while the joint moves.

    Evidence of motion is the recorded velocity; without it, a position that jumps when it comes
    back, or that stops at once from a speed of many encoder steps per sample.
    """
    q, t = recording.position[:, j], recording.time
    if np.ptp(q) == 0.0:
        return []
    unchanged = np.concatenate([[False], np.diff(q) == 0.0])
    for first, end in true_intervals(unchanged):
        start = first - 1
        if t[end - 1] - t[start] < _STUCK_DURATION_S or not _moves_meanwhile(
            recording, j, start, end
        ):
            continue
        return [_stuck_finding(recording, j, start, end)]
    return []


def _moves_meanwhile(recording: Recording, j: int, start: int, end: int) -> bool:
    """Whether joint j moves in rows start <= i < end, in which its position does not change."""
    q, t = recording.position[:, j], recording.time
    if recording.velocity is not None and np.ptp(recording.velocity[:, j]) > 0.0:
        part = recording.velocity[start:end, j]
        # Averaged over a quarter of a second, since velocities are coarsely quantised too.
        rows = max(1, int(0.25 / max(float(np.median(np.diff(t))), 1e-9)))
        mean = np.convolve(part, np.ones(rows) / rows, "same")
        moving = np.where(np.abs(mean) > 0.2 * _STUCK_SPEED, mean, 0.0)
        if np.abs(np.cumsum(moving[:-1] * np.diff(t[start:end]))).max() > _STUCK_TRAVEL:
            return True
        # A velocity that says rest decides, unless it is stuck as well at another value.
        if np.ptp(part[1:]) > 0.0 or not part[1:].any():
            return False
    width = max(2, int(0.03 / max(float(np.median(np.diff(t))), 1e-9)))
    changes = np.abs(np.diff(q))
    step = float(np.median(changes[changes > 0.0]))
    usual = float(np.percentile(changes[changes > 0.0], 99))
    # One row takes the position to where the joint has moved meanwhile.
    jump = abs(q[end] - q[end - 1]) if end < len(q) else 0.0
    if jump > 3.0 * usual and jump > 8.0 * _encoder_step(changes):
        return True
    before = slice(max(0, start - width), start + 1)
    entry = np.abs(np.diff(q[before]))
    is_full_speed = _speed(q[before], t[before]) > _STUCK_SPEED and bool(
        np.all(entry > max(4.0 * _encoder_step(changes), 0.5 * step))
    )
    # Loggers without velocity: a stop within one sample from many steps per sample.
    return is_full_speed and recording.velocity is None


def _encoder_step(changes: Float[Array, " n"]) -> float:
    """Smallest change of a position: the resolution of its encoder."""
    return float(changes[changes > 1e-12].min()) if np.any(changes > 1e-12) else 0.0


def _stuck_finding(recording: Recording, j: int, start: int, end: int) -> Finding:
    q, t = recording.position[:, j], recording.time
    # Times count from the first sample of the file, as --from and --to do.
    origin = t[0] - float(recording.meta.get("cut_s", [0.0])[0])
    interval_end = "to its end" if end >= len(q) - 1 else f"to {t[end - 1] - origin:.2f} s"
    options = (
        ("--to", f"{max(t[start] - origin - _MARGIN_S, 0.0):.2f}")
        if t[start] - t[0] > 0.5 * (t[-1] - t[0]) or end >= len(q) - 1
        else ("--from", f"{t[min(end, len(t) - 1)] - origin + _MARGIN_S:.2f}")
    )
    return Finding(
        "stuck_encoder",
        "error",
        f"the position of joint {j + 1} stays at {q[start]:.5g} from "
        f"{t[start] - origin:.2f} s {interval_end} while the joint moves: its sensor or "
        f"logger is stuck. Use the part that is good ({' '.join(options)})",
        joint=j + 1,
        time=float(t[start]),
        remedy=Remedy(options),
    )


def _speed(q: Float[Array, " k"], t: Float[Array, " k"]) -> float:
    return float(abs(q[-1] - q[0]) / max(t[-1] - t[0], 1e-9)) if len(q) > 1 else 0.0


def _torque_findings(recording: Recording, j: int, moving: Bool[Array, " n"]) -> list[Finding]:
    """Finding on torque that is constant, coarsely quantised or clipped."""
    x = recording.signal[moving, j]
    x = x[np.isfinite(x)]
    if len(x) == 0:
        return []
    if np.ptp(x) <= 1e-9 * max(float(np.abs(x).max()), 1e-6):
        return [
            Finding(
                "dead_torque",
                "warning",
                f"the torque of joint {j + 1} is {x[0]:g} throughout: not recorded, or stuck. The "
                "joint is moved but not fitted: name the right column in the column map, or record "
                "it",
                joint=j + 1,
            )
        ]
    levels = _levels(x)
    if levels < _MIN_LEVELS and len(x) > 200:
        return [
            Finding(
                "quantised",
                "warning",
                f"the torque of joint {j + 1} takes only {levels} different values: it is rounded "
                "so coarsely that little can be learnt from it. Log more digits",
                joint=j + 1,
                value=float(levels),
            )
        ]
    highest, lowest = float(x.max()), float(x.min())
    for limit in (highest, lowest):
        count = np.count_nonzero(x == limit)
        if count <= max(_CLIPPED_FRACTION * len(x), 5):
            continue
        # On a coarse scale the top level has neighbours that are nearly as full.
        neighbour = x[x < highest].max() if limit == highest else x[x > lowest].min()
        neighbour_count = np.count_nonzero(x == neighbour)
        if count > 5 * neighbour_count and abs(limit) > 0.3 * max(abs(highest), abs(lowest)):
            return [
                Finding(
                    "clipping",
                    "warning",
                    f"the torque of joint {j + 1} stands at its limit {limit:.4g} for "
                    f"{count / len(x):.1%} of the motion: it is clipped there. Record slower or "
                    "with less load, or with a larger range of the sensor",
                    joint=j + 1,
                    value=limit,
                )
            ]
    return []


def _missing_sign_findings(recording: Recording, moving: Bool[Array, " n"]) -> list[Finding]:
    """Finding on torque that is never negative in any joint."""
    signed = recording.signed is None or bool(np.all(recording.signed))
    x = recording.signal[moving]
    if not signed or recording.joints < 3 or not np.all(np.isfinite(x)):
        return []
    size = np.abs(x).max(axis=0)
    folded = x.min(axis=0) < 0.05 * size
    if np.any(x < 0.0) or np.count_nonzero(folded) < 0.5 * recording.joints:
        return []
    return [
        Finding(
            "torque_sign",
            "error",
            "no torque is ever negative: only magnitudes were recorded (sign not checked). Say so "
            "with --torque-signs unknown (or `signed: false` in the column map)",
            remedy=Remedy(("--torque-signs", "unknown")),
        )
    ]


def _levels(x: Float[Array, " n"]) -> int:
    """Number of different values, counted exactly only if they may be few."""
    few = len(np.unique(x[:: max(1, len(x) // 2000)]))
    if few >= _MIN_LEVELS or len(x) >= 200_000:
        return max(few, _MIN_LEVELS)
    return len(np.unique(x))


def _duplicate_row_findings(recording: Recording, moving: Bool[Array, " n"]) -> list[Finding]:
    """Finding on rows of motion and torque that are exact copies of earlier ones."""
    channels = np.concatenate([recording.position, recording.signal], axis=1)
    rows = np.ascontiguousarray(channels[moving])
    changed = np.concatenate([[True], np.any(rows[1:] != rows[:-1], axis=1)])
    rows = rows[changed]
    if len(rows) < 50:
        return []
    # Equal rows have equal hashes; rows are compared exactly only if many hashes agree.
    multipliers = 2 * np.arange(rows.shape[1], dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    row_hashes = np.sort((rows.view(np.uint64) * multipliers).sum(axis=1, dtype=np.uint64))
    if np.count_nonzero(row_hashes[1:] == row_hashes[:-1]) < _REPEATED_FRACTION * len(rows):
        return []
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    repeats = np.setdiff1d(np.arange(len(rows)), first)
    repeats = repeats[_in_order(repeats, first[inverse[repeats]])]
    fraction = float(len(repeats) / len(rows))
    if fraction < _REPEATED_FRACTION:
        return []
    row_numbers = np.flatnonzero(moving)[changed]
    start = _copy_start(
        channels, int(row_numbers[repeats[0]]), int(row_numbers[first[inverse[repeats[0]]]])
    )
    cut_s = float(recording.meta.get("cut_s", [0.0])[0])
    start_time = float(recording.time[start] - recording.time[0]) + cut_s
    end = f"{max(start_time - 0.01, 0.0):.2f}"
    return [
        Finding(
            "repeated_log",
            "error",
            f"{fraction:.0%} of the rows repeat earlier ones number for number, first at "
            f"{start_time:.2f} s: the log was appended to itself. Use it once (--to {end}); twice "
            "the same data would make every uncertainty too small",
            time=float(recording.time[start]),
            value=fraction,
            remedy=Remedy(("--to", end)),
        )
    ]


def _in_order(repeats: Int[Array, " k"], originals: Int[Array, " k"]) -> Bool[Array, " k"]:
    """Repeats whose neighbours repeat the neighbours of their originals, in runs of some length.

    A periodic motion on a coarse encoder comes back to equal rows, but not in the same order.
    """
    follows = (np.diff(repeats) == 1) & (np.diff(originals) == 1)
    in_run = np.zeros(len(repeats), bool)
    for first, end in true_intervals(follows):
        if end - first >= _MIN_REPEATED_RUN:
            in_run[first : end + 1] = True
    return in_run


def _copy_start(rows: Float[Array, "n c"], later: int, earlier: int) -> int:
    """First row of a copy in which row `later` equals row `earlier`."""
    equal = np.all(rows[later - earlier : later] == rows[:earlier], axis=1)[::-1]
    return later - (len(equal) if equal.all() else int(np.argmin(equal)))
