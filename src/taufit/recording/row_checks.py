"""Row checks of a recording; every dropped row is reported in a finding.

Order: cells that are not numbers or too large; time that goes backwards or stands still; rows with
impossible positions. The remaining rows are checked for gaps, joints that do not move, and
implausible units.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding, format_ranges
from taufit.recording.quantity import QUANTITIES, SIGNAL_UNITS
from taufit.recording.recording import Recording, select_rows
from taufit.recording.timing import sampling_timing
from taufit.recording.units import FAST_HZ, SLOW_HZ, unit_findings

# Largest fraction of unusable rows; files with more are rejected.
MAX_BAD_FRACTION = 0.2
# Fragments between impossible steps are dropped if they have fewer rows.
SHORT_FRAGMENT = 10
# A step is impossible above this speed [rad/s or m/s], this length [rad or m] and this multiple of
# the joint's median speed, all three at once, unless neighbouring steps or the recorded velocity
# agree with it.
JUMP_SPEED, JUMP_LENGTH, JUMP_TIMES = 10.0, 0.05, 5.0
# Largest delay of rows that are sorted into place, e.g. from several threads [s].
MAX_LATE_S = 0.5
# Largest number of consecutive repeats of a row that count as stale.
STALE_ROWS = 5

_ESSENTIAL = ("time", "position", "signal")


def check_rows(
    recording: Recording,
    *,
    source: str,
    rows: Int[Array, " n"],
    labels: Mapping[str, Sequence[str]],
    bad_cells: Sequence[tuple[int, int, str]] = (),
    names: Sequence[str] = (),
    cells: Callable[[str, int], Float[Array, " c"]] | None = None,
    payload: Float[Array, " n"] | None = None,
) -> Recording:
    """Drop invalid rows; add findings about them and about the whole recording.

    Args:
        recording: Recording as in the file.
        source: File name, used in messages.
        rows: Number of each row in the file, from 1.
        labels: Column names of each field in the file.
        bad_cells: Unreadable cells (row, column, text).
        names: All column names of the file, for `bad_cells`.
        cells: Function giving the original values of a field in one row, before unit and gear
            conversion.
        payload: Payload column of the file [kg], or None.
    """
    if not len(recording):
        raise RecordingError(f"{source} has no rows.")
    findings: list[Finding] = list(recording.findings)
    recording = _drop_sparse_fields(recording, findings)

    total = len(rows)
    # Without a payload column all masses are unknown.
    masses = np.full(total, np.nan) if payload is None else payload
    is_bad, first_bad_cells = _corrupt_mask(recording, labels, cells)
    is_bad |= np.isin(rows, [row for row, column, _ in bad_cells if column < 0])
    if is_bad.any():
        findings.append(
            _corrupt_rows_finding(source, rows, is_bad, first_bad_cells, bad_cells, names)
        )
        recording, rows, masses = select_rows(recording, ~is_bad), rows[~is_bad], masses[~is_bad]

    keep = _in_order(recording.time, rows, source, findings)
    recording, rows, masses = select_rows(recording, keep), rows[keep], masses[keep]
    recording = _unwrap_angles(recording, findings)
    keep = _reachable_mask(recording, rows, source, findings)
    recording, rows, masses = select_rows(recording, keep), rows[keep], masses[keep]
    if len(recording) < total * (1 - MAX_BAD_FRACTION):
        raise RecordingError(
            f"{source}: only {len(recording)} of {total} rows can be used; "
            + "; ".join(str(f) for f in findings if f.severity != "info")
            + ". A file this damaged is not read."
        )
    if len(recording) < 2:
        raise RecordingError(f"{source} has {len(recording)} usable row; a run needs at least two.")

    mass = recording.payload if recording.payload is not None else _payload_mass(masses, findings)
    findings += _timing_findings(recording, rows)
    findings += check_channels(recording)
    sampling = sampling_timing(recording.time)
    meta = {
        **recording.meta,
        "rows": total,
        "rate_hz": sampling.mean_hz,
        "nominal_rate_hz": sampling.nominal_hz,
        "lost_samples": sampling.lost_samples,
    }
    return replace(recording, payload=mass, meta=meta, findings=tuple(findings))


def _corrupt_rows_finding(
    source: str,
    rows: Int[Array, " n"],
    is_bad: Bool[Array, " n"],
    first_bad_cells: Mapping[int, tuple[str, float]],
    bad_cells: Sequence[tuple[int, int, str]],
    names: Sequence[str],
) -> Finding:
    """Finding about dropped rows with the first bad cell of each; raises if there are too many."""
    texts = {row: (column, text) for row, column, text in reversed(list(bad_cells))}
    bad_rows = []
    for index in np.flatnonzero(is_bad):
        row = int(rows[index])
        if row in texts:
            column, text = texts[row]
            label = "" if column < 0 else f"column {names[column]} holds {text[:40]!r}"
            bad_rows.append((row, label or text))
        else:
            label, value = first_bad_cells[int(index)]
            bad_rows.append((row, f"column {label} holds {value:g}"))
    row_text = "; ".join(f"row {row}: {text}" for row, text in bad_rows[:10])
    row_text += f"; and {len(bad_rows) - 10} more" if len(bad_rows) > 10 else ""
    if is_bad.mean() > MAX_BAD_FRACTION:
        raise RecordingError(
            f"{source}: {len(bad_rows)} of {len(rows)} rows hold no usable numbers ({row_text}). "
            "Check the column map's columns, units and delimiter; a file this damaged is not read."
        )
    return Finding(
        "corrupt_rows",
        "warning",
        f"{len(bad_rows)} of {len(rows)} rows hold cells that are not possible numbers "
        f"({row_text})",
        "rows dropped",
        rows=tuple(row for row, _ in bad_rows),
        column=None,
        value=bad_rows[0][1],
    )


def _payload_mass(masses: Float[Array, " n"], findings: list[Finding]) -> float | None:
    """Payload mass from a column, if constant."""
    valid = masses[np.isfinite(masses) & (masses >= 0)]
    if len(valid) and np.ptp(valid) == 0:
        return float(valid[0])
    if len(valid):
        text = f"the payload column changes between {valid.min():g} and {valid.max():g} kg"
        action = "the payload is left open; split the file or give one with --payload"
        findings.append(Finding("payload_changes", "warning", text, action))
    return None


def _drop_sparse_fields(recording: Recording, findings: list[Finding]) -> Recording:
    """Drop optional fields that are mostly missing."""
    for name, values in recording.quantities().items():
        if name in _ESSENTIAL:
            continue
        missing_fraction = (~np.isfinite(values)).any(1).mean()
        if missing_fraction > MAX_BAD_FRACTION:
            findings.append(
                Finding(
                    "missing_values",
                    "warning",
                    f"{name.replace('_', ' ')} is missing in {missing_fraction:.0%} of the rows",
                    "read without it",
                )
            )
            removed: dict[str, Any] = {name: None}
            recording = replace(recording, **removed)
    return recording


def _corrupt_mask(
    recording: Recording,
    labels: Mapping[str, Sequence[str]],
    cells: Callable[[str, int], Float[Array, " c"]] | None,
) -> tuple[Bool[Array, " n"], dict[int, tuple[str, float]]]:
    """Rows with a cell that is not finite or too large, and the first such cell."""
    unit = next(name for name, unit in SIGNAL_UNITS.items() if unit == recording.signal_unit)
    is_bad = np.zeros(len(recording), bool)
    first_bad_cells: dict[int, tuple[str, float]] = {}
    for name, values in {"time": recording.time[:, None], **recording.quantities()}.items():
        limit = QUANTITIES[unit if name == "signal" else name].max_magnitude
        with np.errstate(invalid="ignore"):
            is_wrong = ~(np.abs(values) <= limit)
        is_bad |= is_wrong.any(1)
        for index in np.flatnonzero(is_wrong.any(1)):
            if int(index) not in first_bad_cells:
                # Coupling spreads nan over all joints, so the original cell is reported.
                source = values[index] if cells is None else cells(name, int(index))
                empty = ~np.isfinite(source)
                column = int(np.argmax(empty if empty.any() else is_wrong[index]))
                label = labels[name][column] if name in labels else f"{name}_{column + 1}"
                first_bad_cells[int(index)] = (label, float(source[column]))
    return is_bad, first_bad_cells


def _in_order(
    time: Float[Array, " n"], rows: Int[Array, " n"], source: str, findings: list[Finding]
) -> Int[Array, " k"]:
    """Indices that put time into strictly increasing order; raises if that is ambiguous."""
    order = np.arange(len(time))
    if (np.diff(time) < 0).any():
        increasing = _longest_increasing(time)
        unordered = np.setdiff1d(order, increasing)
        first_backward = int(np.flatnonzero(np.diff(time) < 0)[0])
        if len(unordered) > max(1, 0.01 * len(time)):
            raise RecordingError(
                f"{source}: time goes back from {time[first_backward]:g} s to "
                f"{time[first_backward + 1]:g} s at row "
                f"{rows[first_backward + 1]}, and {len(unordered)} rows are out of order. If the "
                "file holds "
                "several runs, name the column that tells them apart as `run` in the column map, "
                "or split it."
            )
        delays = np.abs(time[unordered] - time[np.clip(unordered - 1, 0, None)])
        row_numbers = tuple(int(row) for row in rows[unordered])
        if (delays <= MAX_LATE_S).all():
            order = np.argsort(time, kind="stable")
            action = "rows sorted by time"
        else:
            order = increasing
            action = "rows dropped"
        findings.append(
            Finding(
                "time_order",
                "warning",
                f"{len(unordered)} rows are out of order in time (row "
                f"{format_ranges(row_numbers)})",
                action,
                rows=row_numbers,
                time=float(time[unordered[0]]),
            )
        )
    is_repeated = np.diff(time[order]) == 0
    if is_repeated.any():
        duplicates = order[1:][is_repeated]
        row_numbers = tuple(int(row) for row in rows[duplicates])
        if is_repeated.mean() > 0.5 and len(order) > 2:
            raise RecordingError(
                f"{source}: {len(row_numbers)} of {len(time)} rows repeat the time stamp before "
                "them. "
                "Is this the right time column?"
            )
        findings.append(
            Finding(
                "duplicates",
                "warning" if is_repeated.mean() > 0.01 else "info",
                f"{len(row_numbers)} rows repeat the time stamp before them (row "
                f"{format_ranges(row_numbers)})",
                "rows dropped",
                rows=row_numbers,
            )
        )
        order = np.concatenate([order[:1], order[1:][~is_repeated]])
    return order


def _longest_increasing(time: Float[Array, " n"]) -> Int[Array, " k"]:
    """Indices of a longest subsequence in which time does not decrease (patience sorting)."""
    pile_tops: list[float] = []
    pile_ends: list[int] = []
    previous = np.full(len(time), -1)
    for index, value in enumerate(time.tolist()):
        pile = bisect_right(pile_tops, value)
        previous[index] = pile_ends[pile - 1] if pile else -1
        if pile == len(pile_tops):
            pile_tops.append(value)
            pile_ends.append(index)
        else:
            pile_tops[pile], pile_ends[pile] = value, index
    subsequence = [pile_ends[-1]]
    while previous[subsequence[-1]] >= 0:
        subsequence.append(int(previous[subsequence[-1]]))
    return np.array(subsequence[::-1])


def _unwrap_angles(recording: Recording, findings: list[Finding]) -> Recording:
    """Unwrap angles that were logged modulo one turn."""
    if len(recording) < 3:
        return recording
    steps = np.diff(recording.position, axis=0)
    turns = np.round(steps / (2 * np.pi))
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.abs(steps) / np.diff(recording.time)[:, None]
        remainder_speed = np.abs(steps - 2 * np.pi * turns) / np.diff(recording.time)[:, None]
    median_speed = np.median(speed, axis=0)
    is_wrapped = (np.abs(turns) == 1) & (speed > JUMP_SPEED) & (speed > JUMP_TIMES * median_speed)
    # The step without the turn must be plausible.
    is_wrapped &= remainder_speed < np.maximum(JUMP_TIMES * median_speed, 1.0)
    if not is_wrapped.any():
        return recording
    shift = np.vstack([np.zeros(recording.joints), np.cumsum(turns * is_wrapped, axis=0)])
    for joint in np.flatnonzero(is_wrapped.any(0)):
        count = int(is_wrapped[:, joint].sum())
        findings.append(
            Finding(
                "wrapped",
                "info",
                f"joint {joint + 1} jumps by a whole turn {count} times",
                "made continuous by adding whole turns",
                joint=int(joint) + 1,
                time=float(recording.time[1:][is_wrapped[:, joint]][0]),
            )
        )
    return replace(recording, position=recording.position - 2 * np.pi * shift)


def _reachable_mask(
    recording: Recording, rows: Int[Array, " n"], source: str, findings: list[Finding]
) -> Bool[Array, " n"]:
    """Mask of rows with plausible positions, compared with their neighbours.

    Impossible steps between neighbouring rows split the run into fragments; short ones are dropped.
    """
    n = len(recording)
    keep = np.ones(n, bool)
    cuts = _impossible_steps(recording) + 1
    if not len(cuts):
        return keep
    bounds = np.concatenate([[0], cuts, [n]])
    is_short = np.diff(bounds) < min(SHORT_FRAGMENT, max(2, n // 10))
    if is_short.all():
        raise RecordingError(
            f"{source}: the joints jump {len(cuts)} times in {n} rows, faster than any arm moves. "
            "Check position columns and units in the column map."
        )
    for first, last, drop in zip(bounds[:-1], bounds[1:], is_short, strict=True):
        keep[first:last] = not drop
    if not keep.all():
        row_numbers = tuple(int(row) for row in rows[~keep])
        findings.append(
            Finding(
                "impossible_rows",
                "warning",
                f"{len(row_numbers)} more rows lie where the arm cannot have been between the rows "
                f"around them (row {format_ranges(row_numbers)})",
                "rows dropped",
                rows=row_numbers,
            )
        )
    # Steps between long segments are reported, not repaired.
    remaining, remaining_rows = select_rows(recording, keep), rows[keep]
    steps = _impossible_steps(remaining)
    for index in steps[:20]:
        travel = np.abs(remaining.position[index + 1] - remaining.position[index])
        joint = int(np.argmax(travel))
        duration = remaining.time[index + 1] - remaining.time[index]
        findings.append(
            Finding(
                "jump",
                "error",
                f"joint {joint + 1} jumps by {travel[joint]:.3g} within {duration:.3g} s at row "
                f"{remaining_rows[index + 1]} ({len(steps)} such steps)",
                "kept; a fit should not cross it",
                joint=joint + 1,
                rows=(int(remaining_rows[index + 1]),),
                time=float(remaining.time[index + 1]),
            )
        )
    return keep


def _impossible_steps(recording: Recording) -> Int[Array, " s"]:
    """Index of the row before each impossible step."""
    if len(recording) < 3:
        return np.zeros(0, int)
    step = np.diff(recording.time)
    travel = np.abs(np.diff(recording.position, axis=0))
    speed = travel / step[:, None]
    median_speed = np.median(speed, axis=0)
    is_jump = (speed > JUMP_SPEED) & (travel > JUMP_LENGTH) & (speed > JUMP_TIMES * median_speed)
    for index, joint in zip(*np.nonzero(is_jump), strict=True):
        # A real motion continues over several steps and agrees with the recorded velocity.
        first = max(0, index - 3)
        rates = np.diff(recording.position[first : index + 5, joint]) / step[first : index + 4]
        step_rate = rates[index - first]
        expected_rate = np.median(rates)
        if recording.velocity is not None:
            expected_rate = max(
                expected_rate, recording.velocity[index : index + 2, joint].mean(), key=abs
            )
        is_jump[index, joint] = abs(step_rate - expected_rate) > 0.5 * abs(step_rate)
    # Time steps longer than the remaining run split it too.
    max_step = step.max()
    is_time_leap = step > max(10.0, 1.5 * (step.sum() - max_step), 100 * float(np.median(step)))
    return np.flatnonzero(is_jump.any(1) | is_time_leap)


def _timing_findings(recording: Recording, rows: Int[Array, " n"]) -> list[Finding]:
    sampling = sampling_timing(recording.time)
    if not SLOW_HZ <= sampling.nominal_hz <= FAST_HZ:
        return []
    if not len(sampling.gaps):
        return []
    longest_gap = int(sampling.gaps[np.argmax(np.diff(recording.time)[sampling.gaps])])
    missing_fraction = sampling.lost_samples / (sampling.lost_samples + len(recording))
    return [
        Finding(
            "gaps",
            "error" if missing_fraction > 0.5 else "warning" if missing_fraction > 0.01 else "info",
            f"{len(sampling.gaps)} gaps longer than {1.5e3 / sampling.nominal_hz:.3g} ms, about "
            f"{sampling.lost_samples} samples ({missing_fraction:.1%}) missing; the longest is "
            f"{sampling.max_step * 1e3:.3g} "
            f"ms at t = {recording.time[longest_gap]:.6g} s",
            "time stamps are kept as they are",
            rows=tuple(int(row) for row in rows[sampling.gaps + 1][:1000]),
            time=float(recording.time[longest_gap]),
            value=sampling.lost_samples,
        )
    ]


def check_channels(recording: Recording) -> list[Finding]:
    """Findings about joints at standstill, stuck channels and implausible units."""
    n = len(recording)
    is_constant = np.ptp(recording.position, axis=0) == 0
    findings = [
        Finding(
            "constant_position",
            "info",
            f"joint {joint + 1} stands at {recording.position[0, joint]:g} throughout",
            joint=int(joint) + 1,
        )
        for joint in np.flatnonzero(is_constant)
    ]
    if recording.torque_source == "none":
        return findings + unit_findings(recording)
    is_stuck = np.ptp(recording.signal, axis=0) == 0
    findings.extend(
        Finding(
            "constant_signal",
            "warning",
            f"the torque channel of joint {joint + 1} is {recording.signal[0, joint]:g} "
            "throughout: stuck, or not recorded",
            joint=int(joint) + 1,
        )
        for joint in np.flatnonzero(is_stuck)
    )
    findings += unit_findings(recording)
    stale_rows = _stale_row_count(recording)
    if stale_rows > 0.002 * n:
        findings.append(
            Finding(
                "stale_rows",
                "warning",
                f"{100 * stale_rows / n:.2g} % of the rows repeat all numbers of the row before "
                "under a new time stamp, while the arm moves: the logger ran ahead of the robot",
                "kept; use the robot's own time stamps where they exist",
                value=stale_rows,
            )
        )
    return findings


def _stale_row_count(recording: Recording) -> int:
    """Number of rows that repeat the row before them while the robot moves."""
    is_moving = np.any(np.diff(recording.position, axis=0) != 0, axis=1)
    is_repeated = np.logical_not(is_moving | np.diff(recording.signal, axis=0).any(1))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_repeated, [False]]).astype(int)))
    count = 0
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        is_inside = first > 0 and end < len(is_repeated)
        if is_inside and end - first <= STALE_ROWS and is_moving[first - 1] and is_moving[end]:
            count += int(end - first)
    return count
