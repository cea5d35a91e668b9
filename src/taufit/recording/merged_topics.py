"""Tables of several topics, whose cells are empty in rows where a topic has no sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.recording.column_map import ColumnMap, locate_columns
from taufit.recording.finding import Finding
from taufit.recording.row_checks import MAX_BAD_FRACTION
from taufit.recording.run_files import interpolate_table
from taufit.recording.table import Table


def topic_rows(table: Table, columns: Sequence[int], clock: int) -> Table:
    """Table with the rows in which some columns are filled, others interpolated to these rows.

    The table itself where they are filled in most rows, or hold text.

    Args:
        table: Table from a reader.
        columns: Columns of the topic, such as the positions.
        clock: Time column.
    """
    filled = np.isfinite(table.values[:, columns]).all(axis=1)
    has_text = any(text.strip() for _, index, text in table.bad_cells if index in (-1, *columns))
    if has_text or not 1 < filled.sum() < (1.0 - MAX_BAD_FRACTION) * len(filled):
        return table
    rows = replace(table, values=table.values[filled].copy(), rows=table.rows[filled])
    missing = np.isnan(rows.values).mean(axis=0) > MAX_BAD_FRACTION
    has_samples = np.isfinite(table.values).sum(axis=0) > MAX_BAD_FRACTION * filled.sum()
    interpolated = np.flatnonzero(missing & has_samples)
    for index in interpolated:
        samples = np.isfinite(table.values[:, index])
        part = replace(table, values=table.values[samples][:, [clock, index]])
        rows.values[:, index] = interpolate_table(rows, part, clock, 0)[:, 1]
    text = (
        f"{len(filled) - filled.sum()} of {len(filled)} rows hold no {table.labels[columns[0]]}: "
        "a log of several topics"
    )
    names = ", ".join(table.labels[i] for i in interpolated)
    action = "these rows are left out" + (f"; {names} interpolated to the others" if names else "")
    row_numbers = set(rows.rows.tolist())
    cells = (
        cell for cell in table.bad_cells if cell[0] in row_numbers and cell[1] not in interpolated
    )
    finding = Finding("merged_topics", "info", text, action)
    return replace(rows, bad_cells=tuple(cells), findings=(*table.findings, finding))


def mapped_topic(table: Table, column_map: ColumnMap) -> Table:
    """Table with the rows of the positions that a map names, if it names time, too."""
    entries = {entry.quantity: entry for entry in column_map.columns}
    columns, time = (
        locate_columns(entries[name], table.names, table.source) if name in entries else None
        for name in ("position", "time")
    )
    return topic_rows(table, columns, time[0]) if columns and time else table
