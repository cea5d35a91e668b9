"""Small files that unpack to a great deal, in every packed format taufit reads."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

ZEROS = bytes(1 << 24)


def _deflated(size: int) -> tuple[bytes, int]:
    """A raw deflate stream of zeros, at least `size` of them, made from one repeated block."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = pack.compress(ZEROS) + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(ZEROS) + pack.flush(zlib.Z_FULL_FLUSH)
    count = -(-size // len(ZEROS))
    return first + block * (count - 1) + pack.flush(), count * len(ZEROS)


def csv_gz(path: Path, size: int) -> None:
    """Gzip members of one long row after another."""
    row = b"0.0," * 20 + b"0.0\n"
    text = row * (len(ZEROS) // len(row))
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    member = pack.compress(text) + pack.flush()
    head = zlib.compressobj(9, zlib.DEFLATED, 31)
    names = head.compress(b"t," + b",".join(b"c%d" % i for i in range(20)) + b"\n") + head.flush()
    path.write_bytes(names + member * (size // len(text)))


def npz(path: Path, size: int) -> None:
    """A zip archive whose only part is an array of zeros."""
    head = io.BytesIO()
    count = size // 8
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    data, unpacked = _deflated(size)
    first = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = first.compress(head.getvalue()) + first.flush(zlib.Z_FULL_FLUSH) + data
    unpacked += len(head.getvalue())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("q.npy"), data)
    raw = bytearray(path.read_bytes())
    shown = min(unpacked, 0xFFFFFFFE)
    for mark, method, at in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        start = raw.index(mark)
        struct.pack_into("<H", raw, start + method, 8)
        struct.pack_into("<I", raw, start + at, shown)
    path.write_bytes(raw)


def parquet(path: Path, size: int) -> None:
    """Columns of one value each, run-length encoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["t", *(f"q_{i}" for i in range(1, 7)), *(f"torque_{i}" for i in range(1, 7))]
    rows = 2_000_000
    table = pa.table({name: pa.array(np.zeros(rows)) for name in names})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(max(1, size // (8 * rows * len(names)))):
            writer.write_table(table, row_group_size=rows)


def hdf5(path: Path, size: int) -> None:
    """A data set of which no part was ever written: all fill value."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("q", (size // 48, 6), "f8", chunks=(100_000, 6), compression="gzip")


def mcap(path: Path, size: int, *, declared: bool = True) -> None:
    """One chunk of zeros; its head may say less than is in it."""
    from rosbags.rosbag2.reader import zstd

    pack = zstd.ZstdCompressor()
    packed = io.BytesIO()
    for _ in range(-(-size // len(ZEROS))):
        packed.write(pack.compress(ZEROS))
    packed.write(pack.flush())
    data = packed.getvalue()
    said = size if declared else 1000
    chunk = struct.pack("<QQQI", 0, 1, said, 0) + struct.pack("<I", 4) + b"zstd"
    chunk += struct.pack("<Q", len(data)) + data
    header = struct.pack("<I", 4) + b"ros2" + struct.pack("<I", 0)
    mark = b"\x89MCAP0\r\n"
    path.write_bytes(
        mark
        + struct.pack("<BQ", 1, len(header))
        + header
        + struct.pack("<BQ", 6, len(chunk))
        + chunk
        + struct.pack("<BQ", 15, 4)
        + bytes(4)
        + struct.pack("<BQ", 2, 20)
        + bytes(20)
        + mark
    )


def mcap_lying(path: Path, size: int) -> None:
    mcap(path, size, declared=False)


def mat(path: Path, size: int) -> None:
    """A version 5 file with one packed element of zeros."""
    pack = zlib.compressobj(9)
    data = b"".join(pack.compress(ZEROS) for _ in range(-(-size // len(ZEROS)))) + pack.flush()
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    path.write_bytes(head + struct.pack("<II", 15, len(data)) + data)


def bag(path: Path, size: int) -> None:
    """A ROS 1 bag with one bz2 chunk."""
    import bz2

    pack = bz2.BZ2Compressor()
    data = b"".join(pack.compress(ZEROS) for _ in range(-(-size // len(ZEROS)))) + pack.flush()

    def header(**fields: bytes) -> bytes:
        out = b""
        for name, value in fields.items():
            field = name.encode() + b"=" + value
            out += struct.pack("<I", len(field)) + field
        return struct.pack("<I", len(out)) + out

    first = header(op=b"\x03", index_pos=struct.pack("<Q", 0), conn_count=bytes(4))
    chunk = header(op=b"\x05", compression=b"bz2", size=struct.pack("<I", 1000))
    path.write_bytes(
        b"#ROSBAG V2.0\n"
        + first
        + struct.pack("<I", 0)
        + chunk
        + struct.pack("<I", len(data))
        + data
    )


BOMBS: dict[str, Callable[[Path, int], None]] = {
    "bomb.csv.gz": csv_gz,
    "bomb.npz": npz,
    "bomb.parquet": parquet,
    "bomb.h5": hdf5,
    "bomb.mcap": mcap,
    "lying.mcap": mcap_lying,
    "bomb.mat": mat,
    "bomb.bag": bag,
}
