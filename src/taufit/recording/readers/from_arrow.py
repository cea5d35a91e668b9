"""What only Arrow reads: Parquet files of other programs, Arrow tables, streams of taufit 0.1."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.decompression_limits import require_unpacked_size
from taufit.core.errors import RecordingError
from taufit.core.extras import missing_extra

_ROWS = 1 << 16
# Buffer per column when only some rows are read [bytes].
_BUFFER = 1 << 18
_CRC = b"crc32"


def import_arrow(feature: str) -> Any:
    """Arrow, or the error that says how to install it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise missing_extra("arrow", feature) from None
    return pa


def read_columns(
    path: Path, rows: tuple[int, int] | None = None
) -> tuple[dict[str, Float[Array, " n"]], dict[bytes, bytes]]:
    """Numeric columns of a Parquet file, all rows or first <= i < last, and its metadata."""
    pa = import_arrow(f"{path}, a Parquet file of another program,")
    # An open file may have any name and avoids Arrow's dataset code.
    try:
        with path.open("rb") as file:
            buffer = 0 if rows is None else _BUFFER
            opened = pa.parquet.ParquetFile(
                file, page_checksum_verification=True, buffer_size=buffer
            )
            table = _read_numbers(opened, path, rows)
        parts = [numeric_columns(table.column(name), name) for name in table.column_names]
    except pa.ArrowException as error:
        if "launch worker thread" in str(error):  # Arrow's words where ulimit -v is reached
            raise MemoryError from None
        raise ValueError(str(error)) from None
    columns = {name: values for part in parts for name, values in part.items()}
    return columns, table.schema.metadata or {}


def table_columns(frame: Any) -> tuple[dict[str, Float[Array, " n"]], dict[bytes, bytes]]:
    """Numeric columns of an Arrow table, or of anything that hands one over."""
    pa = import_arrow("an Arrow table")
    try:
        table = pa.table(frame)
        parts = [numeric_columns(table.column(k), str(n)) for k, n in enumerate(table.column_names)]
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    columns = {name: values for part in parts for name, values in part.items()}
    return columns, table.schema.metadata or {}


def _read_numbers(file: Any, path: Path, rows: tuple[int, int] | None) -> Any:
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


def list_columns(lists: list[Any], name: str) -> dict[str, Any]:
    """Columns name_1, name_2, ... of lists of equal length; none if their lengths differ."""
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
        return list_columns(column.to_pylist(), name) if numbers else {}
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


def read_live_stream(
    data: bytes, source: str, key: bytes
) -> tuple[bytes, list[str], list[Float[Array, "n c"]], int]:
    """Unfinished recording of taufit 0.1, an Arrow stream with a checksum per batch.

    Metadata, column names, valid batches, and the number of bytes after the last one.
    """
    pa = import_arrow(f"{source}, an unfinished recording of taufit 0.1,")
    try:
        file = pa.BufferReader(data)
        stream = pa.ipc.open_stream(file)
        page = (stream.schema.metadata or {}).get(key)
        doubles = all(kind == pa.float64() for kind in stream.schema.types)
        names = list(stream.schema.names)
    except (pa.ArrowException, OSError, ValueError, EOFError):
        raise RecordingError(f"{source} is not a live recording of taufit.") from None
    if page is None or not doubles or not names:
        raise RecordingError(f"{source} is an Arrow stream, but not a live recording of taufit.")
    blocks: list[Float[Array, "n c"]] = []
    number, end = 0, file.tell()
    while True:
        try:
            batch, notes = stream.read_next_batch_with_custom_metadata()
            batch.validate(full=True)
            columns = np.stack([np.asarray(column, float) for column in batch.columns])
        except (StopIteration, pa.ArrowException, OSError, ValueError, EOFError):
            break
        crc = zlib.crc32(columns.tobytes(), number)
        if notes is None or notes.get(_CRC) != str(crc).encode():
            break
        blocks.append(columns.T)
        number, end = number + 1, file.tell()
    return page, names, blocks, len(data) - end
