"""The test for a change beside classic detectors, at equal alarms on the same contact-free minutes.

Noise of the test and levels of the classic detectors are learnt from the same runs (`FREE`). A
threshold from those runs too is not one of equal alarms: levels fit the runs they are learnt from,
and on other runs the classic detectors tell more. So three comparisons are given, each with every
detector's threshold set by one rule:

- as set up: once per hour along the tail of the runs that levels and noise were learnt from;
- equal rate: once per hour along the tail of all contact-free minutes, in half of which nothing was
  learnt;
- no alarm: the lowest threshold with none in all contact-free minutes.

The best classic detector is the one that finds most at the force in question, whichever it is.
TAUFIT_CONTACTS sets how many contacts of each force (250).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks import Row
from benchmarks.contact_rivals import RIVALS, Rival, blocks_of, levels_of, once_per_hour, score_of
from benchmarks.contact_runs import DATA, FREE, MOVING, SCORED, model, noise, stream_of
from taufit.contact import ContactDetector, ContactKind
from taufit.contact.injection import inject_contacts
from taufit.contact.recording_contacts import external_torque_blocks
from taufit.core.arrays import Array
from taufit.payload import Stream
from taufit.terms.friction.states import STATES

COUNT = int(os.environ.get("TAUFIT_CONTACTS", "250"))
FORCES = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 50.0)
HERE = "here"
# A contact that is told later than this was not found [s].
LATE = 0.5


class Trace(NamedTuple):
    """Evidence, or the square of a score, and when each value is known [s]."""

    value: Array
    time: Array


def rows() -> Iterator[Row]:
    if not (DATA / "ur10e").exists():
        return
    free, unseen = _blocks(FREE), _blocks(SCORED)
    detectors = tuple(free)
    rules: dict[str, Callable[[str], float]] = {
        "as set up": lambda who: once_per_hour(free[who]),
        "equal rate": lambda who: once_per_hour(free[who] + unseen[who]),
        "no alarm": lambda who: max(free[who] + unseen[who]),
    }
    minutes = 2.0 * len(unseen[HERE]) / 60.0
    for who in detectors:
        over = sum(value > rules["as set up"](who) for value in unseen[who])
        note = f"blocks of 2 s in {minutes:.1f} contact-free minutes that nothing was learnt from"
        yield Row(f"alarms as set up, {who}", over, "", "", note)
    found = {force: _tops(force) for force in FORCES}
    for rule, threshold in rules.items():
        shares = {
            who: {f: float(np.mean(found[f][who] > threshold(who))) for f in FORCES}
            for who in detectors
        }
        best = {f: max(shares[who][f] for who in detectors if who != HERE) for f in FORCES}
        for f in FORCES:
            name = max((w for w in detectors if w != HERE), key=lambda w: shares[w][f])
            note = f"{len(found[f][HERE])} contacts at the flange, 100 ms pulse; best: {name}"
            yield Row(f"{rule}: {f:g} N, here", 100.0 * shares[HERE][f], "%", "", note)
            yield Row(f"{rule}: {f:g} N, best classic", 100.0 * best[f], "%", "", note)
            if f >= 10.0 and best[f] > 0.0:
                target = ">= 1.8" if f == 20.0 and rule == "equal rate" else ""
                yield Row(f"{rule}: {f:g} N, times", shares[HERE][f] / best[f], "", target, note)
        for who, curve in ((HERE, shares[HERE]), ("best classic", best)):
            yield Row(f"{rule}: force of which 65 % are found, {who}", _force_of(curve), "N")


def _force_of(shares: dict[float, float], wanted: float = 0.65) -> float:
    """Force at which so large a share is found, along the curve."""
    return float(np.interp(wanted, [shares[f] for f in FORCES], FORCES))


@cache
def _levels(rival: Rival) -> Array:
    felt = [
        one for name in FREE for one in external_torque_blocks(model(), stream_of(name), noise())
    ]
    return levels_of(felt, rival, noise())


def _traces(source: Stream) -> dict[str, Trace]:
    """Of every detector; nothing is told, so that every peak is seen."""
    watch = ContactDetector(model(), noise())
    watch.threshold = np.inf
    values, times, last = [], [], None
    for sample in source.samples():
        seen = watch.update_clean(*sample)
        if seen is not None and seen is not last:
            last = seen
            moves = bool((seen.state < STATES.index("standing")).any())
            values.append(max(seen.evidence, 0.0) if moves else 0.0)
            times.append(sample[0])
    out = {HERE: Trace(np.array(values), np.array(times))}
    felt = external_torque_blocks(model(), source, noise())
    known = np.concatenate([f.time for f in felt]) + 1.0 / noise().rate_hz
    for rival in RIVALS:
        score = score_of(felt, rival, _levels(rival), noise().rate_hz)
        out[str(rival)] = Trace(score**2, known)
    return out


def _blocks(names: tuple[str, ...]) -> dict[str, list[float]]:
    """The largest of each block of contact-free runs."""
    out: dict[str, list[float]] = {}
    for name in names:
        for who, trace in _traces(stream_of(name)).items():
            out.setdefault(who, []).extend(blocks_of(trace.value, noise().rate_hz))
    return out


def _tops(force: float) -> dict[str, Array]:
    """The largest that each contact gives, the same contacts for every detector."""
    rng = np.random.default_rng(11)
    out: dict[str, list[float]] = {}
    while len(out.get(HERE, ())) < COUNT:
        for name in MOVING:
            hurt, put = inject_contacts(model(), stream_of(name), ContactKind(force, 0.1), rng)
            for who, (value, time) in _traces(hurt).items():
                out.setdefault(who, []).extend(
                    float(value[(time > one.time) & (time < one.time + LATE)].max()) for one in put
                )
    return {who: np.array(tops) for who, tops in out.items()}
