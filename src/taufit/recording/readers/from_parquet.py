"""Parquet: taufit's own form, or any other through a column map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.decompression_limits import require_unpacked_size
from taufit.core.errors import RecordingError
from taufit.recording.assemble import assemble
from taufit.recording.canonical import from_columns, from_text, looks_canonical
from taufit.recording.column_map import ColumnMap
from taufit.recording.recording import Recording
from taufit.recording.table import Table, column_map_required

META_KEY = b"taufit"
_ROWS = 1 << 16
# Read at a time of each column where only some rows are wanted [bytes].
_BUFFER = 1 << 18


def read_parquet(
    path: Path, column_map: ColumnMap | None = None, rows: tuple[int, int] | None = None
) -> list[Recording]:
    """The runs of a Parquet file, or of its rows from the first to the last, not included."""
    columns, page = _columns(path, rows)
    if page is not None and rows is not None:
        # The checksum is that of all rows; pages of the file have their own.
        page = {key: value for key, value in page.items() if key != "checksum"}
    if column_map is not None:
        return assemble(Table.from_columns(str(path), columns), column_map)
    if page is None and not looks_canonical(tuple(columns)):
        raise column_map_required(Table.from_columns(str(path), columns))
    return [from_columns(columns, page, str(path))]


def row_count(path: Path) -> int | None:
    """How many rows a Parquet file declares; None where it is none."""
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
        # An open file has any name, UTF-8 or not, and needs no dataset machinery to be read.
        with path.open("rb") as file:
            buffer = 0 if rows is None else _BUFFER
            opened = pq.ParquetFile(file, page_checksum_verification=True, buffer_size=buffer)
            table = read_numbers(opened, path, rows)
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


def read_numbers(file: Any, path: Path, rows: tuple[int, int] | None = None) -> Any:
    """The columns of a Parquet file that hold numbers, as an Arrow table; all rows or some.

    Repeated values take next to no room in the file: what they unpack to is their count, first as
    the file declares it, then as they come.
    """
    import pyarrow as pa

    schema = file.schema_arrow
    wanted = [field.name for field in schema if _is_number(field.type)]
    packed = path.stat().st_size
    first, last = (0, file.metadata.num_rows) if rows is None else rows
    require_unpacked_size(path, 8 * (last - first) * len(wanted), packed, error=RecordingError)
    batches, unpacked = [], 0
    for batch in _batches(file, wanted, first, last):
        unpacked += batch.nbytes
        require_unpacked_size(path, unpacked, packed, error=RecordingError, so_far=True)
        batches.append(batch)
    if not batches:
        return schema.empty_table().select(wanted)
    return pa.Table.from_batches(batches).replace_schema_metadata(schema.metadata)


def _batches(file: Any, wanted: list[str], first: int, last: int) -> Iterator[Any]:
    """Rows first <= i < last; row groups before them are not read."""
    sizes = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    ends = np.cumsum([0, *sizes])
    groups = [g for g in range(len(sizes)) if ends[g] < last and ends[g + 1] > first]
    if not groups:
        return
    at = int(ends[groups[0]])
    for batch in file.iter_batches(
        batch_size=_ROWS, row_groups=groups, columns=wanted, use_threads=False
    ):
        low, high = max(first - at, 0), min(last - at, len(batch))
        if low < high:
            yield batch if high - low == len(batch) else batch.slice(low, high - low)
        at += len(batch)
        if at >= last:
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


def _flat_lists(lists: list[Any], name: str) -> dict[str, Any]:
    width = len(lists[0]) if lists and lists[0] is not None else 0
    if not width or any(item is None or len(item) != width for item in lists):
        return {}
    values = np.array(lists, dtype=float)
    return {f"{name}_{i + 1}": values[:, i] for i in range(width)}


def flat(column: Any, name: str) -> dict[str, Any]:
    """Numbers of an Arrow column by name; lists of equal length become name_1, name_2, ..."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        numbers = pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
        return _flat_lists(column.to_pylist(), name) if numbers else {}
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
    """A column of doubles as they lie in memory: Arrow's own way imports pandas, 0.2 s of it."""
    parts = [
        np.frombuffer(chunk.buffers()[1], float, len(chunk), 8 * chunk.offset)
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.empty(0)
