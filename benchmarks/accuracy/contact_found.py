"""Contacts put into real UR10e runs: what is found, how soon, and with what force.

Contacts are -J' f added to the recorded torque, random in time and direction, while the arm moves.
TAUFIT_CONTACTS sets how many of each kind (250). Which runs are which is in
`benchmarks.contact_runs`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.contact_runs import DATA, MOVING, fed, model, noise, stream_of
from taufit.contact import ContactKind
from taufit.contact.injection import detection_delay, inject_contacts

COUNT = int(os.environ.get("TAUFIT_CONTACTS", "250"))
KINDS = (
    (ContactKind(20.0, 0.1), ">= 65"),
    (ContactKind(30.0, 0.1), ">= 90"),
    (ContactKind(50.0, 0.1), ">= 97"),
    (ContactKind(20.0, 0.5, "step"), ">= 90"),
    (ContactKind(50.0, 0.5, "step"), ""),
    (ContactKind(30.0, 0.5, "step", link=2), ">= 75"),
)


def rows() -> Iterator[Row]:
    if (DATA / "ur10e").exists():
        yield from _injected()


def _injected() -> Iterator[Row]:
    note = f"{COUNT} contacts, {noise().tail.minutes:.1f} contact-free minutes for the threshold"
    for kind, target in KINDS:
        rng, delays, errors, inside, last = np.random.default_rng(11), [], [], [], []
        while len(delays) < COUNT:
            for name in MOVING:
                hurt, put = inject_contacts(model(), stream_of(name), kind, rng)
                watch, seen = fed(hurt, [one.time + 0.2 for one in put])
                for one, then in zip(put, seen, strict=True):
                    delays.append(detection_delay(watch.contacts, one))
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
