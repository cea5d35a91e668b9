"""Payload by the monitor on many arms: honest intervals for every arm and every mass.

Simulated arms with friction, ripple and noise of their kind, standing and on a wall, each with a
model fitted to two empty runs, and runs with payloads from 0.2 kg to 1.3 times what the arm is
rated for, 30 to 350 mm from its last frame. The drive gains of every run are off by 1 % (one
sigma), as the filter is told. Every recording is fed to `Monitor` row by row, and every whole
second after `ready` counts.

TAUFIT_PAYLOAD_TRIALS sets the runs per arm and mass class (8), TAUFIT_PAYLOAD_ARMS the arms,
TAUFIT_PAYLOAD_KEPT a file in which finished runs are kept, so that a benchmark goes on where it
was stopped. No setting was chosen on these arms.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.dynamics import regressor
from taufit.errors import InfeasibleError
from taufit.live import Monitor
from taufit.payload import PayloadSettings
from taufit.payload.run import RATED
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier
from taufit.sim.payload import Carried
from taufit.workflow import identify

TRIALS = int(os.environ.get("TAUFIT_PAYLOAD_TRIALS", "8"))
KEPT = os.environ.get("TAUFIT_PAYLOAD_KEPT")
# Name of the arm, and how it is mounted.
ARMS = {
    "kr5": ("kr5", None),
    "ur5e": ("ur5e", None),
    "ur3e": ("ur3e", None),
    "panda": ("panda", None),
    "iiwa14": ("iiwa14", None),
    "ur5e on a wall": ("ur5e", "wall"),
}
CHOSEN = [a for a in os.environ.get("TAUFIT_PAYLOAD_ARMS", "").split(",") if a] or list(ARMS)
# Masses, in kilograms and in what the arm is rated for.
CLASSES = {"light": (0.2, 0.6, False), "middle": (0.2, 0.7, True), "heavy": (0.7, 1.3, True)}
GAIN = 0.01
FIRST_SEED = int(os.environ.get("TAUFIT_PAYLOAD_SEED", "710000"))
COORDINATES = ("x", "y", "z")
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Trial:
    """One run through the monitor.

    Attributes:
        mass: True [kg].
        ready_at: [s], or None.
        z: Per whole second after readiness, errors of mass and centre in standard deviations.
        inside: The same, whether the interval of the mass holds.
        changes: Picks and drops told; nobody picked or dropped anything.
        seconds: Of the run.
    """

    mass: float
    ready_at: float | None
    z: list[list[float]]
    inside: list[bool]
    changes: int
    seconds: float


class Arm:
    """A simulated arm and the model fitted to it."""

    def __init__(self, label: str) -> None:
        name, mounting = ARMS[label]
        robot = read_robot(name)
        self.label, self.rated = label, RATED[name]
        self.robot = robot if mounting is None else robot.with_mounting(mounting)
        twin = Twin.typical(self.robot, rate_hz=125.0)
        ripple = replace(twin.effects.ripple, arm=5.0 + list(ARMS).index(label))
        self.twin = replace(twin, effects=replace(twin.effects, ripple=ripple))
        self._model: Any = None

    @property
    def model(self) -> Any:
        if self._model is None:
            runs = [self._run(FIRST_SEED + 900 + k, 2.0, ()).recording for k in range(2)]
            self._model = identify(self.robot, runs).model
        return self._model

    def _run(self, seed: int, periods: float, payload: Any) -> Any:
        """A random motion; another one where the arm cannot hold its payload on the way."""
        for attempt in range(_ATTEMPTS):
            motion = random_fourier(self.robot, seed=seed + 100_000 * attempt, periods=periods)
            try:
                return self.twin.run(motion, seed=seed, payload=payload)
            except InfeasibleError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def trial(self, kind: str, k: int) -> Trial:
        """One run with a payload of the class."""
        seed = FIRST_SEED + 1000 * list(CLASSES).index(kind) + k
        rng = np.random.default_rng(seed)
        low, high, relative = CLASSES[kind]
        mass = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        mass *= self.rated if relative else 1.0
        away = rng.normal(size=3)
        centre = away / np.linalg.norm(away) * rng.uniform(0.03, 0.35)
        carried = Carried.lump(mass, tuple(centre))
        recording = self._off(self._run(seed, 2.0, carried), carried, rng)
        settings = PayloadSettings(gain_std=GAIN, gain_common=1e-4)
        monitor = Monitor(self.model, payload_settings=settings)
        z: list[list[float]] = []
        inside: list[bool] = []
        start, due, ready_at = float(recording.time[0]), 1.0, None
        for reading in monitor.run(recording):
            since = reading.time - start
            if since < due:
                continue
            due += 1.0
            found = reading.payload
            if found is None or not found.ready:
                continue
            ready_at = since if ready_at is None else ready_at
            errors = (found.centre - centre) / found.centre_std
            z.append([(found.mass - mass) / found.mass_std, *errors.tolist()])
            inside.append(bool(found.mass_interval[0] <= mass <= found.mass_interval[1]))
        changes = sum(event.kind in ("pick", "drop", "change") for event in monitor.events)
        return Trial(mass, ready_at, z, inside, changes, float(recording.time[-1]) - start)

    def _off(self, run: Any, carried: Carried, rng: np.random.Generator) -> Any:
        """The recording as drives show it whose gains are off: the model has learnt the arm so."""
        recording, true = run.recording, run.trace
        columns = regressor(self.robot, true.position, true.velocity, true.acceleration)
        payload = columns[..., self.robot.layout.link(-1)] @ carried.parameters
        wrong = GAIN * rng.standard_normal(self.robot.joints)
        gain = 1.0 if recording.gain is None else recording.gain
        return replace(recording, signal=recording.signal + wrong * payload / gain)


def rows() -> Iterator[Row]:
    kept = _read()
    minutes = changes = 0.0
    for label in CHOSEN:
        arm = Arm(label)
        for kind in CLASSES:
            trials = []
            for k in range(TRIALS):
                key = f"{label}/{kind}/{FIRST_SEED}/{k}"
                if key not in kept:
                    kept[key] = arm.trial(kind, k)
                    _keep(key, kept[key])
                trials.append(kept[key])
            minutes += sum(t.seconds for t in trials) / 60.0
            changes += sum(t.changes for t in trials)
            yield from _coverage(f"{label}, {kind}", trials)
    note = f"{minutes:.0f} simulated minutes, nobody picked or dropped anything"
    yield Row("picks and drops told", changes, "", "<= 0", note)


def _coverage(name: str, trials: list[Trial]) -> Iterator[Row]:
    ready = [t for t in trials if t.inside]
    if not ready:
        yield Row(f"{name}: runs that become ready", 0.0, "%", "> 0", f"{len(trials)} runs")
        return
    seconds = sum(len(t.inside) for t in ready)
    late = np.median([t.ready_at for t in ready])
    note = f"{seconds} s of {len(ready)} of {len(trials)} runs, ready after {late:.1f} s (median)"
    value = 100.0 * float(np.mean([hit for t in ready for hit in t.inside]))
    yield Row(f"{name}: mass in its interval at least", value, "%", ">= 93", note)
    yield Row(f"{name}: mass in its interval at most", value, "%", "<= 99", "not wider than needed")
    for c, coordinate in enumerate(COORDINATES):
        held = [abs(z[1 + c]) < 1.96 for t in ready for z in t.z]
        value = 100.0 * float(np.mean(held))
        yield Row(f"{name}: centre {coordinate} in its interval", value, "%", ">= 93", "")


def _read() -> dict[str, Trial]:
    if KEPT is None or not Path(KEPT).is_file():
        return {}
    lines = [json.loads(line) for line in Path(KEPT).read_text("utf-8").splitlines()]
    return {line.pop("key"): Trial(**line) for line in lines}


def _keep(key: str, trial: Trial) -> None:
    if KEPT is None:
        return
    values = {name: getattr(trial, name) for name in Trial.__slots__}
    with Path(KEPT).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"key": key, **values}) + "\n")
