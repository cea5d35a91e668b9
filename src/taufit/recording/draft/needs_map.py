"""A file of numbers that nobody has described: the error, and the command that helps."""

from __future__ import annotations

from taufit.core.errors import RecordingError
from taufit.recording.table import Table


class NeedsMapError(RecordingError):
    """The file was read, but what its columns are must be said; `table` is what it holds."""

    def __init__(self, message: str, table: Table) -> None:
        super().__init__(message)
        self.table = table


def needs_map(table: Table) -> NeedsMapError:
    """Why a table alone is not enough, with the command that drafts a map for it."""
    labels = table.labels
    shown = ", ".join(labels[:40]) + (", ..." if len(labels) > 40 else "")
    return NeedsMapError(
        f"{table.source} does not say what its columns are ({shown}). Give a column map with "
        f"--map FILE.yaml (map=...). `taufit convert {table.source} --draft map.yaml` writes one "
        "from the names and numbers of the columns; then add --map map.yaml.",
        table,
    )
