"""How long conditioning takes: a million jittered samples of six joints, columns filtered alike."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from taufit.recording import Recording
from taufit.signals import condition, lowpass


def _recording(n: int, rate_hz: float, jitter: float) -> Recording:
    rng = np.random.default_rng(0)
    stamps = (np.arange(n) + jitter * rng.uniform(-1, 1, n)) / rate_hz
    w = 2 * np.pi * np.array([0.1, 0.23, 0.31, 0.4, 0.52, 0.7])
    angle = stamps[:, None] * w
    return Recording(
        time=stamps,
        position=np.sin(angle),
        velocity=w * np.cos(angle) + 1e-3 * rng.normal(size=angle.shape),
        signal=50 * np.sin(angle) + np.sign(np.cos(angle)) + 0.5 * rng.normal(size=angle.shape),
        meta={"file": "benchmark"},
    )


def rows() -> Iterator[Row]:
    n = 1_000_000
    for rate in (1000.0, 200.0):
        recording = _recording(n, rate, 0.2)
        start = time.process_time()
        samples = condition(recording)
        seconds = time.process_time() - start
        yield Row(
            f"condition 1e6 samples x 6 joints, {rate:g} Hz with jitter",
            seconds,
            "CPU s",
            "< 3",
            f"to {samples.rate_hz:g} Hz, {len(samples)} samples; stamps, spikes, low-pass, masks",
        )
    columns = np.random.default_rng(1).normal(size=(len(samples) // 4, 6, 3))
    quarter = samples.rows(slice(0, len(samples) // 4))
    start = time.process_time()
    lowpass(quarter, columns)
    seconds = time.process_time() - start
    yield Row(
        "low-pass of one million column values",
        1e3 * seconds / (columns.size / 1e6),
        "ms",
        "",
        f"{columns.shape} columns, zero phase",
    )
