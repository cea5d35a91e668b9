"""False alarms of working motions on five simulated arms, each judged by a model of other runs.

Strokes of a second or two with pauses, hours of them; nothing touches the arms. Finished parts are
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
from typing import Any

from benchmarks import Row
from benchmarks.contact_runs import ROOT, work
from taufit.contact import find_contacts, refine_noise
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
    prepared: dict[str, Any] = {}
    parts = max(1, round(HOURS * 3600.0 / PART / len(ARMS)))
    for k in range(parts):
        for name in ARMS:
            if f"{name} {k}" in done or time.process_time() - begun > CPU_S:
                continue
            if name not in prepared:
                prepared[name] = _prepared(name)
            done[f"{name} {k}"] = _part(*prepared[name], k)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps({"version": version, "parts": done}), "utf-8")
    hours = sum(seconds for _, seconds in done.values()) / 3600.0
    alarms = {n: sum(a for key, (a, _) in done.items() if key.split()[0] == n) for n in ARMS}
    each = ", ".join(f"{name} {count}" for name, count in alarms.items())
    note = f"alarms in {hours:.2f} h: {each}; stated 1 per hour, commanded velocity recorded"
    yield Row("alarms per hour, five arms", sum(alarms.values()) / hours, "1/h", "<= 2", note)
    yield Row("simulated hours", hours, "h", ">= 10")


def _version() -> str:
    """Of what an alarm depends on."""
    whole = hashlib.sha256()
    for folder in ROOMS:
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.suffix in (".py", ".cpp", ".h"):
                whole.update(path.read_bytes())
    whole.update((ROOT / "benchmarks" / "contact_runs.py").read_bytes())
    return whole.hexdigest()


def _prepared(name: str) -> tuple[Any, Any, Any]:
    """A twin, its model from two excitation runs, and noise of three minutes of its work."""
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
    return twin, model, refine_noise(model, quiet)


def _part(twin: Any, model: Any, noise: Any, k: int) -> tuple[int, float]:
    """Alarms in one part, and its seconds."""
    run = twin.run(work(twin.robot, PART, 1000 + k), seed=100 + k).recording
    found = find_contacts(model, run, noise=noise)
    return len(found.contacts), found.seconds
