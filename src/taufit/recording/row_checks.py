"""Which rows of a recording can be believed. Every row left out is named in a finding.

In this order: cells that are not numbers or beyond any arm, time that goes backwards or stands
still, rows the arm cannot have been in. Then what is kept is looked over for gaps, joints that
do not move, and units that cannot be right.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding, ranges
from taufit.recording.quantity import QUANTITIES, SIGNAL_UNITS
from taufit.recording.recording import Recording
from taufit.recording.timing import timing
from taufit.recording.units import FAST_HZ, SLOW_HZ, unit_findings

# A file with a larger share of unusable rows is refused: what is left is not the run.
MOST_BAD = 0.2
# A fragment between two impossible steps is left out when it is shorter than this many rows.
SHORT_FRAGMENT = 10
# A step is impossible above this speed [rad/s or m/s], this length [rad or m] and this many times
# the joint's own usual (median) speed, all three at once, unless the steps around it or the
# recorded velocity bear it out.
JUMP_SPEED, JUMP_LENGTH, JUMP_TIMES = 10.0, 0.05, 5.0
# Sorting is trusted for rows that came this little too late [s], as from several threads.
LATE = 0.5
# A logger that repeats its last row for want of a new one does so for at most this many rows.
STALE_ROWS = 5

_ESSENTIAL = ("time", "position", "signal")


def rows_of(recording: Recording, keep: Array, **changes: Any) -> Recording:
    """Copy with some of the rows, in the given order."""
    chosen = recording.map(lambda values: values[keep], time=recording.time[keep])
    return replace(chosen, **changes)


def screen(
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
    """The rows that can be believed, and findings about the others and about the whole.

    Args:
        recording: As the file has it.
        source: The file, for messages.
        rows: Number of each row in the file, from 1.
        labels: What the file calls the columns of each field.
        bad_cells: (row, column, text) the reader could not read.
        names: What the file calls all its columns, for `bad_cells`.
        cells: The numbers of a field in one row as the file has them, before units and gears.
        payload: The file's payload column [kg], or None.
    """
    if not len(recording):
        raise RecordingError(f"{source} has no rows.")
    findings: list[Finding] = list(recording.findings)
    recording = _without_hollow_fields(recording, findings)

    total = len(rows)
    # The payload column, where there is none, is one of nothing known.
    masses = np.full(total, np.nan) if payload is None else payload
    bad, samples = _corrupt(recording, labels, cells)
    bad |= np.isin(rows, [row for row, column, _ in bad_cells if column < 0])
    if bad.any():
        findings.append(_corrupt_rows(source, rows, bad, samples, bad_cells, names))
        recording, rows, masses = rows_of(recording, ~bad), rows[~bad], masses[~bad]

    keep = _in_order(recording.time, rows, source, findings)
    recording, rows, masses = rows_of(recording, keep), rows[keep], masses[keep]
    recording = _unwrapped(recording, findings)
    keep = _reachable(recording, rows, source, findings)
    recording, rows, masses = rows_of(recording, keep), rows[keep], masses[keep]
    if len(recording) < total * (1 - MOST_BAD):
        raise RecordingError(
            f"{source}: only {len(recording)} of {total} rows can be used; "
            + "; ".join(str(f) for f in findings if f.severity != "info")
            + ". A file this damaged is not read."
        )
    if len(recording) < 2:
        raise RecordingError(f"{source} has {len(recording)} usable row; a run needs at least two.")

    mass = recording.payload if recording.payload is not None else _mass(masses, findings)
    findings += _timing_findings(recording, rows)
    findings += check_channels(recording)
    clock = timing(recording.time)
    meta = {
        **recording.meta,
        "rows": total,
        "rate_hz": clock.mean_hz,
        "nominal_rate_hz": clock.nominal_hz,
        "lost_samples": clock.lost,
    }
    return replace(recording, payload=mass, meta=meta, findings=tuple(findings))


def _corrupt_rows(
    source: str,
    rows: Int[Array, " n"],
    bad: Bool[Array, " n"],
    samples: Mapping[int, tuple[str, float]],
    bad_cells: Sequence[tuple[int, int, str]],
    names: Sequence[str],
) -> Finding:
    """Rows that are dropped, with the first cell of each; too many of them are refused."""
    texts = {row: (column, text) for row, column, text in reversed(list(bad_cells))}
    found = []
    for index in np.flatnonzero(bad):
        row = int(rows[index])
        if row in texts:
            column, text = texts[row]
            label = "" if column < 0 else f"column {names[column]} holds {text[:40]!r}"
            found.append((row, label or text))
        else:
            label, value = samples[int(index)]
            found.append((row, f"column {label} holds {value:g}"))
    listed = "; ".join(f"row {row}: {text}" for row, text in found[:10])
    listed += f"; and {len(found) - 10} more" if len(found) > 10 else ""
    if bad.mean() > MOST_BAD:
        raise RecordingError(
            f"{source}: {len(found)} of {len(rows)} rows hold no usable numbers ({listed}). "
            "Check the column map's columns, units and delimiter; a file this damaged is not read."
        )
    return Finding(
        "corrupt_rows",
        "warning",
        f"{len(found)} of {len(rows)} rows hold cells that are not possible numbers ({listed})",
        "rows dropped",
        rows=tuple(row for row, _ in found),
        column=None,
        value=found[0][1],
    )


def _mass(masses: Float[Array, " n"], findings: list[Finding]) -> float | None:
    """The payload that a column gives, where it is the same in all rows."""
    sound = masses[np.isfinite(masses) & (masses >= 0)]
    if len(sound) and np.ptp(sound) == 0:
        return float(sound[0])
    if len(sound):
        text = f"the payload column changes between {sound.min():g} and {sound.max():g} kg"
        done = "the payload is left open; split the file or give one with --payload"
        findings.append(Finding("payload_changes", "warning", text, done))
    return None


def _without_hollow_fields(recording: Recording, findings: list[Finding]) -> Recording:
    """Fields the run can do without are left out where they are mostly holes."""
    for name, values in recording.quantities().items():
        if name in _ESSENTIAL:
            continue
        share = (~np.isfinite(values)).any(1).mean()
        if share > MOST_BAD:
            findings.append(
                Finding(
                    "missing_values",
                    "warning",
                    f"{name.replace('_', ' ')} is missing in {share:.0%} of the rows",
                    "read without it",
                )
            )
            gone: dict[str, Any] = {name: None}
            recording = replace(recording, **gone)
    return recording


def _corrupt(
    recording: Recording,
    labels: Mapping[str, Sequence[str]],
    cells: Callable[[str, int], Float[Array, " c"]] | None,
) -> tuple[Bool[Array, " n"], dict[int, tuple[str, float]]]:
    """Rows with a cell that is not finite or larger than any arm's, and the first such cell."""
    unit = next(name for name, unit in SIGNAL_UNITS.items() if unit == recording.signal_unit)
    bad = np.zeros(len(recording), bool)
    where: dict[int, tuple[str, float]] = {}
    for name, values in {"time": recording.time[:, None], **recording.quantities()}.items():
        largest = QUANTITIES[unit if name == "signal" else name].largest
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(values) <= largest)
        bad |= wrong.any(1)
        for index in np.flatnonzero(wrong.any(1)):
            if int(index) not in where:
                # Coupled motors spread what is not finite over all joints: the cell itself counts.
                source = values[index] if cells is None else cells(name, int(index))
                empty = ~np.isfinite(source)
                column = int(np.argmax(empty if empty.any() else wrong[index]))
                label = labels[name][column] if name in labels else f"{name}_{column + 1}"
                where[int(index)] = (label, float(source[column]))
    return bad, where


def _in_order(
    time: Float[Array, " n"], rows: Int[Array, " n"], source: str, findings: list[Finding]
) -> Int[Array, " k"]:
    """Indices that put time into strictly increasing order, or an error where that is a guess."""
    order = np.arange(len(time))
    if (np.diff(time) < 0).any():
        chain = _longest_rise(time)
        stray = np.setdiff1d(order, chain)
        back = int(np.flatnonzero(np.diff(time) < 0)[0])
        if len(stray) > max(1, 0.01 * len(time)):
            raise RecordingError(
                f"{source}: time goes back from {time[back]:g} s to {time[back + 1]:g} s at row "
                f"{rows[back + 1]}, and {len(stray)} rows are out of order. If the file holds "
                "several runs, name the column that tells them apart as `run` in the column map, "
                "or split it."
            )
        late = np.abs(time[stray] - time[np.clip(stray - 1, 0, None)])
        listed = tuple(int(row) for row in rows[stray])
        if (late <= LATE).all():
            order = np.argsort(time, kind="stable")
            action = "rows sorted by time"
        else:
            order = chain
            action = "rows dropped"
        findings.append(
            Finding(
                "time_order",
                "warning",
                f"{len(stray)} rows are out of order in time (row {ranges(listed)})",
                action,
                rows=listed,
                time=float(time[stray[0]]),
            )
        )
    same = np.diff(time[order]) == 0
    if same.any():
        repeated = order[1:][same]
        listed = tuple(int(row) for row in rows[repeated])
        if same.mean() > 0.5 and len(order) > 2:
            raise RecordingError(
                f"{source}: {len(listed)} of {len(time)} rows repeat the time stamp before them. "
                "Is this the right time column?"
            )
        findings.append(
            Finding(
                "duplicates",
                "warning" if same.mean() > 0.01 else "info",
                f"{len(listed)} rows repeat the time stamp before them (row {ranges(listed)})",
                "rows dropped",
                rows=listed,
            )
        )
        order = np.concatenate([order[:1], order[1:][~same]])
    return order


def _longest_rise(time: Float[Array, " n"]) -> Int[Array, " k"]:
    """Indices of a longest subsequence in which time never falls (patience sorting)."""
    tops: list[float] = []
    ends: list[int] = []
    before = np.full(len(time), -1)
    for index, value in enumerate(time.tolist()):
        pile = bisect_right(tops, value)
        before[index] = ends[pile - 1] if pile else -1
        if pile == len(tops):
            tops.append(value)
            ends.append(index)
        else:
            tops[pile], ends[pile] = value, index
    chain = [ends[-1]]
    while before[chain[-1]] >= 0:
        chain.append(int(before[chain[-1]]))
    return np.array(chain[::-1])


def _unwrapped(recording: Recording, findings: list[Finding]) -> Recording:
    """Angles that were logged modulo a turn, made continuous: whole turns change no torque."""
    if len(recording) < 3:
        return recording
    steps = np.diff(recording.position, axis=0)
    turns = np.round(steps / (2 * np.pi))
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.abs(steps) / np.diff(recording.time)[:, None]
        rest = np.abs(steps - 2 * np.pi * turns) / np.diff(recording.time)[:, None]
    usual = np.median(speed, axis=0)
    wrapped = (np.abs(turns) == 1) & (speed > JUMP_SPEED) & (speed > JUMP_TIMES * usual)
    # What is left of the step must be a step like the others.
    wrapped &= rest < np.maximum(JUMP_TIMES * usual, 1.0)
    if not wrapped.any():
        return recording
    shift = np.vstack([np.zeros(recording.joints), np.cumsum(turns * wrapped, axis=0)])
    for joint in np.flatnonzero(wrapped.any(0)):
        count = int(wrapped[:, joint].sum())
        findings.append(
            Finding(
                "wrapped",
                "info",
                f"joint {joint + 1} jumps by a whole turn {count} times",
                "made continuous by adding whole turns",
                joint=int(joint) + 1,
                time=float(recording.time[1:][wrapped[:, joint]][0]),
            )
        )
    return replace(recording, position=recording.position - 2 * np.pi * shift)


def _reachable(
    recording: Recording, rows: Int[Array, " n"], source: str, findings: list[Finding]
) -> Bool[Array, " n"]:
    """Rows the arm can have been in, seen from the rows around them.

    Between neighbouring rows the joints move at most at some speed; where a step is far beyond
    it, one of the two rows is wrong. Such steps cut the run into fragments, and short ones go.
    """
    n = len(recording)
    keep = np.ones(n, bool)
    cuts = _impossible_steps(recording) + 1
    if not len(cuts):
        return keep
    bounds = np.concatenate([[0], cuts, [n]])
    short = np.diff(bounds) < min(SHORT_FRAGMENT, max(2, n // 10))
    if short.all():
        raise RecordingError(
            f"{source}: the joints jump {len(cuts)} times in {n} rows, faster than any arm moves. "
            "Check position columns and units in the column map."
        )
    for first, last, lose in zip(bounds[:-1], bounds[1:], short, strict=True):
        keep[first:last] = not lose
    if not keep.all():
        listed = tuple(int(row) for row in rows[~keep])
        findings.append(
            Finding(
                "impossible_rows",
                "warning",
                f"{len(listed)} more rows lie where the arm cannot have been between the rows "
                f"around them (row {ranges(listed)})",
                "rows dropped",
                rows=listed,
            )
        )
    # Steps between long segments are reported, not repaired.
    rest, rest_rows = rows_of(recording, keep), rows[keep]
    steps = _impossible_steps(rest)
    for index in steps[:20]:
        move = np.abs(rest.position[index + 1] - rest.position[index])
        joint = int(np.argmax(move))
        wait = rest.time[index + 1] - rest.time[index]
        findings.append(
            Finding(
                "jump",
                "error",
                f"joint {joint + 1} jumps by {move[joint]:.3g} within {wait:.3g} s at row "
                f"{rest_rows[index + 1]} ({len(steps)} such steps)",
                "kept; a fit should not cross it",
                joint=joint + 1,
                rows=(int(rest_rows[index + 1]),),
                time=float(rest.time[index + 1]),
            )
        )
    return keep


def _impossible_steps(recording: Recording) -> Int[Array, " s"]:
    """Index of the row before each step no arm takes."""
    if len(recording) < 3:
        return np.zeros(0, int)
    step = np.diff(recording.time)
    move = np.abs(np.diff(recording.position, axis=0))
    speed = move / step[:, None]
    usual = np.median(speed, axis=0)
    jump = (speed > JUMP_SPEED) & (move > JUMP_LENGTH) & (speed > JUMP_TIMES * usual)
    for index, joint in zip(*np.nonzero(jump), strict=True):
        # A real motion, however fast and rare, goes on from step to step, and the recorded
        # velocity knows of it.
        first = max(0, index - 3)
        rates = np.diff(recording.position[first : index + 5, joint]) / step[first : index + 4]
        here = rates[index - first]
        known = np.median(rates)
        if recording.velocity is not None:
            known = max(known, recording.velocity[index : index + 2, joint].mean(), key=abs)
        jump[index, joint] = abs(here - known) > 0.5 * abs(here)
    # The clock may be wrong as well: a wait longer than all the rest of the run cuts it too.
    longest = step.max()
    leap = step > max(10.0, 1.5 * (step.sum() - longest), 100 * float(np.median(step)))
    return np.flatnonzero(jump.any(1) | leap)


def _timing_findings(recording: Recording, rows: Int[Array, " n"]) -> list[Finding]:
    clock = timing(recording.time)
    if not SLOW_HZ <= clock.nominal_hz <= FAST_HZ:
        return []
    if not len(clock.gaps):
        return []
    longest = int(clock.gaps[np.argmax(np.diff(recording.time)[clock.gaps])])
    share = clock.lost / (clock.lost + len(recording))
    return [
        Finding(
            "gaps",
            "error" if share > 0.5 else "warning" if share > 0.01 else "info",
            f"{len(clock.gaps)} gaps longer than {1.5e3 / clock.nominal_hz:.3g} ms, about "
            f"{clock.lost} samples ({share:.1%}) missing; the longest is {clock.longest * 1e3:.3g} "
            f"ms at t = {recording.time[longest]:.6g} s",
            "time stamps are kept as they are",
            rows=tuple(int(row) for row in rows[clock.gaps + 1][:1000]),
            time=float(recording.time[longest]),
            value=clock.lost,
        )
    ]


def check_channels(recording: Recording) -> list[Finding]:
    """Joints that stand still, channels that are stuck, and units that cannot be right."""
    n = len(recording)
    still = np.ptp(recording.position, axis=0) == 0
    findings = [
        Finding(
            "constant_position",
            "info",
            f"joint {joint + 1} stands at {recording.position[0, joint]:g} throughout",
            joint=int(joint) + 1,
        )
        for joint in np.flatnonzero(still)
    ]
    stuck = np.ptp(recording.signal, axis=0) == 0
    findings.extend(
        Finding(
            "constant_signal",
            "warning",
            f"the torque channel of joint {joint + 1} is {recording.signal[0, joint]:g} "
            "throughout: stuck, or not recorded",
            joint=int(joint) + 1,
        )
        for joint in np.flatnonzero(stuck)
    )
    findings += unit_findings(recording)
    stale = _stale(recording)
    if stale > 0.002 * n:
        findings.append(
            Finding(
                "stale_rows",
                "warning",
                f"{stale} rows repeat all numbers of the row before under a new time stamp, while "
                "the arm moves: the logger ran ahead of the robot",
                "kept; use the robot's own time stamps where they exist",
                value=stale,
            )
        )
    return findings


def _stale(recording: Recording) -> int:
    """Rows that repeat the row before them, between rows in which the arm moves."""
    move = np.any(np.diff(recording.position, axis=0) != 0, axis=1)
    same = np.logical_not(move | np.diff(recording.signal, axis=0).any(1))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
    count = 0
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        inside = first > 0 and end < len(same)
        if inside and end - first <= STALE_ROWS and move[first - 1] and move[end]:
            count += int(end - first)
    return count
