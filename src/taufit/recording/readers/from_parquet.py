"""Parquet files: taufit's columns, or any with a column map; those of others need Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taufit.core.errors import MissingExtraError, RecordingError
from taufit.recording.canonical import from_columns, has_canonical_names, metadata_from_text
from taufit.recording.column_map import ColumnMap
from taufit.recording.readers.parquet_doubles import (
    UnsupportedParquetError,
    read_doubles,
    read_footer,
)
from taufit.recording.recording import Recording
from taufit.recording.table import Table, column_map_required

META_KEY = b"taufit"


def read_parquet(
    path: Path, column_map: ColumnMap | None = None, rows: tuple[int, int] | None = None
) -> list[Recording]:
    """Read the runs of a Parquet file, or of rows first <= i < last."""
    columns, page = read_columns(path, rows)
    if page is not None and rows is not None:
        # The checksum is that of all rows.
        page = {key: value for key, value in page.items() if key != "checksum"}
    if column_map is not None:
        from taufit.recording.assemble import assemble_recordings

        return assemble_recordings(Table.from_columns(str(path), columns), column_map)
    if page is None and not has_canonical_names(tuple(columns)):
        raise column_map_required(Table.from_columns(str(path), columns))
    return [from_columns(columns, page, str(path))]


def row_count(path: Path) -> int | None:
    """Number of rows declared by a Parquet file; None for other files."""
    if path.suffix.lower() not in (".parquet", ".pq"):
        return None
    try:
        with path.open("rb") as file:
            try:
                return read_footer(file).rows
            except UnsupportedParquetError:
                from taufit.recording.readers.from_arrow import import_arrow

                return int(import_arrow(str(path)).parquet.ParquetFile(file).metadata.num_rows)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MissingExtraError):
        return None  # whoever reads it says why


def read_columns(
    path: Path, rows: tuple[int, int] | None = None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Columns of numbers of a Parquet file by name, and taufit's metadata if it has some."""
    try:
        try:
            columns, metadata = read_doubles(path, rows)
        except UnsupportedParquetError:
            from taufit.recording.readers import from_arrow

            columns, metadata = from_arrow.read_columns(path, rows)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"{path} cannot be read as Parquet: {str(error)[:200]}. A file whose writer was "
            "stopped has no end; a live recording of taufit ends in .live and can be read."
        ) from None
    if not columns or not len(next(iter(columns.values()))):
        raise RecordingError(f"{path} has no rows of numbers.")
    text = metadata.get(META_KEY)
    return columns, None if text is None else metadata_from_text(text, str(path))
