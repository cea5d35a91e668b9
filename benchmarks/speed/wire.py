"""A robot on the wire: what a step and a recording cost, and what a killed recorder loses."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import Row
from taufit.core.errors import RecordingError
from taufit.excitation.robot_programs import to_urscript
from taufit.recording import read_recording
from taufit.sim import random_fourier, read_preset
from taufit.virtual.controllers import UrController
from taufit.wire import UrPorts, UrRtde

SECONDS, KILLS, AT_ONCE = 120.0, 100, 10

_RECORDER = """
import json, sys, time
from taufit.wire import UrPorts, UrRtde
from taufit.wire.recorder import record
port, path, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
source = UrRtde("127.0.0.1", ports=UrPorts(rtde=port))
description = source.connect()
print("ready", flush=True)
cpu = time.process_time()
done = record(source, path, seconds=seconds, description=description)
cpu = time.process_time() - cpu
steps = (done.recording.time[-1] - done.recording.time[0]) * 500 + 1
print(json.dumps({"cpu": cpu / done.seconds, "lost": done.lost, "twice": done.duplicated,
                  "samples": done.samples, "missing": round(steps) - done.samples}))
"""
_BURN = "while True: sum(range(10000))"


@contextmanager
def _served() -> Iterator[int]:
    """A virtual controller at 500 Hz; its RTDE port."""
    command = [sys.executable, "-m", "taufit", "simulate", "ur10", "--serve", "--json"]
    command += ["--ports", "free"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["ports"]["rtde"]
        finally:
            server.terminate()
            server.wait()


def _recorder(port: int, path: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _RECORDER, str(port), str(path), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _under_load() -> Iterator[Row]:
    note = f"{SECONDS:.0f} s at 500 Hz, two processes keep both cores busy"
    with tempfile.TemporaryDirectory() as folder, _served() as port:
        burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(2)]
        try:
            running = _recorder(port, Path(folder) / "run.parquet", SECONDS)
            output, _ = running.communicate(timeout=20 * SECONDS)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
    page = json.loads(output.splitlines()[-1])
    yield Row("recorder: samples lost", page["lost"] + page["missing"], "", "== 0", note)
    yield Row("recorder: samples duplicated", page["twice"], "", "== 0", f"of {page['samples']}")
    yield Row("recorder: share of a core", 100 * page["cpu"], "%", "< 5", "CPU time, file included")


def _killed() -> Iterator[Row]:
    """Recorders ended by SIGKILL; a witness on the same controller says what time it was."""
    draw, worst, read = random.Random(0), 0.0, 0
    with tempfile.TemporaryDirectory() as folder, _served() as port:
        witness = UrRtde("127.0.0.1", ports=UrPorts(rtde=port))
        witness.connect()
        for batch in range(0, KILLS, AT_ONCE):
            jobs = []
            for k in range(batch, batch + AT_ONCE):
                path = Path(folder) / f"{k}.parquet"
                running = _recorder(port, path, 1e6)
                assert running.stdout is not None and running.stdout.readline()
                jobs.append((time.monotonic() + draw.uniform(1.0, 4.0), path, running))
            for moment, path, running in sorted(jobs, key=lambda job: job[0]):
                now = None
                while time.monotonic() < moment or now is None:
                    block = witness.read(0.05)
                    now = float(block.time[-1]) if block is not None else now
                running.send_signal(signal.SIGKILL)
                running.wait()
                assert running.stdout is not None
                running.stdout.close()
                try:
                    recording = read_recording(path.with_suffix(".live"))
                except RecordingError:
                    continue
                read += 1
                worst = max(worst, now - float(recording.time[-1]))
        witness.close()
    yield Row("killed recorders: files readable", read, "", f">= {KILLS}", f"of {KILLS} kills")
    yield Row("killed recorders: worst loss", worst, "s", "<= 1", "against a witness's clock")


def _steps() -> Iterator[Row]:
    twin = replace(read_preset("ur10-paper").twin, rate_hz=500.0)
    home = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
    live, motion = twin.start(home), random_fourier(twin.robot, seed=1)
    rows = [motion.at((2 * k + np.arange(2)) * 1e-3) for k in range(2200)]
    for row in rows[:200]:
        live.step(*row)
    cpu = time.thread_time()
    for row in rows[200:]:
        live.step(*row)
    cost = (time.thread_time() - cpu) / 2000
    yield Row("twin: 2 ms step", 1e3 * cost, "ms", "< 0.5", "friction, ripple, noise; CPU time")
    controller = UrController(twin)
    slow = random_fourier(twin.robot, seed=1, centre=home, reach=0.4)
    controller.play(to_urscript(slow))
    for _ in range(500):
        controller.tick()
    cpu = time.thread_time()
    for _ in range(2000):
        controller.tick()
    both = (time.thread_time() - cpu) / 2000
    yield Row("controller: step with a program", 1e3 * both, "ms", "", "URScript, servo and twin")


def rows() -> Iterator[Row]:
    """The figures."""
    yield from _steps()
    yield from _under_load()
    yield from _killed()
