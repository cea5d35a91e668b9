"""Decompressed size of container files, checked without holding their content in memory.

Declared sizes are trusted only if the reader enforces them; otherwise the data are decompressed in
blocks and counted, up to the limit.
"""

from __future__ import annotations

import bz2
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from taufit.core.bounded_reading import require_file
from taufit.core.decompression_limits import limits_are_lifted, require_unpacked_size
from taufit.core.errors import RecordingError
from taufit.core.plain_data import MAX_YAML

_BLOCK_BYTES = 1 << 14
_FRAME_HEADER_BYTES = 18
Count = Callable[[bytes], Iterator[int]]


def require_decompressed_size(source: object, data: bytes, count: Count) -> None:
    """Raise a `RecordingError` if compressed bytes exceed the size limit; `count` yields block
    sizes.
    """
    total = 0
    for size in count(data):
        total += size
        require_unpacked_size(source, total, len(data), error=RecordingError, so_far=True)


def gzip_sizes(data: bytes) -> Iterator[int]:
    """Decompressed block sizes of all members of a gzip file, up to the first damage."""
    offset = 0
    while data[offset : offset + 2] == b"\x1f\x8b":
        unzip = zlib.decompressobj(wbits=31)
        while offset < len(data) and not unzip.eof:
            block = data[offset : offset + _BLOCK_BYTES]
            try:
                yield len(unzip.decompress(block))
            except zlib.error:
                return
            offset += len(block) - len(unzip.unused_data)
        if not unzip.eof:
            return


def zlib_sizes(data: bytes) -> Iterator[int]:
    """Decompressed block sizes of a zlib stream, up to the first damage."""
    unzip = zlib.decompressobj()
    for start in range(0, len(data), _BLOCK_BYTES):
        try:
            yield len(unzip.decompress(data[start : start + _BLOCK_BYTES]))
        except zlib.error:
            return
        if unzip.eof:
            return


def require_mat_size(path: Path) -> None:
    """Raise a `RecordingError` if compressed parts of a MATLAB file are too large."""
    if limits_are_lifted():
        return
    with path.open("rb") as file:
        head = file.read(128)
        order = ">" if head[126:128] == b"MI" else "<"
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(order + "II", tag)
            if kind == 15:
                require_decompressed_size(path, file.read(size), zlib_sizes)
            else:
                file.seek(size, 1)


def require_bag_size(path: Path) -> None:
    """Raise a `RecordingError` if a chunk of a bag is too large; bags are read chunk by chunk."""
    for file in path.iterdir() if path.is_dir() else ():
        require_file(file, error=RecordingError)
    if limits_are_lifted():
        return
    if path.is_dir():
        text = _metadata(path / "metadata.yaml")
        for file in sorted(path.iterdir()):
            if file.suffix == ".zstd":
                _check_zstd(path, file.read_bytes())
            elif file.suffix == ".mcap":
                _check_mcap(file)
            elif file.suffix == ".db3" and re.search(r"compression_mode:\s*['\"]?message", text):
                _check_messages(file)
    elif path.suffix == ".mcap":
        _check_mcap(path)
    elif path.suffix == ".bag":
        _check_ros1(path)


def _metadata(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_YAML + 1)
    except OSError:
        return ""
    if len(text) > MAX_YAML:
        raise RecordingError(f"{path} is larger than a bag's metadata can be.")
    return text.decode("utf-8", "replace").lower()


def _check_mcap(path: Path) -> None:
    """Check MCAP chunks: opcode, length, times, size, checksum, compression, compressed records."""
    end = path.stat().st_size
    with path.open("rb") as file:
        file.seek(8)
        while len(head := file.read(9)) == 9:
            code, length = struct.unpack("<BQ", head)
            start = file.tell()
            if length > end - start:
                return
            if code == 6 and length >= 40:
                _check_chunk(path, file, start + length)
            file.seek(start + length)


def _check_chunk(path: Path, file: BinaryIO, end: int) -> None:
    header = file.read(32)
    (size,) = struct.unpack_from("<Q", header, 16)
    (name_length,) = struct.unpack_from("<I", header, 28)
    if name_length > 100:
        return
    compression = file.read(name_length)
    file.seek(8, 1)
    compressed_size = end - file.tell()
    if compressed_size < 0:
        return
    require_unpacked_size(path, size, compressed_size, error=RecordingError)
    if compression == b"zstd":
        _check_zstd(path, file.read(compressed_size))
    elif compression == b"lz4":
        # LZ4 expands at most 255 times.
        require_unpacked_size(
            path, 255 * compressed_size if compressed_size > 10_000_000 else 0, compressed_size
        )


def _check_zstd(source: object, data: bytes) -> None:
    """Check the size in the header of a zstd frame, which binds the decompressor; count without
    one.
    """
    from rosbags.rosbag2.reader import zstd

    try:
        declared = zstd.get_frame_info(data[:_FRAME_HEADER_BYTES]).decompressed_size
    except zstd.ZstdError:
        return
    if declared is not None:
        require_unpacked_size(source, declared, len(data), error=RecordingError)

    def count(data: bytes) -> Iterator[int]:
        unpack = zstd.ZstdDecompressor()
        chunk = data
        while not unpack.eof:
            try:
                out = unpack.decompress(chunk, 1 << 20)
            except zstd.ZstdError:
                return
            chunk = b""
            yield len(out)
            if not out and unpack.needs_input:
                return

    if declared is None:
        require_decompressed_size(source, data, count)


def _check_messages(path: Path) -> None:
    """Check a database whose messages are compressed one by one."""
    import sqlite3

    from rosbags.rosbag2.reader import zstd

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            rows = base.execute(
                f"SELECT substr(data, 1, {_FRAME_HEADER_BYTES}), length(data) FROM messages"
            )
            for head, length in rows:
                size = zstd.get_frame_info(bytes(head)).decompressed_size
                require_unpacked_size(path, size or 0, length, error=RecordingError)
                if size is None:
                    raise RecordingError(f"{path}: a packed message does not say its size.")
    except (sqlite3.Error, zstd.ZstdError, TypeError, ValueError):
        return


def _check_ros1(path: Path) -> None:
    """Check ROS 1 records: a header with named fields, and data."""
    end = path.stat().st_size
    with path.open("rb") as file:
        file.readline(100)
        while len(head := file.read(4)) == 4:
            (length,) = struct.unpack("<I", head)
            if length > end - file.tell():
                return
            fields = file.read(length)
            (length,) = struct.unpack("<I", file.read(4).ljust(4, b"\0"))
            start = file.tell()
            if length > end - start:
                return
            if b"op=\x05" in fields and b"compression=bz2" in fields:
                require_decompressed_size(path, file.read(length), _bz2_sizes)
            file.seek(start + length)


def _bz2_sizes(data: bytes) -> Iterator[int]:
    unpack = bz2.BZ2Decompressor()
    chunk = data
    while not unpack.eof:
        try:
            out = unpack.decompress(chunk, 1 << 20)
        except (OSError, EOFError):
            return
        chunk = b""
        yield len(out)
        if not out and unpack.needs_input:
            return
