"""What a packed container unpacks to is counted, whatever its head says and wherever it ends."""

from __future__ import annotations

import bz2
import gzip
import io
import sqlite3
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2.reader import zstd

sys.path.insert(0, str(Path(__file__).parent))

import bombs

from taufit.core.decompression_limits import large_files
from taufit.core.errors import RecordingError
from taufit.recording.decompressed_size import (
    gzip_sizes,
    require_bag_size,
    require_decompressed_size,
    require_mat_size,
    zlib_sizes,
)

SIZE = 200_000_000
MARK = b"\x89MCAP0\r\n"


def chunk(packing: bytes, packed: bytes, said: int) -> bytes:
    body = struct.pack("<QQQI", 0, 1, said, 0) + struct.pack("<I", len(packing)) + packing
    body += struct.pack("<Q", len(packed)) + packed
    return struct.pack("<BQ", 6, len(body)) + body


def frame(size: int) -> bytes:
    """A frame of zeros that does not say its size."""
    pack, out = zstd.ZstdCompressor(), io.BytesIO()
    for _ in range(size // len(bombs.ZEROS)):
        out.write(pack.compress(bombs.ZEROS))
    out.write(pack.flush())
    return out.getvalue()


@pytest.mark.parametrize("name", ["bomb.mcap", "lying.mcap", "bomb.bag"])
def test_bags_are_counted_unless_limits_are_lifted(tmp_path, name):
    path = tmp_path / name
    bombs.BOMBS[name](path, SIZE)
    with pytest.raises(RecordingError, match="unpacks to"):
        require_bag_size(path)
    with large_files():
        require_bag_size(path)


def test_a_matlab_file_of_either_byte_order_is_counted(tmp_path):
    small, large = tmp_path / "small.mat", tmp_path / "large.mat"
    bombs.mat(large, SIZE)
    with pytest.raises(RecordingError, match="unpacks to"):
        require_mat_size(large)
    with large_files():
        require_mat_size(large)
    packed = zlib.compress(bytes(1000))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    plain = struct.pack(">II", 14, 16) + bytes(16)
    small.write_bytes(head + plain + struct.pack(">II", 15, len(packed)) + packed)
    require_mat_size(small)


def test_every_form_of_a_ros2_folder_is_counted(tmp_path):
    packed = frame(SIZE)
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "run.db3.zstd").write_bytes(packed)
    with pytest.raises(RecordingError, match="unpacks to"):
        require_bag_size(whole)

    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "run.mcap").write_bytes(MARK + chunk(b"zstd", packed, 1000))
    with pytest.raises(RecordingError, match="unpacks to"):
        require_bag_size(parts)

    single = tmp_path / "single"
    single.mkdir()
    (single / "metadata.yaml").write_text("compression_mode: MESSAGE\n")
    with sqlite3.connect(single / "run.db3") as base:
        base.execute("CREATE TABLE messages (data BLOB)")
        base.execute("INSERT INTO messages VALUES (?)", (packed,))
    base.close()
    with pytest.raises(RecordingError, match="does not say its size"):
        require_bag_size(single)


def test_a_frame_that_says_its_size_is_believed(tmp_path):
    path = tmp_path / "bag"
    path.mkdir()
    said = zstd.compress(bytes(SIZE))
    (path / "run.db3.zstd").write_bytes(said)
    with pytest.raises(RecordingError, match="unpacks to 200 MB"):
        require_bag_size(path)


def test_metadata_larger_than_any_is_refused(tmp_path):
    (tmp_path / "metadata.yaml").write_bytes(b"#" * 50_000_000)
    with pytest.raises(RecordingError, match="larger than a bag's metadata"):
        require_bag_size(tmp_path)


@pytest.mark.parametrize(
    "name, content",
    [
        ("cut.mcap", MARK + struct.pack("<BQ", 6, 10**6)),
        ("letters.mcap", MARK + chunk(b"z" * 200, b"", 0)),
        ("short.mcap", MARK + struct.pack("<BQ", 6, 40) + bytes(24) + b"\1\0\0\0" * 4),
        ("noise.mcap", MARK + chunk(b"zstd", b"noise" * 20, 100)),
        ("lz4.mcap", MARK + chunk(b"lz4", b"x" * 100, 100)),
        ("half.mcap", MARK + chunk(b"zstd", frame(len(bombs.ZEROS))[:-30], 100)),
        ("cut.bag", b"#ROSBAG V2.0\n" + struct.pack("<I", 10**6)),
        ("data.bag", b"#ROSBAG V2.0\n" + struct.pack("<II", 0, 10**6)),
        (
            "damaged.bag",
            b"#ROSBAG V2.0\n"
            + struct.pack("<I", 25)
            + b"op=\x05 compression=bz2".ljust(25)
            + struct.pack("<I", 40)
            + bz2.compress(b"x" * 100)[:30].ljust(40, b"\xff"),
        ),
        ("cut_inside.bag",
            b"#ROSBAG V2.0\n"
            + struct.pack("<I", 25)
            + b"op=\x05 compression=bz2".ljust(25)
            + struct.pack("<I", 20)
            + bz2.compress(bytes(range(100)))[:20]),
        ("other.txt", b"nothing"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_what_is_damaged_is_left_to_its_reader(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    require_bag_size(path)


def test_a_folder_whose_messages_are_no_table_is_left_to_its_reader(tmp_path):
    (tmp_path / "metadata.yaml").write_text("compression_mode: message\n")
    (tmp_path / "run.db3").write_bytes(b"no database" * 100)
    require_bag_size(tmp_path)


@pytest.mark.parametrize("pack, sizes", [(gzip.compress, gzip_sizes), (zlib.compress, zlib_sizes)])
def test_sizes_add_up_to_what_is_inside_up_to_the_damage(pack, sizes):
    inside = np.random.default_rng(1).bytes(100_000) + bytes(400_000)
    packed = pack(inside)
    assert sum(sizes(packed)) == len(inside)
    cut = sum(sizes(packed[: len(packed) // 2]))
    assert 0 < cut < len(inside)
    broken = bytearray(packed)
    broken[60_000:60_400] = bytes(400)
    assert sum(sizes(bytes(broken))) <= len(inside)
    require_decompressed_size("file", packed, sizes)


def test_gzip_members_follow_one_another():
    packed = gzip.compress(b"a" * 1000) + gzip.compress(b"b" * 500)
    assert sum(gzip_sizes(packed)) == 1500
    assert sum(gzip_sizes(packed + b"trailing")) == 1500
