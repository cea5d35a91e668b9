"""A recording being made can be read at any moment, whatever happens to its writer."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.recording import RecordingWriter, convert_live_recording, read_recording
from taufit.recording.live import _blocks

# Forks writers, kills each at a random moment and tells what it had appended by then.
KILLER = """
import json, mmap, os, random, signal, struct, sys, time
from taufit.recording import RecordingWriter
folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
children = []
for k in range(count):
    shared = mmap.mmap(-1, 24)
    pid = os.fork()
    if pid == 0:
        writer = RecordingWriter(f"{folder}/{k}.parquet", joints=6, fields=("velocity",))
        n = 0
        while True:
            now = time.monotonic()
            writer.append(now, [n] * 6, [now] * 6, velocity=[-n] * 6)
            n += 1
            shared[:24] = struct.pack("<ddq", now, struct.unpack("<d", shared[8:16])[0] or now, n)
            time.sleep(0.002)
    children.append((time.monotonic() + draw.uniform(0.02, 3.0), k, pid, shared))
out = []
for moment, k, pid, shared in sorted(children, key=lambda c: c[0]):
    time.sleep(max(0.0, moment - time.monotonic()))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    last, first, n = struct.unpack("<ddq", shared[:24])
    out.append({"k": k, "last": last, "first": first, "n": n})
print(json.dumps(out))
"""


def write(path, n=50, joints=2, per_block=10, close=False):
    writer = RecordingWriter(
        path,
        joints=joints,
        fields=("velocity",),
        flush_seconds=60,
        signal_unit="A",
        meta={"robot": "x"},
    )
    for k in range(n):
        t = 0.01 * k
        writer.append(t, [np.sin(t)] * joints, [k] * joints, velocity=[np.cos(t)] * joints)
        if k % per_block == per_block - 1:
            writer.flush()
    if close:
        return writer.close()
    writer._finish()
    return writer.live_path


def test_a_writer_killed_at_any_moment_loses_at_most_its_last_second(tmp_path):
    command = [sys.executable, "-c", KILLER, str(tmp_path), "12", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    killed = json.loads(ran.stdout)
    assert len(killed) == 12
    readable = 0
    for child in killed:
        path = tmp_path / f"{child['k']}.live"
        if child["last"] - child["first"] < 1.0 and not _has_samples(path):
            continue
        recording = read_recording(path)
        readable += 1
        assert "unfinished" in {finding.kind for finding in recording.findings}
        # A killed process loses what is in its memory, never what it has handed over.
        assert child["last"] - recording.time[-1] <= 1.0
        n = np.arange(len(recording))
        np.testing.assert_array_equal(recording.position[:, 5], n)
        np.testing.assert_array_equal(recording.velocity[:, 0], -n)
    assert readable >= 6


def _has_samples(path):
    try:
        read_recording(path)
    except RecordingError as error:
        assert (
            "flushed" in str(error)
            or "no samples" in str(error)
            or "no file" in str(error)
            or ("usable row" in str(error))
        )
        return False
    return True


def test_a_live_file_cut_anywhere_gives_its_whole_blocks(tmp_path):
    path = write(tmp_path / "run.parquet")
    data = path.read_bytes()
    whole = read_recording(path)
    cut = tmp_path / "cut.live"
    lengths = set()
    for size in range(0, len(data), 7):
        cut.write_bytes(data[:size])
        try:
            recording = read_recording(cut)
        except RecordingError:
            continue
        lengths.add(len(recording))
        assert "unfinished" in {finding.kind for finding in recording.findings}
        np.testing.assert_array_equal(recording.time, whole.time[: len(recording)])
        np.testing.assert_array_equal(recording.signal, whole.signal[: len(recording)])
    assert lengths == {10, 20, 30, 40}


def test_a_flipped_bit_ends_the_file_before_it(tmp_path):
    path = write(tmp_path / "run.parquet")
    data = bytearray(path.read_bytes())
    whole = read_recording(path)
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    recording = read_recording(path)
    assert 0 < len(recording) < len(whole)
    np.testing.assert_array_equal(recording.signal, whole.signal[: len(recording)])


def test_closing_leaves_parquet_and_no_live_file(tmp_path):
    recording = write(tmp_path / "run.parquet", close=True)
    assert not (tmp_path / "run.live").exists()
    again = read_recording(tmp_path / "run.parquet")
    np.testing.assert_array_equal(again.position, recording.position)
    assert again.meta["robot"] == "x" and again.signal_unit == "A"
    assert "unfinished" not in {finding.kind for finding in again.findings}


def test_after_a_crash_the_rest_can_be_compacted(tmp_path):
    path = write(tmp_path / "run.parquet")
    path.write_bytes(path.read_bytes()[:-5])
    recording = convert_live_recording(path, tmp_path / "saved.parquet")
    assert len(recording) == 40
    np.testing.assert_array_equal(read_recording(tmp_path / "saved.parquet").time, recording.time)


def test_an_exception_keeps_what_was_written(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        RecordingWriter(tmp_path / "r.parquet", joints=1) as writer,
    ):
        for k in range(5):
            writer.append(k, [k], [k], velocity=[k])
        1 / 0  # noqa: B018
    assert len(read_recording(tmp_path / "r.live")) == 5


def test_an_unfinished_recording_is_not_overwritten(tmp_path):
    write(tmp_path / "run.parquet")
    with pytest.raises(RecordingError, match="taufit convert"):
        RecordingWriter(tmp_path / "run.parquet", joints=2)


@pytest.mark.unchecked
def test_rows_in_blocks_are_the_rows_one_by_one(tmp_path):
    rng = np.random.default_rng(0)
    time, q, signal, warm = np.arange(40) / 100, *(rng.normal(size=(3, 40, 3)))
    fields = ("temperature", "velocity")
    one = RecordingWriter(tmp_path / "one.parquet", joints=3, fields=fields)
    many = RecordingWriter(tmp_path / "many.parquet", joints=3, fields=fields)
    for k in range(40):
        one.append(time[k], q[k], signal[k], velocity=-q[k], temperature=warm[k])
    many.extend(time[:13], q[:13], signal[:13], velocity=-q[:13], temperature=warm[:13])
    many.extend(time[13:], q[13:], signal[13:], velocity=-q[13:], temperature=warm[13:])
    for left, right in ((one.close(), many.close()),):
        for name in ("time", "position", "velocity", "signal", "temperature"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
        np.testing.assert_array_equal(left.position, q)
        np.testing.assert_array_equal(left.temperature, warm)
    writer = RecordingWriter(tmp_path / "bad.parquet", joints=3, fields=())
    with pytest.raises(RecordingError, match="expected 40 rows of 3"):
        writer.extend(time, q[:, :2], signal)
    writer._finish()


def test_an_unfinished_recording_of_version_0_1_is_read(tmp_path):
    import zlib

    import pyarrow as pa

    path = write(tmp_path / "run.parquet")
    recording = read_recording(path)
    page, names, blocks, _ = _blocks(path.read_bytes(), "run")
    page.pop("findings")
    schema = pa.schema(
        [(name, pa.float64()) for name in names], metadata={b"taufit": json.dumps(page).encode()}
    )
    sink = pa.BufferOutputStream()
    stream = pa.ipc.new_stream(sink, schema)
    for number, block in enumerate(blocks):
        columns = np.ascontiguousarray(block.T)
        batch = pa.record_batch(list(columns), names=names)
        crc = zlib.crc32(columns.tobytes(), number)
        stream.write_batch(batch, custom_metadata={b"crc32": str(crc).encode()})
    old = tmp_path / "old.live"
    old.write_bytes(sink.getvalue().to_pybytes()[:-100])
    np.testing.assert_array_equal(read_recording(old).signal, recording.signal[:40])


def test_wrong_samples_are_refused_and_leave_no_trace(tmp_path):
    writer = RecordingWriter(tmp_path / "run.parquet", joints=2, fields=())
    writer.append(0.0, [0, 0], [1, 1])
    with pytest.raises(RecordingError, match="3 numbers for 2 joints"):
        writer.append(0.1, [0, 0, 0], [1, 1])
    with pytest.raises(RecordingError, match="a sample needs position, signal"):
        writer.append(0.1, [0, 0], [1, 1], velocity=[0, 0])
    writer.append(0.2, [0.1, 0], [1, 2])
    assert writer.close().time.tolist() == [0.0, 0.2]
    with pytest.raises(RecordingError, match="already closed"):
        writer.append(0.3, [0, 0], [1, 1])
    with pytest.raises(RecordingError, match="there is no field speed"):
        RecordingWriter(tmp_path / "b.parquet", joints=2, fields=("speed",))


def test_other_files_called_live_are_refused(tmp_path):
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    table = pa.table({"t": [0.0, 1.0]})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    foreign = sink.getvalue().to_pybytes()
    for content in (b"", b"hello", b"\x00" * 100, b"\xff" * 100, foreign, foreign[:60]):
        (tmp_path / "x.live").write_bytes(content)
        with pytest.raises(RecordingError):
            read_recording(tmp_path / "x.live")
