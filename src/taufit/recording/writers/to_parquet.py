"""Recording -> Parquet, readable by pandas, polars, DuckDB and Dask."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.files import replace_file
from taufit.core.varint import encode_varint
from taufit.recording.canonical import metadata_to_text, to_columns
from taufit.recording.readers.from_parquet import META_KEY
from taufit.recording.readers.parquet_doubles import (
    BYTE_STREAM_SPLIT,
    DOUBLE,
    LEVELS,
    MARK,
    PLAIN,
    ZSTD,
    zstd_module,
)
from taufit.recording.recording import Recording

# Rows of a page and of a row group.
_PAGE_ROWS, _GROUP_ROWS = 1 << 16, 1 << 20
# zstd's fastest level: higher ones gain 0.2 % on sensor noise.
_LEVEL = 1
# Thrift's kinds of fields, and Parquet's kinds of columns by NumPy's.
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_KINDS = {"f": DOUBLE, "i": 2, "b": 0, "U": 6}


def write_parquet(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write zstd-compressed doubles; JSON metadata under the key "taufit"."""
    columns, page = to_columns(recording)
    write_columns(path, columns, {META_KEY: metadata_to_text(page).encode()})


def write_columns(
    path: str | os.PathLike[str],
    columns: Mapping[str, Array],
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    """Write columns of doubles, integers, truth values or text, all of one length."""
    rows = len(next(iter(columns.values())))
    with replace_file(path) as temporary, temporary.open("wb") as file:
        file.write(MARK)
        groups = []
        for first in range(0, rows, _GROUP_ROWS):
            last = min(first + _GROUP_ROWS, rows)
            chunks = []
            for name, values in columns.items():
                pages = [
                    _page(values[start : min(start + _PAGE_ROWS, last)])
                    for start in range(first, last, _PAGE_ROWS)
                ]
                chunks.append(_chunk(name, values, last - first, file.tell(), pages))
                for _, data in pages:
                    file.write(data)
            groups.append(_structure({1: (_LIST, chunks), 2: (_I64, 0), 3: (_I64, last - first)}))
        footer = _footer(columns, rows, groups, metadata or {})
        file.write(footer + struct.pack("<I", len(footer)) + MARK)


def _page(values: Array) -> tuple[int, bytes]:
    """Uncompressed size of a page, and its bytes with header and checksum."""
    kind = values.dtype.kind
    if kind == "f":
        octets = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8)
        content = np.ascontiguousarray(octets.T).tobytes()
    elif kind == "i":
        content = np.ascontiguousarray(values, "<i8").tobytes()
    elif kind == "b":
        content = np.packbits(values, bitorder="little").tobytes()
    else:
        texts = [str(text).encode() for text in values]
        content = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    data = zstd_module().compress(content, _LEVEL)
    encoding = BYTE_STREAM_SPLIT if kind == "f" else PLAIN
    crc = int(np.uint32(zlib.crc32(data)).view(np.int32))
    header = _structure({
        1: (_I32, 0), 2: (_I32, len(content)), 3: (_I32, len(data)), 4: (_I32, crc),
        5: (_STRUCT, _structure({1: (_I32, len(values)), 2: (_I32, encoding),
                                 3: (_I32, LEVELS), 4: (_I32, LEVELS)})),
    })  # fmt: skip
    return len(header) + len(content), header + data


def _chunk(
    name: str, values: Array, rows: int, offset: int, pages: list[tuple[int, bytes]]
) -> tuple[int, bytes]:
    """Description of one column of a row group."""
    kind = values.dtype.kind
    encodings = [(_I32, BYTE_STREAM_SPLIT if kind == "f" else PLAIN), (_I32, LEVELS)]
    page = _structure({
        1: (_I32, _KINDS[kind]), 2: (_LIST, encodings), 3: (_LIST, [(_BINARY, name.encode())]),
        4: (_I32, ZSTD), 5: (_I64, rows), 6: (_I64, sum(size for size, _ in pages)),
        7: (_I64, sum(len(data) for _, data in pages)), 9: (_I64, offset),
    })  # fmt: skip
    return _STRUCT, _structure({2: (_I64, offset), 3: (_STRUCT, page)})


def _footer(
    columns: Mapping[str, Array], rows: int, groups: list[bytes], metadata: Mapping[bytes, bytes]
) -> bytes:
    from taufit import __version__

    elements = [_structure({4: (_BINARY, b"schema"), 5: (_I32, len(columns))})]
    for name, values in columns.items():
        kind = values.dtype.kind
        text = {6: (_I32, 0)} if kind == "U" else {}
        elements.append(
            _structure({1: (_I32, _KINDS[kind]), 3: (_I32, 0), 4: (_BINARY, name.encode()), **text})
        )
    items = [
        (_STRUCT, _structure({1: (_BINARY, key), 2: (_BINARY, text)}))
        for key, text in metadata.items()
    ]
    return _structure({
        1: (_I32, 2), 2: (_LIST, [(_STRUCT, element) for element in elements]), 3: (_I64, rows),
        4: (_LIST, [(_STRUCT, group) for group in groups]), 5: (_LIST, items),
        6: (_BINARY, f"taufit version {__version__}".encode()),
    })  # fmt: skip


def _structure(fields: Mapping[int, tuple[int, Any]]) -> bytes:
    """Thrift structure in the compact protocol; fields in ascending order."""
    out, previous = bytearray(), 0
    for number, (kind, value) in fields.items():
        out.append((number - previous) << 4 | kind)
        out += _encode(kind, value)
        previous = number
    return bytes(out) + b"\0"


def _encode(kind: int, value: Any) -> bytes:
    if kind == _STRUCT:
        return bytes(value)
    if kind == _BINARY:
        return encode_varint(len(value)) + value
    if kind == _LIST:
        element = value[0][0] if value else _STRUCT
        count = len(value)
        head = bytes([count << 4 | element]) if count < 15 else bytes([240 | element])
        head += encode_varint(count) if count >= 15 else b""
        return head + b"".join(_encode(*item) for item in value)
    return encode_varint(2 * value if value >= 0 else -2 * value - 1)
