"""Tables of runs in several files for a draft: grouping of files into runs, joining, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from taufit.core.errors import RecordingError
from taufit.recording.draft.from_names import (
    common_prefix,
    is_quantity_name,
    name_words,
    time_column,
)
from taufit.recording.draft.from_values import time_column_from_values
from taufit.recording.run_files import join_tables
from taufit.recording.table import Table


def group_by_run(paths: Sequence[Path]) -> list[list[Path]]:
    """Files of each run: names that differ only in the word for the quantity belong together."""
    runs: dict[str, list[Path]] = {}
    for path in paths:
        runs.setdefault(_without_quantity(path), []).append(path)
    counts = {len(run) for run in runs.values()}
    # q1.txt, tau1.txt, q2.txt, tau2.txt: numbers are joints, not runs, where nothing else differs.
    numbered = {re.sub(r"\d+", "", name) for name in runs}
    if len(counts) > 1 or counts == {1} or (len(numbered) == 1 and len(runs) > 1):
        return [list(paths)]
    return list(runs.values())


def _without_quantity(path: Path) -> str:
    """Path with a mark in place of the words that name a quantity."""
    stem, ending = path.name.split(".")[0], path.name.partition(".")[2]
    for word, start, end in reversed(name_words(stem)):
        if is_quantity_name(word):
            stem = f"{stem[:start]}?{stem[end:]}"
    return f"{path.parent}/{stem}.{ending}"


def run_table(tables: dict[Path, Table]) -> Table:
    """Joined table of the files of one run, with column names that contain their quantity.

    Files that all have a time column are joined by it, others row by row.
    """
    if len({path.name for path in tables}) < len(tables):
        raise RecordingError(
            f"{', '.join(map(str, tables))} have equal names in different folders: name the files "
            "in a map by hand (`file: folder/name`)."
        )
    by_name = {path.name: table for path, table in tables.items()}
    clocks = {
        name: clock for name, table in by_name.items() if (clock := _clock(table)) is not None
    }
    joins_by_clock = len(clocks) == len(tables)
    stems = dict(zip(tables, _distinct_stems([path.name for path in tables]), strict=True))
    names = tuple(
        name
        for path, part in tables.items()
        for name in _names(stems[path], part, clocks[path.name] if joins_by_clock else None)
    )
    if not joins_by_clock:
        return replace(join_tables(by_name, {}), names=names, bad_cells=())
    return _without_further_clocks(replace(join_tables(by_name, clocks), names=names), clocks)


def _without_further_clocks(table: Table, clocks: dict[str, int]) -> Table:
    """Joined table with the time column of its first file; `clock` in its meta is the entry."""
    files = [file for file, _ in table.origins]
    stamps = [files.index(file) + clock for file, clock in clocks.items()]
    labels = [table.origins[i][1] for i in stamps]
    columns = np.setdiff1d(np.arange(len(files)), stamps[1:])
    clock = {"file": [*clocks], "columns": labels[0] if len(set(labels)) == 1 else labels}
    return replace(
        table,
        names=tuple(table.names[i] for i in columns),
        values=table.values[:, columns],
        origins=tuple(table.origins[i] for i in columns),
        bad_cells=(),
        meta={**table.meta, "clock": clock},
    )


def _clock(table: Table) -> int | None:
    """Time column of a file, by its name or, without names, by even steps of the first column."""
    by_name = time_column(table.names)
    if by_name is not None or any(table.names):
        return None if by_name is None else by_name[0]
    by_value = time_column_from_values(table.values) if len(table.names) > 1 else None
    return 0 if by_value is not None and by_value[0] == 0 else None


def _distinct_stems(names: Sequence[str]) -> list[str]:
    """File names without endings and without the words that all of them begin with.

    In `c_pos.csv`, `c_tau.csv` the `c` is the run's name, not that of commanded values.
    """
    stems = [name.split(".")[0] for name in names]
    prefix = common_prefix(stems)
    length = max((prefix.rfind(mark) + 1 for mark in "_-. "), default=0)
    is_named = all(is_quantity_name(stem[length:]) for stem in stems)
    return [stem[length:] for stem in stems] if is_named else stems


def _names(stem: str, table: Table, clock: int | None) -> list[str]:
    """Column names; those without a quantity get the file's name in front."""
    if clock is None:
        clock = (time_column(table.names) or (None,))[0]
    names = []
    for index, name in enumerate(table.names):
        if index == clock or (name and is_quantity_name(name)):
            names.append(name or "time")
        elif len(table.names) == 1 and not name:
            names.append(stem)
        else:
            names.append(f"{stem}_{name or index + 1}")
    return names


def run_pattern(names: Sequence[str]) -> str:
    """File names of one quantity over several runs, with `*` for the part that changes."""
    if len(set(names)) == 1:
        return names[0]
    prefix = common_prefix(names)
    suffix = common_prefix([name[len(prefix) :][::-1] for name in names])[::-1]
    return f"{prefix}*{suffix}"
