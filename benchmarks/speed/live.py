"""What one sample costs the whole monitor: payload, contact, prediction, friction; and its tail.

CPU time of `Monitor.update` over ten minutes (TAUFIT_LIVE_MINUTES sets another number) of six
joints at 500 Hz and seven joints at 1 kHz, as controllers send them, and over a period of the
motion at the 125 Hz of the grid; and of a read-out of the payload, which happens ten times a second
inside `update`. A controller waits for the slowest sample, not for the median. What the machine
adds is shown by an empty call beside each update, and by a second run over the same samples: an
update that is slow in both has more to do, one that is slow in one of them was interrupted.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import taufit
from benchmarks import Row
from benchmarks.speed.payload import Bench
from taufit.live import Monitor
from taufit.payload.stream import playback
from taufit.sim import random_fourier
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

MINUTES = float(os.environ.get("TAUFIT_LIVE_MINUTES", "10"))
PANDA_KG = 1.5


def rows() -> Iterator[Row]:
    bench = Bench()
    model, preset = bench.model(0), bench.preset
    for rate, minutes in ((500.0, MINUTES), (125.0, 0.0)):
        period = preset.motion(periods=1).duration
        periods = max(1.0, np.ceil(60.0 * minutes / period))
        twin = replace(bench.twin(0), rate_hz=rate)
        run = twin.run(preset.motion(periods=periods), seed=2, payload=preset.payload)
        yield from _update_rows(model, run.recording, rate, "six joints")
    yield from _update_rows(*_panda(1000.0), 1000.0, "seven joints")


def _panda(rate: float) -> tuple[Any, Any]:
    """Model of a simulated arm with seven joints, and its run with a payload."""
    twin = taufit.Twin.typical(taufit.read_robot("panda"))
    empty = twin.run(random_fourier(twin.robot, seed=31, periods=3.0), seed=32).recording
    model = identify(twin.robot, [empty]).model
    motion = random_fourier(twin.robot, seed=33, periods=1.0)
    periods = max(1.0, np.ceil(60.0 * MINUTES / motion.duration))
    motion = random_fourier(twin.robot, seed=33, periods=periods)
    payload = CarriedPayload.lump(PANDA_KG)
    return model, replace(twin, rate_hz=rate).run(motion, seed=34, payload=payload).recording


def _update_rows(model: Any, recording: Any, rate: float, arm: str) -> Iterator[Row]:
    used, empty, outs = _run(model, recording)
    again = _run(model, recording)[0]
    period = 1e6 / rate
    note = f"{arm}, {rate:.0f} Hz, {len(used)} samples, CPU time"
    name = f"update at {rate:.0f} Hz"
    yield Row(f"{name}, median", float(np.median(used)), "us", "<= 150", note)
    yield Row(f"{name}, mean", float(used.mean()), "us", "<= 60" if rate > 125 else "", note)
    yield Row(f"{name}, p99.9", float(np.quantile(used, 0.999)), "us", f"<= {period / 2:.0f}", note)
    yield Row(f"{name}, max", float(used.max()), "us", f"<= {period:.0f}", note)
    both = float(np.minimum(used, again).max())
    yield Row(f"{name}, max in both of two runs", both, "us", f"<= {period:.0f}", note)
    noise = float(empty.max())
    yield Row(f"{name}, max of an empty call", noise, "us", "", f"{note}; the machine's own tail")
    yield Row(f"core at {rate:.0f} Hz", 1e-4 * rate * float(used.mean()), "%", "", note)
    if outs:
        out = 1e3 * float(np.median(outs))
        yield Row(f"read-out at {rate:.0f} Hz, median", out, "ms", "<= 1", note)


def _run(model: Any, recording: Any) -> tuple[Any, Any, list[float]]:
    """CPU time of each update and of an empty call [us], and of some read-outs [s]."""
    monitor = Monitor(model, unit=recording.signal_unit)
    costs, outs, empty = [], [], []
    gc.collect()
    for row in playback(model, recording).rows():
        start = time.thread_time()
        monitor.update(*row)
        costs.append(time.thread_time() - start)
        start = time.thread_time()
        empty.append(time.thread_time() - start)
        if len(costs) % 5000 == 0 and monitor.payload is not None:
            start = time.thread_time()
            monitor.payload.filter.estimate()
            outs.append(time.thread_time() - start)
    return 1e6 * np.array(costs), 1e6 * np.array(empty), outs
