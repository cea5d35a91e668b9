"""What packed containers unpack to, found without unpacking them into memory.

Sizes that a file declares are trusted only where a reader is bound by them; everything else is
unpacked piece by piece, counted and thrown away, up to the limit.
"""

from __future__ import annotations

import bz2
import re
import sqlite3
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

_PIECE = 1 << 14
_FRAME_HEAD = 18
Count = Callable[[bytes], Iterator[int]]


def check_counted(source: object, data: bytes, count: Count) -> None:
    """Refuse packed bytes that unpack to too much; `count` yields sizes until it is done."""
    total = 0
    for size in count(data):
        total += size
        require_unpacked_size(source, total, len(data), error=RecordingError, so_far=True)


def gzip_sizes(data: bytes) -> Iterator[int]:
    """Sizes of the pieces all members of a gzip file unpack to, up to the first damage."""
    at = 0
    while data[at : at + 2] == b"\x1f\x8b":
        unzip = zlib.decompressobj(wbits=31)
        while at < len(data) and not unzip.eof:
            piece = data[at : at + _PIECE]
            try:
                yield len(unzip.decompress(piece))
            except zlib.error:
                return
            at += len(piece) - len(unzip.unused_data)
        if not unzip.eof:
            return


def zlib_sizes(data: bytes) -> Iterator[int]:
    """Sizes of the pieces a zlib stream unpacks to, up to the first damage."""
    unzip = zlib.decompressobj()
    for start in range(0, len(data), _PIECE):
        try:
            yield len(unzip.decompress(data[start : start + _PIECE]))
        except zlib.error:
            return
        if unzip.eof:
            return


def check_mat(path: Path) -> None:
    """Refuse a MATLAB file whose packed parts unpack to too much."""
    if limits_are_lifted():
        return
    with path.open("rb") as file:
        head = file.read(128)
        order = ">" if head[126:128] == b"MI" else "<"
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(order + "II", tag)
            if kind == 15:
                check_counted(path, file.read(size), zlib_sizes)
            else:
                file.seek(size, 1)


def check_bag(path: Path) -> None:
    """Refuse a bag one part of which unpacks to too much; bags are read part by part."""
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
    """MCAP: chunks of opcode, length, times, size, checksum, kind of packing and packed records."""
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
    fixed = file.read(32)
    (size,) = struct.unpack_from("<Q", fixed, 16)
    (letters,) = struct.unpack_from("<I", fixed, 28)
    if letters > 100:
        return
    packing = file.read(letters)
    file.seek(8, 1)
    packed = end - file.tell()
    if packed < 0:
        return
    require_unpacked_size(path, size, packed, error=RecordingError)
    if packing == b"zstd":
        _check_zstd(path, file.read(packed))
    elif packing == b"lz4":
        # At most 255 times as much, and no part of a bag may be large already.
        require_unpacked_size(path, 255 * packed if packed > 10_000_000 else 0, packed)


def _check_zstd(source: object, data: bytes) -> None:
    """The size in a zstd frame's head binds who unpacks it; without one it is counted."""
    from rosbags.rosbag2.reader import zstd

    try:
        declared = zstd.get_frame_info(data[:_FRAME_HEAD]).decompressed_size
    except zstd.ZstdError:
        return
    if declared is not None:
        require_unpacked_size(source, declared, len(data), error=RecordingError)

    def count(data: bytes) -> Iterator[int]:
        unpack = zstd.ZstdDecompressor()
        fed = data
        while not unpack.eof:
            try:
                out = unpack.decompress(fed, 1 << 20)
            except zstd.ZstdError:
                return
            fed = b""
            yield len(out)
            if not out and unpack.needs_input:
                return

    if declared is None:
        check_counted(source, data, count)


def _check_messages(path: Path) -> None:
    """A database whose messages are packed one by one."""
    from rosbags.rosbag2.reader import zstd

    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            rows = base.execute(
                f"SELECT substr(data, 1, {_FRAME_HEAD}), length(data) FROM messages"
            )
            for head, length in rows:
                size = zstd.get_frame_info(bytes(head)).decompressed_size
                require_unpacked_size(path, size or 0, length, error=RecordingError)
                if size is None:
                    raise RecordingError(f"{path}: a packed message does not say its size.")
    except (sqlite3.Error, zstd.ZstdError, TypeError, ValueError):
        return


def _check_ros1(path: Path) -> None:
    """ROS 1: records of a header with named fields, and data."""
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
                check_counted(path, file.read(length), _bz2_sizes)
            file.seek(start + length)


def _bz2_sizes(data: bytes) -> Iterator[int]:
    unpack = bz2.BZ2Decompressor()
    fed = data
    while not unpack.eof:
        try:
            out = unpack.decompress(fed, 1 << 20)
        except (OSError, EOFError):
            return
        fed = b""
        yield len(out)
        if not out and unpack.needs_input:
            return
