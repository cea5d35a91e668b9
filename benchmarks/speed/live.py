"""What one sample costs the whole monitor: payload, contact, prediction, friction; and its tail.

CPU time of `Monitor.update` on six joints, at 500 Hz as controllers send them and at the 125 Hz of
the grid, and of a read-out of the payload, which happens ten times a second inside `update`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.speed.payload import Bench
from taufit.live import Monitor
from taufit.payload.stream import playback


def rows() -> Iterator[Row]:
    bench = Bench()
    model = bench.model(0)
    for rate in (500.0, 125.0):
        twin = replace(bench.twin(0), rate_hz=rate)
        motion = bench.preset.motion(periods=1)
        recording = twin.run(motion, seed=2, payload=bench.preset.payload).recording
        monitor = Monitor(model, unit=recording.signal_unit)
        costs, outs = [], []
        for row in playback(model, recording).rows():
            start = time.thread_time()
            monitor.update(*row)
            costs.append(time.thread_time() - start)
            if len(costs) % 50 == 0 and monitor.payload is not None:
                start = time.thread_time()
                monitor.payload.filter.estimate()
                outs.append(time.thread_time() - start)
        note = f"six joints, {rate:.0f} Hz, {len(costs)} samples, CPU time"
        middle = 1e6 * float(np.median(costs))
        yield Row(f"update at {rate:.0f} Hz, median", middle, "us", "<= 150", note)
        mean = 1e6 * float(np.mean(costs))
        yield Row(f"update at {rate:.0f} Hz, mean", mean, "us", "<= 60" if rate > 125 else "", note)
        # A controller waits for the slowest sample, not for the median.
        period = 1e6 / rate
        late = 1e6 * float(np.quantile(costs, 0.999))
        yield Row(f"update at {rate:.0f} Hz, p99.9", late, "us", f"<= {period / 2:.0f}", note)
        yield Row(f"update at {rate:.0f} Hz, max", 1e6 * max(costs), "us", f"<= {period:.0f}", note)
        yield Row(f"core at {rate:.0f} Hz", 100.0 * rate * float(np.mean(costs)), "%", "", note)
        out = 1e3 * float(np.median(outs))
        yield Row(f"read-out at {rate:.0f} Hz, median", out, "ms", "<= 1", note)
