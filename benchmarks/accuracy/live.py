"""The monitor on streams: the payload of a file, contacts that are no picks, picks that are seen.

Everything is fed to `Monitor` and nothing else. Shared recordings of a UR10e, models from other
runs: loaded ones, and empty ones into which contacts at the tool in random directions are put.
Simulated arms: runs with payload, and a kilogram picked or dropped on the way.
TAUFIT_LIVE_RUNS sets how many simulated runs (20), TAUFIT_LIVE_CONTACTS how many contacts (100).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.payload_real import EMPTY, LOADED, SHARED, TRAINING, read
from benchmarks.speed.payload import SHOWS, Bench, shown
from taufit.contact.injection import ContactKind, inject_contacts
from taufit.live import Monitor
from taufit.payload import identify_payload, stream
from taufit.payload.stream import playback
from taufit.robot import read_robot
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

RUNS = int(os.environ.get("TAUFIT_LIVE_RUNS", "20"))
CONTACTS = int(os.environ.get("TAUFIT_LIVE_CONTACTS", "100"))
SEED = 61_000
CHANGES = ("pick", "drop", "change")


def rows() -> Iterator[Row]:
    if SHARED.is_dir():
        names = TRAINING["three runs"]
        robot = read_robot(SHARED / "ur10e.urdf")
        model = identify(robot, [read(name) for name in names]).model
        apart = [_apart(model, read(name)) for name in LOADED]
        note = f"standard deviations, mass and centre, {len(apart)} shared loaded runs"
        yield Row("file and stream differ by at most, shared", max(apart), "", "<= 0.1", note)
        yield from _contacts(model, [name for name in EMPTY if name not in names])
    bench = Bench()
    apart = []
    for run in range(RUNS):
        arm = run % 2
        mass, centre = 0.3 * 1.18**run, (0.02, 0.01 * (run % 5), 0.03 + 0.01 * run)
        recording = (
            bench.twin(arm)
            .run(bench.motion(run, 1.0), seed=SEED + run, payload=CarriedPayload.lump(mass, centre))
            .recording
        )
        apart.append(_apart(bench.model(arm), recording))
    note = f"standard deviations, {RUNS} simulated runs"
    yield Row("file and stream differ by at most, simulated", max(apart), "", "<= 0.1", note)
    yield from _picks(bench)


def _apart(model: Any, recording: Any) -> float:
    """How far apart file and stream are at the end, in standard deviations."""
    whole = identify_payload(model, recording).estimate
    monitor = Monitor(model, unit=recording.signal_unit)
    for row in playback(model, recording).rows():
        monitor.update(*row)
    monitor.finish()
    assert monitor.payload is not None and monitor.payload.newest is not None
    found = monitor.payload.newest
    apart = np.abs(found.centre - whole.centre) / whole.centre_std
    return max(abs(found.mass - whole.mass) / whole.mass_std, float(apart.max()))


def _contacts(model: Any, names: list[str]) -> Iterator[Row]:
    rng = np.random.default_rng(SEED)
    sources = [stream(model, read(name)) for name in names]
    count = wrong = told = k = 0
    while count < CONTACTS:
        shape = "pulse" if rng.random() < 0.5 else "step"
        kind = ContactKind(float(rng.uniform(20.0, 50.0)), float(rng.uniform(0.1, 0.5)), shape)
        hurt, put = inject_contacts(model, sources[k % len(sources)], kind, rng, first_time=12.0)
        monitor = Monitor(model)
        for _ in monitor.run(hurt.samples()):
            pass
        count, k = count + len(put), k + 1
        wrong += sum(event.kind in CHANGES for event in monitor.events)
        begun = [e.since for e in monitor.events if e.kind in ("contact", "pick or contact")]
        told += sum(any(s is not None and -0.1 < s - one.time < 0.6 for s in begun) for one in put)
    note = f"{count} contacts of 20 to 50 N and 0.1 to 0.5 s on {len(names)} shared empty runs"
    yield Row("contacts told as picks or drops", wrong, "", "<= 0", note)
    yield Row("contacts told", 100.0 * told / count, "%", "", note)


def _picks(bench: Bench) -> Iterator[Row]:
    """A kilogram picked or dropped: when it is noticed, and what is said of it."""
    rng = np.random.default_rng(SEED + 1)
    delays, arrived, right, sizes, called = [], [], 0, [], 0
    for run in range(2 * RUNS):
        arm, at = run % 2, float(rng.uniform(9.0, 17.0))
        centre = rng.uniform((-0.08, -0.08, 0.0), (0.08, 0.08, 0.12))
        pick = run % 4 < 2
        carried = CarriedPayload.lump(
            1.0, centre, pick=at if pick else None, drop=None if pick else at
        )
        recording = (
            bench.twin(arm)
            .run(bench.motion(run, 2.0), seed=SEED + 500 + run, payload=carried, rest=(0.5, 0.0))
            .recording
        )
        visible, moves = shown(bench.model(arm), recording, carried, at)
        if visible < SHOWS or not moves:
            continue
        monitor = Monitor(bench.model(arm), recording)
        # For how long each contact has been called one: until then it is "pick or contact".
        first_call: dict[float, float] = {}
        longest = 0.0
        for reading in monitor:
            touch = reading.contact
            if touch is not None and touch.kind == "contact" and touch.start_time > at - 0.1:
                longest = max(
                    longest, reading.time - first_call.setdefault(touch.start_time, reading.time)
                )
        called += longest > 1.0
        events = [e for e in monitor.events if e.time >= at]
        first = [e.time - at for e in events if e.kind in ("pick or contact", "contact", *CHANGES)]
        decided = [e for e in events if e.kind in CHANGES]
        arrived.append(min(first, default=np.inf))
        if decided and decided[0].since is not None:
            delays.append(decided[0].since - at)
            right += decided[0].kind == ("pick" if pick else "drop")
        sizes += [abs(e.mass_change) for e in decided if e.mass_change is not None]
    note = f"{len(arrived)} of {2 * RUNS} picks and drops of 1 kg: those that show and move"
    if not delays:
        return
    yield Row("1 kg: noticed after, median", float(np.median(delays)), "s", "<= 0.11", note)
    late = float(np.median(arrived))
    yield Row("1 kg: first event after, median", late, "s", "", "waiting for samples included")
    yield Row("1 kg: called a contact for longer than 1 s", called, "", "<= 0", note)
    yield Row("1 kg: told as what it was", 100.0 * right / len(arrived), "%", "", note)
    if sizes:
        worst = 100.0 * float(np.median(np.abs(np.array(sizes) - 1.0)))
        yield Row("1 kg: mass change off by, median", worst, "%", "", f"{len(sizes)} events")
