"""Numbers in rows and columns, before anybody has said what they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import RecordingError
from taufit.recording.finding import Finding


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What a file holds.

    Attributes:
        source: The file, for messages.
        names: Of the columns; "" each where the file has no header.
        values: NaN where a cell holds no number.
        rows: Number of each row in the file, from 1, the header not counted.
        bad_cells: (row, column index, text) of what could not be read; a column index of -1
            is the whole row.
        meta: What the file says about itself.
        findings: What the reader noticed.
    """

    source: str
    names: tuple[str, ...]
    values: Float[Array, "n c"]
    rows: Int[Array, " n"]
    bad_cells: tuple[tuple[int, int, str], ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @classmethod
    def from_columns(cls, source: str, columns: dict[str, Array], **further: Any) -> Table:
        """A table of named columns of equal length."""
        values = np.column_stack([np.asarray(column, float) for column in columns.values()])
        rows = np.arange(1, len(values) + 1)
        return cls(source, tuple(columns), values, rows, **further)

    @property
    def labels(self) -> tuple[str, ...]:
        """What to call each column in a message: its name, or its number from 1."""
        return tuple(name or str(i) for i, name in enumerate(self.names, 1))


class ColumnMapRequiredError(RecordingError):
    """The file was read, but what its columns are must be said; `table` is what it holds."""

    def __init__(self, message: str, table: Table) -> None:
        super().__init__(message)
        self.table = table


def column_map_required(table: Table) -> ColumnMapRequiredError:
    """Why a table alone is not enough, with the command that drafts a map for it."""
    labels = table.labels
    label_text = ", ".join(labels[:40]) + (", ..." if len(labels) > 40 else "")
    return ColumnMapRequiredError(
        f"{table.source} does not say what its columns are ({label_text}). Give a column map with "
        f"--map FILE.yaml (map=...). `taufit convert {table.source} --draft map.yaml` writes one "
        "from the names and numbers of the columns; then add --map map.yaml.",
        table,
    )
