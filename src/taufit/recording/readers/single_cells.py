"""Text tables read cell by cell: damaged ones, dates and times, all where the kernel is absent."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.recording.readers.date_times import stamp_seconds
from taufit.recording.readers.from_csv import cell_number, split_cells

# Largest number of invalid cells that are listed.
MAX_BAD_CELLS = 100_000


def read_numbers_in_python(
    text: str, delimiter: str, columns: int, texts: frozenset[int]
) -> Float[Array, "n c"] | None:
    """The kernel's `read_numbers` without it."""
    numbers = [i for i in range(columns) if i not in texts]
    lines = [line for line in text.split("\n") if line]
    if any(line.count(delimiter) != columns - 1 for line in lines) or not lines or "_" in text:
        return None
    values = np.full((len(lines), columns), np.nan)
    try:
        values[:, numbers] = np.loadtxt(
            lines, delimiter=delimiter, comments=None, usecols=numbers, ndmin=2
        )
    except ValueError:
        return None
    return values


def read_by_cells(
    text: str, delimiter: str, decimal: str, columns: int, texts: frozenset[int]
) -> tuple[Float[Array, "n c"], list[tuple[int, int, str]]]:
    """Numbers of a table, NaN for invalid cells, and these cells (row, column index, text)."""
    rows: list[list[float]] = []
    bad: list[tuple[int, int, str]] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        cells = split_cells(line, delimiter)
        if len(cells) == columns + 1 and not cells[-1].strip():
            # Some loggers end every line with a separator.
            cells = cells[:-1]
        number = len(rows) + 1
        if len(cells) != columns:
            rows.append([np.nan] * columns)
            if len(bad) < MAX_BAD_CELLS:
                bad.append((number, -1, f"{len(cells)} cells instead of {columns}"))
            continue
        numbers = []
        for index, cell in enumerate(cells):
            value, is_valid = cell_number(cell, decimal)
            numbers.append(value)
            if not is_valid and index not in texts and len(bad) < MAX_BAD_CELLS:
                bad.append((number, index, cell.strip()))
        rows.append(numbers)
    return np.array(rows, float).reshape(len(rows), columns), bad


def fill_time_stamps(
    values: Float[Array, "n c"], text: str, delimiter: str, texts: frozenset[int]
) -> frozenset[int]:
    """Fill columns of dates and times with their seconds; returns these columns."""
    rows = [split_cells(line, delimiter) for line in text.split("\n") if line.strip()]
    filled = {
        i: seconds
        for i in texts
        if (seconds := stamp_seconds([row[i] if i < len(row) else "" for row in rows])) is not None
    }
    for i, seconds in filled.items():
        values[:, i] = seconds
    return frozenset(filled)
