"""What the payload filter costs, sample by sample, and how fast it sees a pick."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from taufit.payload import PayloadFilter, identify_payload, stream
from taufit.sim import read_preset
from taufit.sim.payload import Carried
from taufit.validation import identify


def rows() -> Iterator[Row]:
    preset = read_preset("ur10-paper")
    effects = preset.twin.effects
    twin = replace(preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=1.0)))
    model = identify(twin.robot, [twin.run(preset.motion(periods=10), seed=1).recording]).model

    fast = replace(twin, rate_hz=500.0)
    loaded = fast.run(preset.motion(periods=1), seed=2, payload=preset.payload).recording
    live, updates, outs = PayloadFilter(model), [], []
    for k, sample in enumerate(stream(model, loaded).samples()):
        start = time.perf_counter()
        live.update(*sample)
        updates.append(time.perf_counter() - start)
        if k % 50 == 49:
            start = time.perf_counter()
            live.estimate()
            outs.append(time.perf_counter() - start)
    note = "six joints, 500 Hz, wall time in this process"
    yield Row("update, median", 1e6 * float(np.median(updates)), "us", "<= 100", note)
    yield Row(
        "update, mean (chunks included)", 1e6 * float(np.mean(updates)), "us", "<= 2000", note
    )
    yield Row("read-out, median", 1e3 * float(np.median(outs)), "ms", "<= 1", note)
    yield Row("read-out, best", 1e3 * float(np.min(outs)), "ms", "", note)

    delays, wrong = [], 0
    for k in range(16):
        at = 11.2 + 0.55 * k
        pick = k % 2 == 0
        carried = Carried.lump(
            1.0, (0.0, 0.0, 0.05), pick=at if pick else None, drop=None if pick else at
        )
        run = twin.run(preset.motion(periods=2), seed=50 + k, payload=carried, rest=(0.5, 0.0))
        events = [e for e in identify_payload(model, run.recording).events if e.kind != "gap"]
        wrong += sum(e.time < at for e in events)
        after = [e.time - at for e in events if e.time >= at]
        delays.append(after[0] if after else np.inf)
    note = "1 kg picked or dropped in motion, 16 runs"
    yield Row("change of 1 kg found after, median", float(np.median(delays)), "s", "<= 0.25", note)
    yield Row("change of 1 kg found after, longest", float(np.max(delays)), "s", "", note)
    alarms = wrong
    for k in range(4):
        payload = preset.payload if k % 2 else ()
        run = twin.run(preset.motion(periods=15), seed=90 + k, payload=payload)
        alarms += len(identify_payload(model, run.recording).events)
    yield Row(
        "false alarms in 10 minutes", float(alarms), "", "<= 0", "empty and loaded, in motion"
    )
