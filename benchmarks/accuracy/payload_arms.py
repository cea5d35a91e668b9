"""Payload by the monitor on many arms: honest intervals for every arm and every mass.

Simulated arms with friction, ripple and noise of their kind, standing and on a wall. Every trial
has another arm of its kind (ripple elsewhere) with a model fitted to two empty runs of its own, and
one run for each class of masses, from 0.2 kg to 1.3 times what the arm is rated for, 30 to 350 mm
from its last frame, as far as the arm can hold it. Drives are as the filter is told: gains are off
by 1 % (one sigma), the same in training, and have drifted since by the share of that which
`payload.filter.unknowns` allows for. Every recording is fed to `Monitor` row by row, and every
whole second after `ready` counts.

Errors within a run are nearly one error, so a group of 30 runs tells its coverage to about 3 %:
figures are given for every kind of arm and for every class of masses, not for single cells.

TAUFIT_PAYLOAD_TRIALS sets the runs per arm and mass class (10), TAUFIT_PAYLOAD_ARMS the arms,
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
from taufit.core.arrays import Array
from taufit.core.errors import InfeasibleError
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import regressor
from taufit.live import Monitor
from taufit.payload import PayloadSettings
from taufit.payload.filter.nuisance_model import DRIFT_SHARE
from taufit.payload.identification import RATED_PAYLOADS
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

TRIALS = int(os.environ.get("TAUFIT_PAYLOAD_TRIALS", "10"))
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
    """The k-th simulated arm of a kind and the model fitted to it."""

    def __init__(self, label: str, k: int) -> None:
        name, mounting = ARMS[label]
        robot = read_robot(name)
        self.label, self.rated = label, RATED_PAYLOADS[name]
        self.robot = robot if mounting is None else robot.with_mounting(mounting)
        twin = Twin.typical(self.robot, rate_hz=125.0)
        kind = list(ARMS).index(label)
        ripple = replace(twin.effects.ripple, arm=5.0 + kind + len(ARMS) * k)
        self.seed = FIRST_SEED + 10_000 * kind + 10 * k
        self.twin = replace(twin, effects=replace(twin.effects, ripple=ripple))
        self._model: Any = None

    @property
    def model(self) -> Any:
        if self._model is None:
            runs = [self._run(self.seed + 8 + i, 2.0, ()).recording for i in range(2)]
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

    def _carrying(self, kind: str, seed: int, rng: np.random.Generator) -> tuple[float, Array, Any]:
        """Mass, centre and run of a payload of the class; another one where no motion holds it."""
        low, high, relative = CLASSES[kind]
        for attempt in range(_ATTEMPTS):
            mass = float(np.exp(rng.uniform(np.log(low), np.log(high))))
            mass *= self.rated if relative else 1.0
            away = rng.normal(size=3)
            centre = away / np.linalg.norm(away) * rng.uniform(0.03, 0.35)
            try:
                return mass, centre, self._run(seed, 2.0, CarriedPayload.lump(mass, tuple(centre)))
            except InfeasibleError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def trial(self, kind: str) -> Trial:
        """One run with a payload of the class."""
        seed = self.seed + list(CLASSES).index(kind)
        rng = np.random.default_rng(seed)
        mass, centre, run = self._carrying(kind, seed, rng)
        carried = CarriedPayload.lump(mass, tuple(centre))
        recording = self._off(run, carried, rng)
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

    def _off(self, run: Any, carried: CarriedPayload, rng: np.random.Generator) -> Any:
        """The recording as drives show it whose gains are off, and have drifted since training.

        The model has learnt the arm with the gains as they were then.
        """
        recording, true = run.recording, run.trace
        columns = regressor(self.robot, true.position, true.velocity, true.acceleration)
        payload = columns[..., self.robot.layout.link(-1)] @ carried.parameters
        wrong = GAIN * rng.standard_normal(self.robot.joints)
        gain = 1.0 if recording.gain is None else recording.gain
        drift = DRIFT_SHARE * GAIN * rng.standard_normal(self.robot.joints)
        signal = recording.signal + wrong * payload / gain
        return replace(recording, signal=signal * (1.0 + drift))


def rows() -> Iterator[Row]:
    kept = _read()
    done: dict[tuple[str, str], list[Trial]] = {}
    for k in range(TRIALS):
        for label in CHOSEN:
            arm = Arm(label, k)
            for kind in CLASSES:
                key = f"{label}/{kind}/{FIRST_SEED}/{k}"
                if key not in kept:
                    kept[key] = arm.trial(kind)
                    _keep(key, kept[key])
                done.setdefault((label, kind), []).append(kept[key])
    for label in CHOSEN:
        yield from _coverage(label, [t for kind in CLASSES for t in done[label, kind]])
    for kind in CLASSES:
        yield from _coverage(f"{kind} payloads", [t for one in CHOSEN for t in done[one, kind]])
    every = [trial for trials in done.values() for trial in trials]
    minutes = sum(trial.seconds for trial in every) / 60.0
    note = f"{minutes:.0f} simulated minutes, nobody picked or dropped anything"
    yield Row("picks and drops told", sum(t.changes for t in every), "", "<= 0", note)


def _coverage(name: str, trials: list[Trial]) -> Iterator[Row]:
    ready = [t for t in trials if t.inside]
    if not ready:
        yield Row(f"{name}: runs that become ready", 0.0, "%", "> 0", f"{len(trials)} runs")
        return
    seconds = sum(len(t.inside) for t in ready)
    late = np.median([t.ready_at for t in ready])
    note = f"{seconds} s of {len(ready)} of {len(trials)} runs, ready after {late:.1f} s (median)"
    mass = 100.0 * float(np.mean([hit for t in ready for hit in t.inside]))
    held = 100.0 * np.mean([np.abs(z) < NORMAL_95 for t in ready for z in t.z], axis=0)
    values = {"mass": mass, **{f"centre {c}": held[1 + i] for i, c in enumerate(COORDINATES)}}
    errors = np.sqrt(np.mean([np.square(z) for t in ready for z in t.z], axis=0))
    for (what, value), size in zip(values.items(), errors, strict=True):
        told = f"{note}; errors are {size:.2f} standard deviations (rms)"
        yield Row(f"{name}: {what} in its interval at least", float(value), "%", ">= 93", told)
        yield Row(f"{name}: {what} in its interval at most", float(value), "%", "<= 99", "")


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
