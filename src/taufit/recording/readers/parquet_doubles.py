"""Parquet files whose columns are all doubles, as taufit writes them, read without Arrow.

Pages are plain or byte-stream-split, uncompressed or zstd; `UnsupportedParquetError` names whatever
else a file has. Layout: parquet.thrift of the Parquet format, in Thrift's compact protocol.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.decompression_limits import require_unpacked_size
from taufit.core.errors import RecordingError

MARK = b"PAR1"
DOUBLE, UNCOMPRESSED, ZSTD, PLAIN, LEVELS, BYTE_STREAM_SPLIT = 5, 0, 6, 0, 3, 9
_DATA_PAGE = 0
# Bytes read for the header of a page; ours have 30, those with statistics about 80.
_PAGE_HEADER = 1024
_MAX_DEPTH = 16


class UnsupportedParquetError(Exception):
    """The file is valid, but has columns or pages that only Arrow reads."""


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """Description at the end of a file.

    Attributes:
        names: Column names.
        is_nullable: Whether rows of the columns may have no value.
        groups: Row groups: number of rows, and a Thrift structure per column.
        metadata: Metadata of the file by key.
    """

    names: tuple[str, ...]
    is_nullable: tuple[bool, ...]
    groups: tuple[tuple[int, list[Any]], ...]
    metadata: dict[bytes, bytes]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(rows for rows, _ in self.groups)


def read_footer(file: IO[bytes]) -> ParquetFooter:
    """Read the description of a file of doubles."""
    page = _footer_structure(file)
    leaves = page[2][1:]
    if any(leaf.get(1) != DOUBLE or leaf.get(3) == 2 for leaf in leaves):
        raise UnsupportedParquetError("columns of other kinds than doubles")
    groups = _row_groups(page, len(leaves))
    metadata = {item[1]: item.get(2, b"") for item in page.get(5, [])}
    names = tuple(leaf[4].decode() for leaf in leaves)
    return ParquetFooter(names, tuple(leaf.get(3) == 1 for leaf in leaves), groups, metadata)


def _row_groups(page: dict[int, Any], width: int) -> tuple[tuple[int, list[dict[int, Any]]], ...]:
    """Number of rows and description of the columns of each row group."""
    groups = tuple((group[3], [column[3] for column in group[1]]) for group in page.get(4, []))
    if any(rows < 0 or len(columns) != width for rows, columns in groups):
        raise ValueError("its row groups are damaged")
    chunks = [column for _, columns in groups for column in columns]
    if any(chunk[4] not in (UNCOMPRESSED, ZSTD) or 11 in chunk for chunk in chunks):
        raise UnsupportedParquetError("another compression, or dictionaries")
    return groups


def _footer_structure(file: IO[bytes]) -> dict[int, Any]:
    """Thrift structure at the end of a file."""
    size = file.seek(0, 2)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    if size < 12 or tail[4:] != MARK:
        raise ValueError("it does not end as a Parquet file")
    (length,) = struct.unpack("<I", tail[:4])
    if length > size - 12:
        raise ValueError("its end is cut off")
    file.seek(size - 8 - length)
    return read_structure(file.read(length))[0]


def read_doubles(
    path: Path, rows: tuple[int, int] | None = None
) -> tuple[dict[str, Float[Array, " n"]], dict[bytes, bytes]]:
    """Read the columns of a file, all rows or first <= i < last, and its metadata."""
    with path.open("rb") as file:
        footer = read_footer(file)
        first, last = (0, footer.rows) if rows is None else (rows[0], min(rows[1], footer.rows))
        count = max(last - first, 0)
        compressed = path.stat().st_size
        require_unpacked_size(path, 8 * count * len(footer.names), compressed, error=RecordingError)
        columns = {name: np.empty(count) for name in footer.names}
        start = 0
        for group_rows, chunks in footer.groups:
            if start < last and start + group_rows > first:
                for chunk, values, nullable in zip(
                    chunks, columns.values(), footer.is_nullable, strict=True
                ):
                    _read_chunk(file, chunk, (start - first, group_rows), values, nullable)
            start += group_rows
    return columns, footer.metadata


def _read_chunk(
    file: IO[bytes],
    chunk: dict[int, Any],
    extent: tuple[int, int],
    values: Float[Array, " n"],
    is_nullable: bool,
) -> None:
    """Copy one column of a row group into `values`; extent: place of its first row, and rows."""
    place, end = extent[0], sum(extent)
    offset = chunk[9]
    while place < end and place < len(values):
        file.seek(offset)
        header, length = read_structure(file.read(_PAGE_HEADER))
        if header[1] != _DATA_PAGE:
            raise UnsupportedParquetError("pages of another kind")
        rows, size = header[5][1], header[3]
        if rows <= 0 or place + rows > end or size < 0:
            raise ValueError("a page has another number of rows than its group")
        if place + rows > 0:
            file.seek(offset + length)
            page = _page_values(file.read(size), header, chunk[4], is_nullable)
            low, high = max(place, 0), min(place + rows, len(values))
            values[low:high] = page[low - place : high - place]
        offset += length + size
        place += rows


def _page_values(
    data: bytes, header: dict[int, Any], codec: int, is_nullable: bool
) -> Float[Array, " n"]:
    """Numbers of one page."""
    rows, encoding = header[5][1], header[5][2]
    if len(data) != header[3] or (4 in header and zlib.crc32(data) != header[4] & 0xFFFFFFFF):
        raise ValueError("a page is cut short or changed (its checksum differs)")
    if codec == ZSTD:
        data = _decompress(data, header[2])
    if is_nullable:
        (length,) = struct.unpack_from("<I", data)
        run, at = _integer(data, 4)
        # One run of ones: every row has a value.
        if run != 2 * rows or at + 1 != 4 + length or data[at] != 1:
            raise UnsupportedParquetError("rows without a value")
        data = data[4 + length :]
    if len(data) != 8 * rows:
        raise ValueError("a page has another size than its number of rows")
    if encoding == PLAIN:
        return np.frombuffer(data, "<f8")
    if encoding != BYTE_STREAM_SPLIT:
        raise UnsupportedParquetError("another encoding of numbers")
    planes = np.frombuffer(data, np.uint8).reshape(8, rows)
    interleaved = np.empty((rows, 8), np.uint8)
    for k in range(8):
        interleaved[:, k] = planes[k]
    return interleaved.view("<f8")[:, 0]


def _decompress(data: bytes, size: int) -> bytes:
    """Content of a zstd frame of `size` bytes; no more is ever unpacked."""
    zstd = zstd_module()
    stream = zstd.ZstdDecompressor()
    try:
        content: bytes = stream.decompress(data, max_length=size + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"a page is damaged ({error})") from None
    if len(content) != size:
        raise ValueError("a page unpacks to another size than it says")
    return content


def zstd_module() -> Any:
    """Module for zstd of Python 3.14 and later, or its equal for earlier ones."""
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    return zstd


def read_structure(data: bytes) -> tuple[dict[int, Any], int]:
    """Decode a Thrift structure by field number, and the number of its bytes."""
    try:
        return _structure(data, 0, 0)
    except (IndexError, struct.error):
        raise ValueError("its description is damaged") from None


def _structure(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    fields: dict[int, Any] = {}
    number = 0
    while (head := data[at]) != 0:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(data, at)
        kind = head & 15
        if kind in (1, 2):
            fields[number] = kind == 1
        else:
            fields[number], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (4, 5, 6):
        return _signed(data, at)
    if kind == 8:
        length, at = _integer(data, at)
        if at + length > len(data):
            raise ValueError("its description is damaged")
        return data[at : at + length], at + length
    if kind in (9, 12) and depth < _MAX_DEPTH:
        if kind == 12:
            return _structure(data, at, depth + 1)
        count, element = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _integer(data, at)
        items = []
        for _ in range(count):
            item, at = _value(data, at, element, depth + 1)
            items.append(item)
        return items, at
    if kind in (1, 2, 3):  # a boolean in a list, or a byte
        return data[at], at + 1
    if kind == 7:
        return struct.unpack_from("<d", data, at)[0], at + 8
    raise ValueError("its description is damaged")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """Variable-length integer."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("its description is damaged")


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _integer(data, at)
    return (value >> 1) ^ -(value & 1), at
