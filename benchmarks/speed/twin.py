"""How fast the twin is: wall seconds and times real time, with everything on."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import Row
from taufit.recording import write_recording
from taufit.sim import Thermal, read_preset
from taufit.sim.batch import run_many


def rows() -> Iterator[Row]:
    preset = read_preset("ur10-paper")
    twin = replace(preset.twin, rate_hz=1000.0)
    warm = replace(twin, effects=replace(twin.effects, thermal=Thermal(viscous_slope=-0.2)))
    motion = preset.motion(periods=1)
    warm.run(motion)

    cpu = min(_cpu(lambda: warm.run(motion)) for _ in range(5))
    yield Row(
        "UR10, 1 kHz, friction, thermal states, noise: times real time",
        (motion.duration + 1.4) / cpu,
        "x",
        ">= 20",
        "CPU time, best of 5, one core; 10 s motion, rest and settling included",
    )
    long = replace(motion, periods=10)
    cpu = _cpu(lambda: warm.run(long))
    yield Row("the same, 100 s", (long.duration + 1.4) / cpu, "x", ">= 20", "CPU time, one core")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.parquet"
        wall = min(
            _wall(lambda: write_recording(preset.twin.run(motion).recording, path))
            for _ in range(5)
        )
    yield Row(
        "10 s UR10 recording, simulated and written",
        wall,
        "s",
        "<= 0.5",
        "wall, best of 5, modules loaded",
    )
    cpu = _cpu(lambda: warm.run(replace(motion, periods=0.2), compiled=False))
    yield Row(
        "without the compiled loop: times real time",
        (0.2 * motion.duration + 1.4) / cpu,
        "x",
        "",
        "CPU time",
    )
    one, two = (_wall(lambda w=w: list(run_many(warm, long, range(4), workers=w))) for w in (1, 2))
    yield Row(
        "batch of 4 runs of 100 s: 2 threads over 1",
        one / two,
        "x",
        "",
        "wall; depends on the load",
    )
    franka = read_preset("franka")
    path_of = franka.motion(0)
    cpu = _cpu(lambda: franka.twin.run(path_of))
    yield Row(
        "Panda with elastic joints, 1 kHz: times real time",
        path_of.duration / cpu,
        "x",
        "",
        "CPU time; small steps for the springs",
    )


def _cpu(action) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _wall(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
