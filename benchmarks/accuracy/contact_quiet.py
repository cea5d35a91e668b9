"""Real UR10e runs without contact, with hands that push, and contacts that are no picks.

False alarms, bands of external torque by friction state, the two push files, and the payload filter
under contact. `benchmarks.contact_runs` says which runs are which.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.contact_runs import DATA, FREE, SCORED, fed, model, noise, recording, stream_of
from taufit.contact import ContactKind, find_contacts
from taufit.contact.injection import inject_contacts
from taufit.contact.recording_contacts import external_torque_blocks
from taufit.payload import PayloadFilter
from taufit.terms.friction.states import STATES

# Contacts that go through the payload filter, at least.
CONTACTS = 100
# About when hands began to push, read off the torque by eye to a tenth of a second.
PUSHES = {"push_pose_1": (1.9, 4.7, 8.4, 11.9), "push_pose_2": (0.6, 2.5, 4.9, 8.1, 11.4, 14.3)}


def rows() -> Iterator[Row]:
    if (DATA / "ur10e").exists():
        yield from _quiet()
        yield from _pushes()
        yield from _bands()
        yield from _payload()


def _quiet() -> Iterator[Row]:
    runs = {name: fed(stream_of(name))[0] for name in (*SCORED, *FREE)}
    for words, names in (("scored", SCORED), ("learnt from", FREE)):
        alarms = sum(len(runs[name].contacts) for name in names)
        minutes = sum(stream_of(name).time[-1] for name in names) / 60.0
        where = ", ".join(name for name in names if runs[name].contacts)
        note = f"{minutes:.1f} min{', in ' + where if where else ''}"
        yield Row(f"alarms in contact-free runs {words}", alarms, "", "<= 0", note)


def _first_tenth(name: str, about: float) -> float:
    """When the torque of a push has risen to a tenth of its height, where it shows most.

    Against the second before it; heights are compared in levels of noise.
    """
    source = stream_of(f"20_01_22-{name}")
    time = source.time
    before = (time > about - 0.7) & (time < about - 0.2)
    off = np.abs(source.torque - source.torque[before].mean(axis=0))
    during = (time > about - 0.2) & (time < about + 1.2)
    height = off[during].max(axis=0)
    joint = int(np.argmax(height / noise().level[STATES.index("rest")]))
    return float(time[during][np.argmax(off[during, joint] > 0.1 * height[joint])])


def _pushes() -> Iterator[Row]:
    delays, others = [], 0
    for name, abouts in PUSHES.items():
        done = find_contacts(model(), recording(f"20_01_22-{name}"), noise=noise())
        told = [one.detection_time for one in done.contacts]
        starts = [_first_tenth(name, about) for about in abouts]
        for start in starts:
            near = [t - start for t in told if -0.1 <= t - start <= 0.5]
            delays.append(min(near, default=np.nan))
        others += sum(all(not -0.1 <= t - s <= 1.0 for s in starts) for t in told)
    found = np.isfinite(delays)
    yield Row("real pushes found", 100.0 * float(np.mean(found)), "%", ">= 100", f"{len(delays)}")
    note = "after the first tenth of its torque, " + " ".join(f"{1e3 * d:.0f}" for d in delays)
    yield Row("real pushes: latest", float(np.nanmax(delays)), "s", "<= 0.15", note)
    yield Row("told between pushes", others, "", "", "friction that unwinds after a release")


def _bands() -> Iterator[Row]:
    own, by_state = model(), noise()
    felt = [
        one for name in SCORED for one in external_torque_blocks(own, stream_of(name), by_state)
    ]
    settle = round(0.5 * by_state.rate_hz)
    for k, state in enumerate(STATES):
        held = [
            (np.abs(f.smooth) <= by_state.band(f.state, f.drift_std))[settle:][
                (f.state[settle:] == k) & (f.max_excess[settle:, None] <= 0.0)
            ]
            for f in felt
        ]
        share = 100.0 * float(np.mean(np.concatenate(held)))
        yield Row(f"95 % band holds, {state}", share, "%", ">= 92", "and at most 98, other days")


def _payload() -> Iterator[Row]:
    """Contacts in empty runs, through the payload filter."""
    rng, put, told = np.random.default_rng(12), 0, {"pick": 0, "contact": 0}
    names = ("20_02_19_14harm50sec", "20_02_06-20sec_5harm")
    for k in itertools.count():
        if put >= CONTACTS:
            break
        force, seconds = float(rng.uniform(20.0, 50.0)), float(rng.uniform(0.1, 0.5))
        kind = ContactKind(force, seconds, "step")
        source = stream_of(names[k % len(names)])
        hurt, own = inject_contacts(model(), source, kind, rng, first_time=8.0)
        live, due = PayloadFilter(model(), gain_std=hurt.gain_std), 0.1
        for sample in hurt.samples():
            live.update(*sample)
            if sample[0] >= due:
                due = sample[0] + 0.1
                live.estimate()
        put += len(own)
        told["contact"] += sum(e.kind == "contact" for e in live.events)
        told["pick"] += sum(e.kind in ("pick", "drop", "change") for e in live.events)
    note = f"{put} contacts of 20-50 N and 0.1-0.5 s, {told['contact']} told as contacts"
    yield Row("contacts told as picks", told["pick"], "", "<= 0", note)
