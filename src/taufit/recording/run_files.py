"""Runs in several files, such as one file per quantity, joined by time stamps or by rows.

The column map names the files relative to a common folder; `*` stands for the part of the names
that changes from run to run. A run is given by its position file, the others are its companions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.recording.columns import ColumnEntry, ColumnMap, Key, is_pattern, locate_columns
from taufit.recording.finding import Finding
from taufit.recording.table import Table

# Smallest fraction of the shorter file that the clocks of two files must have in common.
_MIN_OVERLAP = 0.5
# Gaps in a companion longer than this many periods are not bridged.
_MAX_GAP_PERIODS = 3.0


class Origin(NamedTuple):
    """File and column (name, or number from 1) of a column of a joined table."""

    file: str
    column: Key


def run_paths(path: Path, column_map: ColumnMap) -> dict[str, Path]:
    """Path of every file of a run, by its name in the map, for the position file `path`."""
    names = column_map.file_names
    root, run = _match_name(path, names[0]) or (None, "")
    if root is None:
        owner = next((name for name in names[1:] if _match_name(path, name)), None)
        if owner is not None:
            raise RecordingError(
                f"{path} is part of the run of {names[0]} ({column_map.source}): give that file."
            )
        raise RecordingError(
            f"{path}: {column_map.source} describes a run in {len(names)} files, the first named "
            f"{names[0]}. Give a file of that name, or write * in the map's file names for the "
            "part that changes from run to run."
        )
    return {name: root / name.replace("*", run) for name in names}


def companion_paths(path: Path, column_map: ColumnMap) -> tuple[Path, ...]:
    """Further files of the run whose position file is `path`."""
    return tuple(run_paths(path, column_map).values())[1:]


def without_companions(paths: Sequence[Path], column_map: ColumnMap) -> list[Path]:
    """Position files among `paths`: companions belong to the run of one of them."""
    companions = {
        companion.resolve()
        for path in paths
        if _match_name(path, column_map.file_names[0])
        for companion in companion_paths(path, column_map)
    }
    return [path for path in paths if path.resolve() not in companions]


def _match_name(path: Path, name: str) -> tuple[Path, str] | None:
    """Common folder and text for `*`, if a path ends with a file name of a map."""
    parts = PurePosixPath(name).parts
    if len(path.parts) < len(parts):
        return None
    pattern = re.escape(PurePosixPath(name).as_posix()).replace(r"\*", "(.*)")
    match = re.fullmatch(pattern, "/".join(path.parts[-len(parts) :]))
    return None if match is None else (path.parents[len(parts) - 1], "".join(match.groups()))


def read_run(
    path: Path, column_map: ColumnMap, read: Callable[[Path], Table]
) -> tuple[Table, ColumnMap]:
    """Table of all files of a run, and the map of its columns.

    Args:
        path: Position file of the run.
        column_map: Map that names files.
        read: Function that reads the table of one file.
    """
    tables: dict[str, Table] = {}
    for name, file in run_paths(path, column_map).items():
        if not file.exists():
            raise RecordingError(
                f"{path}: there is no file {file}, which {column_map.source} names for this run."
            )
        tables[name] = read(file)
    columns = {entry.quantity: _locate(entry, tables, column_map) for entry in column_map.columns}
    clock = columns.get("time") or []
    table = join_tables(tables, dict(clock) if len(clock) == len(tables) else {})
    first = dict(zip(tables, _starts(tables), strict=True))
    entries = []
    for entry in column_map.columns:
        cells = columns[entry.quantity]
        if entry.quantity == "time":
            main = next(iter(tables))
            cells = ([cell for cell in cells if cell[0] == main] or cells)[:1]
        # An optional entry that the files lack points beyond the last column.
        keys = tuple(first[file] + index + 1 for file, index in cells) or (len(table.names) + 1,)
        entries.append(replace(entry, keys=keys, files=()))
    return table, replace(column_map, columns=tuple(entries))


def _starts(tables: Mapping[str, Table]) -> list[int]:
    """Index of the first column of every table in the joined one."""
    widths = [len(table.names) for table in tables.values()]
    return [sum(widths[:k]) for k in range(len(widths))]


def _locate(
    entry: ColumnEntry, tables: Mapping[str, Table], column_map: ColumnMap
) -> list[tuple[str, int]]:
    """File and column index of an entry's columns; empty if an optional entry is absent."""
    files = entry.files or column_map.file_names[:1]
    if not entry.keys:
        used = {
            (file, key)
            for other in column_map.columns
            if other is not entry
            for file, key in _file_keys(other, column_map)
        }
        return [
            (file, index)
            for file in files
            for index, name in enumerate(tables[file].names)
            if (file, name) not in used and (file, index + 1) not in used
        ]
    located = []
    for file, keys in keys_by_file(entry, files):
        source = tables[file].source
        indices = locate_columns(replace(entry, keys=keys), tables[file].names, source)
        if indices is None:
            return []
        located += [(file, index) for index in indices]
    return located


def keys_by_file(entry: ColumnEntry, files: tuple[str, ...]) -> list[tuple[str, tuple[Key, ...]]]:
    """Keys of an entry in each of its files."""
    if len(files) == 1:
        return [(files[0], entry.keys)]
    keys = entry.keys * len(files) if len(entry.keys) == 1 else entry.keys
    return [(file, (key,)) for file, key in zip(files, keys, strict=True)]


def _file_keys(entry: ColumnEntry, column_map: ColumnMap) -> list[tuple[str, Key]]:
    files = entry.files or column_map.file_names[:1]
    pairs = keys_by_file(entry, files) if entry.keys else []
    return [(file, key) for file, keys in pairs for key in keys if not is_pattern(key)]


def join_tables(tables: Mapping[str, Table], clocks: Mapping[str, int]) -> Table:
    """One table of the columns of several, with the rows of the first.

    Args:
        tables: Tables by file name.
        clocks: Time column of every table, by file name: rows with equal stamps belong together,
            and others are interpolated to the stamps of the first table. Empty: the tables have
            one row per sample each, and equally many.

    Raises:
        RecordingError: Row counts differ, or the clocks have too little time in common.
    """
    names = list(tables)
    first = tables[names[0]]
    if not clocks:
        _require_equal_rows(tables)
    values, bad, findings = [first.values], list(first.bad_cells), list(first.findings)
    for name, start in zip(names[1:], _starts(tables)[1:], strict=True):
        table = tables[name]
        findings += [replace(f, message=f"{name}: {f.message}") for f in table.findings]
        is_aligned = not clocks or np.array_equal(
            first.values[:, clocks[names[0]]], table.values[:, clocks[name]], equal_nan=True
        )
        if is_aligned:
            values.append(table.values)
            bad += [
                (row, column + start if column >= 0 else -1, t)
                for row, column, t in table.bad_cells
            ]
        else:
            values.append(interpolate_table(first, table, clocks[names[0]], clocks[name]))
            findings.append(
                Finding(
                    "interpolated_file",
                    "info",
                    f"the time stamps of {name} are not those of {names[0]}",
                    "its values are interpolated to them",
                )
            )
    origins = tuple(
        Origin(name, column or index)
        for name, table in tables.items()
        for index, column in enumerate(table.names, 1)
    )
    return Table(
        source=first.source,
        names=tuple(f"{origin.file}:{origin.column}" for origin in origins),
        values=np.concatenate(values, axis=1),
        rows=first.rows,
        bad_cells=tuple(bad),
        meta={key: value for table in tables.values() for key, value in table.meta.items()},
        findings=tuple(findings),
        origins=origins,
    )


def _require_equal_rows(tables: Mapping[str, Table]) -> None:
    counts = {name: len(table.values) for name, table in tables.items()}
    if len(set(counts.values())) > 1:
        count_text = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise RecordingError(
            f"the files of one run have different numbers of rows ({count_text}), and not every "
            "one has time stamps. Log a time column in each, or cut them to the same samples."
        )


def interpolate_table(
    first: Table, table: Table, clock: int, own_clock: int
) -> Float[Array, "n c"]:
    """Values of a table at the time stamps of another; NaN outside and in gaps."""
    stamps = first.values[:, clock]
    valid = np.isfinite(table.values[:, own_clock])
    own, values = table.values[valid, own_clock], table.values[valid]
    later = (
        np.concatenate([[True], own[1:] > np.maximum.accumulate(own)[:-1]])
        if len(own)
        else valid[:0]
    )
    own, values = own[later], values[later]
    finite = stamps[np.isfinite(stamps)]
    if len(own) < 2 or len(finite) < 2:
        raise RecordingError(f"{table.source} or {first.source} has no two time stamps in order.")
    common = min(own[-1], finite.max()) - max(own[0], finite.min())
    shorter = min(own[-1] - own[0], np.ptp(finite))
    if not common >= _MIN_OVERLAP * shorter:
        raise RecordingError(
            f"the clocks of {first.source} ({finite.min():.10g} to {finite.max():.10g}) and "
            f"{table.source} ({own[0]:.10g} to {own[-1]:.10g}) have too little time in common. "
            "Use stamps of one clock, or no time column for files with one row per sample each."
        )
    out = np.column_stack(
        [np.interp(stamps, own, column, left=np.nan, right=np.nan) for column in values.T]
    )
    after = np.clip(np.searchsorted(own, stamps), 1, len(own) - 1)
    width = own[after] - own[after - 1]
    in_gap = (width > _MAX_GAP_PERIODS * np.median(np.diff(own))) & (stamps != own[after])
    out[in_gap] = np.nan
    return out
