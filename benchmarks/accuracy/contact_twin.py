"""False alarms of working motions on five simulated arms, each judged by a model of other runs.

Strokes of a second or two with pauses, hours of them; nothing touches the arms. Classic detectors
(`benchmarks.contact_rivals`) go through the same hours, their thresholds from the same minutes by
the same rule. Finished parts are
kept in build/contact_twin.json, so that a run that was cut short goes on; parts of another version
of the sources do not count. TAUFIT_CONTACT_HOURS sets the hours (10), TAUFIT_CONTACT_CPU after how
many CPU seconds to stop and say how far it came (no limit).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks import Row
from benchmarks.contact_rivals import RIVALS, Rival, blocks_of, levels_of, once_per_hour, score_of
from benchmarks.contact_runs import ROOT, work
from taufit.contact import find_contacts, refine_noise
from taufit.contact.recording_contacts import external_torque_blocks
from taufit.core.arrays import Array
from taufit.model.fitted_model import FittedModel
from taufit.model.noise_by_state import NoiseByState
from taufit.payload import stream
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, read_preset, typical_effects, typical_rotor
from taufit.workflow import identify

HOURS = float(os.environ.get("TAUFIT_CONTACT_HOURS", "10"))
CPU_S = float(os.environ.get("TAUFIT_CONTACT_CPU", "inf"))
ARMS = ("ur10e", "ur5e", "ur3e", "kr5", "ur10")
# What an alarm depends on, given the model.
ROOMS = ("kernel", *(f"src/taufit/{room}" for room in ("contact", "friction", "signals", "sim")))
KEPT = ROOT / "build" / "contact_twin.json"
# Of one part [s].
PART = 120.0


def rows() -> Iterator[Row]:
    begun = time.process_time()
    version, done = _version(), {}
    if KEPT.exists():
        found = json.loads(KEPT.read_text("utf-8"))
        done = found["parts"] if found["version"] == version else {}
    prepared: dict[str, Bench] = {}
    parts = max(1, round(HOURS * 3600.0 / PART / len(ARMS)))
    for k in range(parts):
        for name in ARMS:
            if f"{name} {k}" in done or time.process_time() - begun > CPU_S:
                continue
            if name not in prepared:
                prepared[name] = _prepared(name)
            done[f"{name} {k}"] = _part(prepared[name], k)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps({"version": version, "parts": done}), "utf-8")
    hours = sum(part["seconds"] for part in done.values()) / 3600.0
    alarms = {n: sum(p["alarms"] for key, p in done.items() if key.split()[0] == n) for n in ARMS}
    each = ", ".join(f"{name} {count}" for name, count in alarms.items())
    note = f"alarms in {hours:.2f} h: {each}; stated 1 per hour, commanded velocity recorded"
    yield Row("alarms per hour, five arms", sum(alarms.values()) / hours, "1/h", "<= 2", note)
    yield Row("simulated hours", hours, "h", ">= 10")
    for rival in map(str, RIVALS):
        told = sum(part["rivals"][rival] for part in done.values())
        note = "same hours, thresholds from the same minutes by the same rule"
        yield Row(f"alarms per hour, {rival}", told / hours, "1/h", "", note)


def _version() -> str:
    """Of what an alarm depends on."""
    whole = hashlib.sha256()
    for folder in ROOMS:
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix in (".py", ".cpp", ".h"):
                whole.update(path.read_bytes())
    for name in ("contact_runs", "contact_rivals"):
        whole.update((ROOT / "benchmarks" / f"{name}.py").read_bytes())
    return whole.hexdigest()


class Bench(NamedTuple):
    """An arm that works.

    Attributes:
        twin: Of it.
        model: From two excitation runs.
        noise: Of three minutes of its work.
        rivals: Levels and threshold of each classic detector, from the same minutes.
    """

    twin: Twin
    model: FittedModel
    noise: NoiseByState
    rivals: dict[Rival, tuple[Array, float]]


def _prepared(name: str) -> Bench:
    if name == "ur10e":
        twin = read_preset("ur10e-real").twin
    else:
        robot = typical_rotor(read_robot(name))
        twin = Twin(robot, typical_effects(robot))
    twin = replace(twin, rate_hz=125.0)
    runs = [
        twin.run(random_fourier(twin.robot, seed=s, periods=3), seed=s, rest=(1.0, 1.0)).recording
        for s in (1, 2)
    ]
    model = identify(twin.robot, runs).model
    quiet = [twin.run(work(twin.robot, 60.0, 900 + s), seed=s).recording for s in (3, 4, 5)]
    noise = refine_noise(model, quiet)
    felt = [external_torque_blocks(model, stream(model, one), noise) for one in quiet]
    rivals = {}
    for rival in RIVALS:
        levels = levels_of([one for run in felt for one in run], rival, noise)
        scores = [score_of(run, rival, levels, noise.rate_hz) ** 2 for run in felt]
        blocks = [b for score in scores for b in blocks_of(score, noise.rate_hz)]
        rivals[rival] = (levels, once_per_hour(blocks) ** 0.5)
    return Bench(twin, model, noise, rivals)


def _part(bench: Bench, k: int) -> dict[str, Any]:
    """Alarms in one part, and its seconds."""
    twin, model, noise, rivals = bench
    run = twin.run(work(twin.robot, PART, 1000 + k), seed=100 + k).recording
    found = find_contacts(model, run, noise=noise)
    felt = external_torque_blocks(model, stream(model, run), noise)
    told = {}
    for rival, (levels, threshold) in rivals.items():
        over = score_of(felt, rival, levels, noise.rate_hz) > threshold
        # What is beyond again within a second is the same alarm.
        at = np.flatnonzero(over)
        told[str(rival)] = int(np.sum(np.diff(at, prepend=-np.inf) > noise.rate_hz))
    return {"alarms": len(found.contacts), "seconds": found.seconds, "rivals": told}
