"""Contacts put into real UR10e runs: what is found, how soon, with what force, and by whom.

Contacts are -J' f added to the recorded torque, random in time and direction, while the arm moves.
The classic rivals get the same contacts: a momentum observer and inverse dynamics behind a causal
low-pass, each held against thresholds by joint and friction state, set for the same rate of alarms
on the same contact-free runs by the same rule.
TAUFIT_CONTACTS sets how many of each kind (250). Which runs are which is in
`benchmarks.contact_runs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import numpy as np

from benchmarks import Row
from benchmarks.contact_runs import DATA, FREE, MOVING, fed, model, noise, stream_of
from taufit.contact import Felt, Kind
from taufit.contact.injection import delay_of, with_contacts
from taufit.contact.run import felt_of
from taufit.friction.states import STATES
from taufit.payload import Stream
from taufit.payload.filter.lowpass import CausalLowpass

COUNT = int(os.environ.get("TAUFIT_CONTACTS", "250"))
KINDS = (
    (Kind(20.0, 0.1), ">= 65"),
    (Kind(30.0, 0.1), ">= 90"),
    (Kind(50.0, 0.1), ">= 97"),
    (Kind(20.0, 0.5, "step"), ">= 90"),
    (Kind(50.0, 0.5, "step"), ""),
    (Kind(30.0, 0.5, "step", link=2), ">= 75"),
)

RIVALS = ("momentum observer", "inverse dynamics")
# Of inverse dynamics' low-pass [Hz].
CUTOFF = 10.0


def rows() -> Iterator[Row]:
    if (DATA / "ur10e").exists():
        yield from _injected()
        yield from _rivals()


def _injected() -> Iterator[Row]:
    note = f"{COUNT} contacts, {noise().tail.minutes:.1f} contact-free minutes for the threshold"
    for kind, target in KINDS:
        rng, delays, errors, inside, last = np.random.default_rng(11), [], [], [], []
        while len(delays) < COUNT:
            for name in MOVING:
                hurt, put = with_contacts(model(), stream_of(name), kind, rng)
                watch, seen = fed(hurt, [one.time + 0.2 for one in put])
                for one, then in zip(put, seen, strict=True):
                    delays.append(delay_of(watch.contacts, one))
                    touched = None if then is None else then.contact
                    if kind.shape == "step" and touched is not None and np.isfinite(delays[-1]):
                        low, high = touched.force.interval
                        errors.append(np.linalg.norm(touched.force.value - one.force))
                        inside += ((low <= one.force) & (one.force <= high)).tolist()
                        loaded = np.flatnonzero(np.abs(one.torque) > 0.5)
                        last.append(
                            abs(touched.joint - 1 - (loaded[-1] if len(loaded) else 0)) <= 1
                        )
        delay = np.array(delays)
        told = delay[np.isfinite(delay)]
        place = "flange" if kind.link == 0 else "elbow"
        words = f"{place} {kind.force:g} N {1e3 * kind.seconds:.0f} ms {kind.shape}"
        yield Row(f"{words}: found", 100.0 * len(told) / len(delay), "%", target, note)
        yield Row(f"{words}: median delay", 1e3 * float(np.median(told)), "ms", "<= 60")
        yield Row(f"{words}: 90 % delay", 1e3 * float(np.quantile(told, 0.9)), "ms", "<= 90")
        if errors and kind.link == 0:
            yield Row(f"{words}: force error", float(np.median(errors)), "N", "<= 2.5", "at 200 ms")
            yield Row(f"{words}: 90 % force error", float(np.quantile(errors, 0.9)), "N", "<= 6.5")
            yield Row(
                f"{words}: inside 95 % interval", 100.0 * float(np.mean(inside)), "%", ">= 93"
            )
            least = ">= 95" if kind.force >= 50.0 else ""
            yield Row(f"{words}: last joint within one", 100.0 * float(np.mean(last)), "%", least)


def _signal(felt: Felt, rival: str) -> np.ndarray:
    """What a classic detector looks at: external torque behind its own low-pass."""
    if rival == "momentum observer":
        return np.abs(felt.smooth)
    return np.abs(CausalLowpass(noise().rate_hz, CUTOFF)(felt.torque))


@cache
def _levels(rival: str) -> np.ndarray:
    """The 95 % quantile of a classic detector's signal by friction state and joint."""
    felt = [one for name in FREE for one in felt_of(model(), stream_of(name), noise())]
    signal = np.concatenate([_signal(one, rival) for one in felt])
    state = np.concatenate([one.state for one in felt])
    out = np.array(noise().level)
    for k in range(len(STATES)):
        for j in range(signal.shape[1]):
            own = signal[state[:, j] == k, j]
            if len(own) > 300:
                out[k, j] = np.quantile(own, 0.95) / 1.96
    return out


def _score(source: Stream, rival: str) -> tuple[np.ndarray, np.ndarray]:
    """Of a classic detector, cell by cell: the largest of the joints, and when it is known.

    Cells in which nothing moves, or that follow an acceleration beyond the training's, do not
    count: its thresholds would be useless otherwise.
    """
    felt, level = felt_of(model(), source, noise()), _levels(rival)
    joints = np.arange(level.shape[1])
    score = [
        np.where(
            (f.state < STATES.index("standing")).any(axis=1) & (f.jolt <= 0.0),
            (_signal(f, rival) / level[f.state, joints]).max(axis=1),
            0.0,
        )
        for f in felt
    ]
    step = 1.0 / noise().rate_hz
    return np.concatenate(score), np.concatenate([f.time + step for f in felt])


@cache
def _threshold(rival: str) -> float:
    """For the stated rate, by the same rule: an exponential tail of blocks of the same runs."""
    size = round(2.0 * noise().rate_hz)
    blocks = []
    for name in FREE:
        score = _score(stream_of(name), rival)[0]
        blocks += [score[i : i + size].max() for i in range(0, len(score) - size + 1, size)]
    start = np.quantile(blocks, 0.9)
    over = np.array([x - start for x in blocks if x > start])
    return float(start + over.mean() * np.log(0.1 * 1800.0))


def _rivals() -> Iterator[Row]:
    """The same 20 N pulses through the classic detectors."""
    rng, ours = np.random.default_rng(11), []
    found: dict[str, list[bool]] = {rival: [] for rival in RIVALS}
    while len(ours) < COUNT:
        for name in MOVING:
            hurt, put = with_contacts(model(), stream_of(name), Kind(20.0, 0.1), rng)
            watch, _ = fed(hurt)
            ours += [bool(np.isfinite(delay_of(watch.contacts, one))) for one in put]
            for rival, hits in found.items():
                score, time = _score(hurt, rival)
                for one in put:
                    near = (time > one.time) & (time < one.time + 0.5)
                    hits.append(bool((score[near] > _threshold(rival)).any()))
    own, best = 100.0 * float(np.mean(ours)), 0.0
    note = f"{len(ours)} contacts, thresholds by state, same rule, runs and contacts"
    yield Row("flange 20 N 100 ms pulse: found, here", own, "%", "", note)
    for rival, hits in found.items():
        share = 100.0 * float(np.mean(hits))
        best = max(best, share)
        yield Row(f"flange 20 N 100 ms pulse: found, {rival}", share, "%", "", note)
    yield Row("times the best classic detector", own / max(best, 1e-9), "", ">= 1.8", note)
