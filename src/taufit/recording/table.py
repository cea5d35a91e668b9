"""Table of numbers without description of its columns."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Content of a file.

    Attributes:
        source: File name, used in messages.
        names: Column names; "" each without a header.
        values: Values; NaN for invalid cells.
        rows: Number of each row in the file, from 1, the header not counted.
        bad_cells: Unreadable cells (row, column index, text); column index -1 is the whole row.
        meta: Metadata of the file.
        findings: Findings of the reader.
        origins: File and column of every column of a table joined from several files.
    """

    source: str
    names: tuple[str, ...]
    values: Float[Array, "n c"]
    rows: Int[Array, " n"]
    bad_cells: tuple[tuple[int, int, str], ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    origins: tuple[tuple[str, int | str], ...] = ()

    @classmethod
    def from_columns(cls, source: str, columns: dict[str, Array], **further: Any) -> Table:
        """Table of named columns of equal length."""
        values = np.column_stack([np.asarray(column, float) for column in columns.values()])
        rows = np.arange(1, len(values) + 1)
        return cls(source, tuple(columns), values, rows, **further)

    @property
    def labels(self) -> tuple[str, ...]:
        """Column labels for messages: name, or number from 1."""
        return tuple(name or str(i) for i, name in enumerate(self.names, 1))


def is_frame(value: object) -> bool:
    """Whether a value is a table of named columns: a pandas or polars frame, an Arrow table."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


class ColumnMapRequiredError(RecordingError):
    """The file needs a column map; `table` is its content."""

    def __init__(self, message: str, table: Table) -> None:
        super().__init__(message)
        self.table = table


def column_map_required(table: Table) -> ColumnMapRequiredError:
    """Error for a table without column map, with the command that drafts one."""
    labels = table.labels
    label_text = ", ".join(labels[:40]) + (", ..." if len(labels) > 40 else "")
    return ColumnMapRequiredError(
        f"{table.source} does not say what its columns are ({label_text}). Give a column map with "
        f"--map FILE.yaml (column_map=...). `taufit convert {shlex.quote(table.source)} --draft "
        "map.yaml` writes one from the names and numbers of the columns; then add --map map.yaml.",
        table,
    )


def arrays_to_table(arrays: dict[str, Array], source: str) -> Table:
    """Table of the arrays whose length is the number of samples."""
    shapes = {name: np.squeeze(array).shape for name, array in arrays.items()}
    lengths = Counter(max(shape) for shape in shapes.values() if 1 <= len(shape) <= 2)
    if not lengths:
        raise RecordingError(f"{source} holds no arrays of numbers.")
    # The most frequent length is the number of samples; among equals the longest.
    length = max(lengths, key=lambda n: (lengths[n], n))
    columns: dict[str, Array] = {}
    unread = []
    for name, array in arrays.items():
        array = np.squeeze(array)
        if array.dtype.kind not in "fiub" or length not in array.shape or array.ndim > 2:
            unread.append(name)
            continue
        array = array.astype(float)
        if array.ndim == 1:
            columns[name] = array
            continue
        if array.shape[0] == array.shape[1]:
            raise RecordingError(
                f"{source}: {name} is {length} x {length}, so samples and joints cannot be told "
                "apart."
            )
        array = array if array.shape[0] == length else array.T
        columns.update({f"{name}_{i + 1}": array[:, i] for i in range(array.shape[1])})
    if not columns:
        raise RecordingError(f"{source} holds no arrays of numbers.")
    findings: tuple[Finding, ...] = ()
    if unread:
        findings = (
            Finding(
                "unread_columns",
                "info",
                f"{', '.join(unread[:20])} have another length than {length} samples",
                "not read",
            ),
        )
    return Table.from_columns(source, columns, findings=findings)
