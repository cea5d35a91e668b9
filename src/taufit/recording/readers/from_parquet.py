"""Parquet files: taufit's columns, or any with a column map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.decompression_limits import require_unpacked_size
from taufit.core.errors import RecordingError
from taufit.recording.canonical import from_columns, has_canonical_names, metadata_from_text
from taufit.recording.column_map import ColumnMap
from taufit.recording.recording import Recording
from taufit.recording.table import Table, column_map_required

META_KEY = b"taufit"
_ROWS = 1 << 16
# Buffer per column when only some rows are read [bytes].
_BUFFER = 1 << 18


def read_parquet(
    path: Path, column_map: ColumnMap | None = None, rows: tuple[int, int] | None = None
) -> list[Recording]:
    """Read the runs of a Parquet file, or of rows first <= i < last."""
    columns, page = _columns(path, rows)
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return int(pq.ParquetFile(file).metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return None  # whoever reads it says why


def _columns(
    path: Path, rows: tuple[int, int] | None = None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # An open file may have any name and avoids Arrow's dataset code.
        with path.open("rb") as file:
            buffer = 0 if rows is None else _BUFFER
            opened = pq.ParquetFile(file, page_checksum_verification=True, buffer_size=buffer)
            table = read_numbers(opened, path, rows)
        columns = {name: numeric_columns(table.column(name), name) for name in table.column_names}
    except (pa.ArrowException, OSError, ValueError, MemoryError, KeyError) as error:
        if "launch worker thread" in str(error):  # Arrow's words where ulimit -v is reached
            raise MemoryError from None
        raise RecordingError(
            f"{path} cannot be read as Parquet: {str(error)[:200]}. A file whose writer was "
            "stopped has no end; a live recording of taufit ends in .live and can be read."
        ) from None
    columns = {name: values for part in columns.values() for name, values in part.items()}
    if not columns or not len(next(iter(columns.values()))):
        raise RecordingError(f"{path} has no rows of numbers.")
    text = (table.schema.metadata or {}).get(META_KEY)
    return columns, None if text is None else metadata_from_text(text, str(path))


def read_numbers(file: Any, path: Path, rows: tuple[int, int] | None = None) -> Any:
    """Numeric columns of a Parquet file as an Arrow table; all rows or some.

    The decompressed size is checked as declared and again while reading, since repeated values
    need almost no space in the file.
    """
    import pyarrow as pa

    schema = file.schema_arrow
    names = [field.name for field in schema if _is_number(field.type)]
    compressed = path.stat().st_size
    first, last = (0, file.metadata.num_rows) if rows is None else rows
    require_unpacked_size(path, 8 * (last - first) * len(names), compressed, error=RecordingError)
    batches, decompressed = [], 0
    for batch in _batches(file, names, first, last):
        decompressed += batch.nbytes
        require_unpacked_size(path, decompressed, compressed, error=RecordingError, so_far=True)
        batches.append(batch)
    if not batches:
        return schema.empty_table().select(names)
    return pa.Table.from_batches(batches).replace_schema_metadata(schema.metadata)


def _batches(file: Any, names: list[str], first: int, last: int) -> Iterator[Any]:
    """Batches with rows first <= i < last; earlier row groups are not read."""
    sizes = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    ends = np.cumsum([0, *sizes])
    groups = [g for g in range(len(sizes)) if ends[g] < last and ends[g + 1] > first]
    if not groups:
        return
    row_offset = int(ends[groups[0]])
    for batch in file.iter_batches(
        batch_size=_ROWS, row_groups=groups, columns=names, use_threads=False
    ):
        low, high = max(first - row_offset, 0), min(last - row_offset, len(batch))
        if low < high:
            yield batch if high - low == len(batch) else batch.slice(low, high - low)
        row_offset += len(batch)
        if row_offset >= last:
            return


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
    )


def _list_columns(lists: list[Any], name: str) -> dict[str, Any]:
    width = len(lists[0]) if lists and lists[0] is not None else 0
    if not width or any(item is None or len(item) != width for item in lists):
        return {}
    values = np.array(lists, dtype=float)
    return {f"{name}_{i + 1}": values[:, i] for i in range(width)}


def numeric_columns(column: Any, name: str) -> dict[str, Any]:
    """Numbers of an Arrow column by name; lists of equal length become name_1, name_2, ..."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        numbers = pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
        return _list_columns(column.to_pylist(), name) if numbers else {}
    if pa.types.is_float64(kind) and column.null_count == 0:
        return {name: _doubles(column)}
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return {name: np.array(column.cast(pa.float64()).to_numpy(), dtype=float)}
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        ticks = column.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy()
        return {name: np.array(ticks, dtype=float) / per_second}
    return {}


def _doubles(column: Any) -> Float[Array, " n"]:
    """Column of doubles from its buffers; Arrow's conversion would import pandas (0.2 s)."""
    parts = [
        np.frombuffer(chunk.buffers()[1], float, len(chunk), 8 * chunk.offset)
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.empty(0)
