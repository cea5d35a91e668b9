"""Recordings in and out: how fast, how small, and what a killed writer loses."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row
from taufit.core.errors import RecordingError
from taufit.recording import Recording, read_recording, write_recording

SAMPLES, JOINTS, KILLS = 60_000, 6, 100

# Forks writers at 500 Hz, ends each with SIGKILL at a random moment, and tells what it had taken.
_KILLER = """
import json, mmap, os, random, signal, struct, sys, time
from taufit.recording import RecordingWriter
folder, count = sys.argv[1], int(sys.argv[2])
draw = random.Random(2)
out = []
for batch in range(0, count, 20):
    children = []
    for k in range(batch, min(batch + 20, count)):
        shared = mmap.mmap(-1, 24)
        pid = os.fork()
        if pid == 0:
            writer = RecordingWriter(f"{folder}/{k}.parquet", joints=6, fields=("velocity",))
            n, first = 0, time.monotonic()
            while True:
                now = time.monotonic()
                writer.append(now, [n] * 6, [now] * 6, velocity=[-n] * 6)
                n += 1
                shared[:24] = struct.pack("<ddq", now, first, n)
                time.sleep(0.002)
        children.append((time.monotonic() + draw.uniform(0.02, 6.0), k, pid, shared))
    for moment, k, pid, shared in sorted(children, key=lambda c: c[0]):
        time.sleep(max(0.0, moment - time.monotonic()))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        last, first, n = struct.unpack("<ddq", shared[:24])
        out.append({"k": k, "last": last, "first": first, "n": n})
print(json.dumps(out))
"""


def _recording() -> Recording:
    rng = np.random.default_rng(0)
    clock = np.arange(SAMPLES) * 0.002
    phase = clock[:, None] * np.linspace(0.3, 1, JOINTS)

    def noise(level: float) -> np.ndarray:
        return rng.normal(size=(SAMPLES, JOINTS)) * level

    return Recording(
        time=clock,
        position=np.sin(phase) + noise(1e-5),
        velocity=np.cos(phase) * np.linspace(0.3, 1, JOINTS) + noise(1e-3),
        signal=noise(1.0),
        signal_unit="A",
        torque_source="motor_current",
        target_current=noise(1.0),
        target_torque=noise(10.0),
        temperature=30 + noise(0.1),
    )


def _cpu(work: Callable[[], object]) -> float:
    """Least CPU time of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def rows() -> Iterator[Row]:
    recording = _recording()
    size = f"{SAMPLES} samples, {JOINTS} joints, 37 columns, one core"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writing, reading, bytes_ = {}, {}, {}
        for ending in (".parquet", ".csv", ".npz", ".mcap"):
            path = folder / f"run{ending}"
            writing[ending] = _cpu(lambda path=path: write_recording(recording, path))
            reading[ending] = _cpu(lambda path=path: read_recording(path))
            bytes_[ending] = path.stat().st_size
        yield Row(
            "recording: Parquet written faster than CSV",
            writing[".csv"] / writing[".parquet"],
            "x",
            ">= 3",
            size,
        )
        yield Row(
            "recording: Parquet read faster than CSV",
            reading[".csv"] / reading[".parquet"],
            "x",
            ">= 1.5",
            size,
        )
        yield Row(
            "recording: Parquet smaller than CSV",
            bytes_[".csv"] / bytes_[".parquet"],
            "x",
            ">= 1.5",
            size + "; mostly noise",
        )
        rate = SAMPLES / reading[".mcap"]
        yield Row("recording: MCAP samples read per CPU second", rate, "1/s", "", size)
        yield from _text_rows(folder)
        yield from _kill_rows(folder)


def _text_rows(folder: Path) -> Iterator[Row]:
    """A foreign text table through a map, screening included, against bare pandas and NumPy."""
    recording = _recording()
    table = np.column_stack(
        [recording.time, recording.position, recording.velocity, recording.signal]
    )
    path = folder / "foreign.csv"
    np.savetxt(path, table, delimiter=",", fmt="%.6f")
    page = {"columns": {"time": 1, "position": "2-7", "velocity": "8-13", "current": "14-19"}}
    ours = _cpu(lambda: read_recording(path, column_map=page))
    bare = _cpu(lambda: np.genfromtxt(path, delimiter=","))
    note = f"{SAMPLES} x 19 cells; screening included, numpy.genfromtxt only parses"
    yield Row("recording: CSV through a map faster than genfromtxt", bare / ours, "x", ">= 3", note)


def _kill_rows(folder: Path) -> Iterator[Row]:
    command = [sys.executable, "-c", _KILLER, str(folder), str(KILLS)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    worst, unreadable, wrong = 0.0, 0, 0
    for child in json.loads(ran.stdout):
        try:
            back = read_recording(folder / f"{child['k']}.live")
        except RecordingError:
            # Before its first flush a writer has nothing to show, and has lost under a second.
            lost = child["last"] - child["first"]
            unreadable += lost > 1.0
        else:
            lost = child["last"] - back.time[-1]
            n = np.arange(len(back))
            wrong += not (
                np.array_equal(back.position[:, 0], n) and np.array_equal(back.velocity[:, 0], -n)
            )
        worst = max(worst, lost)
    note = f"{KILLS} writers at 500 Hz ended by SIGKILL at random moments within 6 s"
    yield Row("recording: most lost by a killed writer", float(worst), "s", "<= 1", note)
    yield Row("recording: unreadable after a kill", float(unreadable), "", "== 0", note)
    yield Row("recording: wrong numbers after a kill", float(wrong), "", "== 0", note)
