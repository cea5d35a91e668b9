"""Parquet: taufit's own form, or any other through a column map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from taufit.errors import RecordingError
from taufit.recording.assemble import assemble
from taufit.recording.canonical import from_columns, from_text, looks_canonical
from taufit.recording.column_map import ColumnMap
from taufit.recording.draft.needs_map import needs_map
from taufit.recording.recording import Recording
from taufit.recording.table import Table

META_KEY = b"taufit"


def read_parquet(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """The runs of a Parquet file."""
    columns, page = _columns(path)
    if column_map is not None:
        return assemble(Table.from_columns(str(path), columns), column_map)
    if page is None and not looks_canonical(tuple(columns)):
        raise needs_map(Table.from_columns(str(path), columns))
    return [from_columns(columns, page, str(path))]


def _columns(path: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # An open file has any name, UTF-8 or not, and needs no dataset machinery to be read.
        with path.open("rb") as file:
            table = pq.ParquetFile(file, page_checksum_verification=True).read(use_threads=False)
        columns = {name: flat(table.column(name), name) for name in table.column_names}
    except (pa.ArrowException, OSError, ValueError, MemoryError, KeyError) as error:
        raise RecordingError(
            f"{path} cannot be read as Parquet: {str(error)[:200]}. A file whose writer was "
            "stopped has no end; a live recording of taufit ends in .live and can be read."
        ) from None
    columns = {name: values for part in columns.values() for name, values in part.items()}
    if not columns or not len(next(iter(columns.values()))):
        raise RecordingError(f"{path} has no rows of numbers.")
    text = (table.schema.metadata or {}).get(META_KEY)
    return columns, None if text is None else from_text(text, str(path))


def flat(column: Any, name: str) -> dict[str, Any]:
    """Numbers of an Arrow column by name; lists of equal length become name_1, name_2, ..."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
            return {}
        lists = column.to_pylist()
        width = len(lists[0]) if lists and lists[0] is not None else 0
        if not width or any(item is None or len(item) != width for item in lists):
            return {}
        values = np.array(lists, dtype=float)
        return {f"{name}_{i + 1}": values[:, i] for i in range(width)}
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return {name: np.array(column.cast(pa.float64()).to_numpy(), dtype=float)}
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        ticks = column.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
        return {name: np.array(ticks, dtype=float) / per_second}
    return {}
