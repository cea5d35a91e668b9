"""What the sense of touch costs, sample by sample, on a six-joint arm at two rates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.contact import ContactDetector
from taufit.payload import stream
from taufit.sim import random_fourier, read_preset
from taufit.workflow import identify


def rows() -> Iterator[Row]:
    twin = read_preset("ur10e-real").twin
    motion = random_fourier(twin.robot, seed=1, periods=3)
    model = identify(twin.robot, [twin.run(motion, seed=1, rest=(1.0, 1.0)).recording]).model
    for rate in (100.0, 500.0):
        run = replace(twin, rate_hz=rate).run(motion, seed=2, rest=(1.0, 1.0)).recording
        cost, samples = _cost(model, stream(model, run))
        note = f"CPU, mean of {samples} samples, cells at {model.training.noise.rate_hz:g} Hz"
        yield Row(f"update, {rate:g} Hz", 1e6 * cost, "us", "<= 60", note)


def _cost(model: Any, source: Any) -> tuple[float, int]:
    samples = list(source.samples())
    best = np.inf
    for _ in range(3):
        watch = ContactDetector(model)
        start = time.process_time()
        for sample in samples:
            watch.update(*sample)
        best = min(best, (time.process_time() - start) / len(samples))
    return float(best), len(samples)
