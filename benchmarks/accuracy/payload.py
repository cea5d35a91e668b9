"""Payload on the simulated UR10 of [Xu2024]: all methods on the same runs, and honest intervals.

Ten arms (ripple, friction of their own), each with a model fitted to ten empty periods, and runs of
each with the payloads of the paper. TAUFIT_PAYLOAD_RUNS sets how many (100).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.friction import PowerLaw
from taufit.payload import PayloadFilter, PayloadSettings, identify_payload, stream
from taufit.robot.inertia import pseudo_inertia
from taufit.sim import random_fourier, read_preset
from taufit.sim.hand_guiding import guide
from taufit.sim.payload import Carried
from taufit.validation import identify

RUNS = int(os.environ.get("TAUFIT_PAYLOAD_RUNS", "100"))
ARMS = 10
REST = 0.5
PAPER_S = 6.59


@dataclass
class Trial:
    """What one run gave at the times of interest."""

    mass: float
    centre: np.ndarray
    times: np.ndarray
    masses: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    ready: np.ndarray
    centres: np.ndarray
    stopped: float | None
    possible: bool

    def at(self, seconds: float) -> int:
        """The last read-out up to then, counted from the start of motion."""
        return int(np.searchsorted(self.times, seconds + REST + 1e-9)) - 1


class Bench:
    """Arms, their models and runs."""

    def __init__(self) -> None:
        self.preset = read_preset("ur10-paper")
        self.models: dict[tuple[int, bool, float], Any] = {}

    def twin(self, arm: int) -> Any:
        effects = self.preset.twin.effects
        effects = replace(effects, ripple=replace(effects.ripple, arm=1.0 + arm))
        return replace(self.preset.twin, effects=effects)

    def model(self, arm: int, paper: bool = False, scatter: float = 0.0) -> Any:
        """Of the empty arm; with the paper's friction for the paper's method."""
        if (arm, paper, scatter) not in self.models:
            twin = self.twin(arm)
            empty = twin.run(self.preset.motion(periods=10), seed=1000 + arm).recording
            empty = _wrong_gains(empty, arm, scatter)
            friction: Any = PowerLaw() if paper else "auto"
            self.models[arm, paper, scatter] = identify(
                twin.robot, [empty], friction=friction
            ).model
        return self.models[arm, paper, scatter]

    def payload(self, run: int) -> Carried:
        """The paper's two, in turn."""
        own = self.preset.payload.parameters
        return Carried(own if run % 2 == 0 else own * (3.223 / 3.5256))

    def filtered(
        self,
        run: int,
        motion: Any,
        gain: float = 0.001,
        scatter: float = 0.0,
        template: bool = False,
    ) -> Trial:
        arm = run % ARMS
        twin, carried = self.twin(arm), self.payload(run)
        loaded = twin.run(motion, seed=run, payload=carried, rest=(REST, 0.0)).recording
        settings = PayloadSettings(gain_std=gain, gain_common=1e-4)
        model = self.model(arm, scatter=scatter)
        source = stream(model, _wrong_gains(loaded, arm, scatter))
        live = PayloadFilter(model, settings, gain_std=np.full(6, gain))
        if template:
            from taufit.payload.template import Template

            empty = twin.run(motion, seed=5000 + run, rest=(REST, 0.0)).recording
            live.template = Template(model, stream(model, empty), live)
        rows, due, found = [], 0.1, None
        for sample in source.samples():
            live.update(*sample)
            if sample[0] >= due - 1e-9:
                due += 0.1
                found = live.estimate()
                rows.append(
                    (sample[0], found.mass, *found.mass_interval, found.ready, *found.centre)
                )
        table = np.array(rows, float)
        truth = carried.parameters
        assert found is not None
        return Trial(
            float(truth[0]),
            truth[1:4] / truth[0],
            table[:, 0],
            table[:, 1],
            table[:, 2],
            table[:, 3],
            table[:, 4] > 0,
            table[:, 5:8],
            live.stopped_at,
            bool(np.linalg.eigvalsh(pseudo_inertia(found.parameters)).min() > 0.0),
        )


def rows() -> Iterator[Row]:
    bench = Bench()
    motion = bench.preset.motion(periods=1)
    trials = [bench.filtered(run, motion) for run in range(RUNS)]
    note = f"{RUNS} runs of {ARMS} arms, 3.5256 and 3.223 kg, paper's motion"
    yield from _accuracy("filter", trials, PAPER_S, note, mass=(0.25, 1.0), centre=3.5)
    yield Row(
        "filter: physically possible",
        100.0 * np.mean([t.possible for t in trials]),
        "%",
        ">= 100",
        note,
    )
    stops = [(t, t.stopped) for t in trials if t.stopped is not None]
    if stops:
        errors = [abs(t.masses[t.at(s - REST)] / t.mass - 1.0) for t, s in stops]
        yield Row(
            "filter: stops after, median",
            float(np.median([s - REST for _, s in stops])),
            "s",
            "<= 6.5",
            f"{len(stops)} of {RUNS} runs stop",
        )
        yield Row("filter: mass at stop, p95", 100 * np.percentile(errors, 95), "%", "<= 1.5", note)
    yield from _coverage("paper's motion", trials)
    yield from _printed(bench, motion)

    few = max(RUNS // 2, 4)
    scatter = [bench.filtered(run, motion, gain=0.01, scatter=0.01) for run in range(few)]
    yield from _coverage("gains off by 1 %", scatter)
    other = [
        bench.filtered(run, random_fourier(bench.preset.twin.robot, seed=run, frequency_hz=0.1))
        for run in range(few)
    ]
    yield from _coverage("another motion than the model's", other)
    same = [bench.filtered(run, motion, template=True) for run in range(few)]
    yield from _accuracy("filter with template", same, 5.0, f"{few} runs", mass=(0.25, 0.9))
    yield from _coverage("with a template", same)

    carried = bench.payload(1).parameters
    heavy = guide(bench.preset.twin.robot, carried)
    light = guide(bench.preset.twin.robot, carried, compensated=0.995 * carried)
    fall = 100.0 * (1.0 - light.mean_force / heavy.mean_force)
    for axis, value, target in zip("xyz", fall, (">= 0", ">= 0", ">= 40"), strict=True):
        yield Row(f"hand guiding: mean force in {axis} falls by", value, "%", target, "3.223 kg")


def _accuracy(
    name: str,
    trials: list[Trial],
    seconds: float,
    note: str,
    mass: tuple[float, float],
    centre: float | None = None,
) -> Iterator[Row]:
    index = [t.at(seconds) for t in trials]
    errors = [100 * abs(t.masses[i] / t.mass - 1.0) for t, i in zip(trials, index, strict=True)]
    away = [
        1e3 * np.linalg.norm(t.centres[i] - t.centre) for t, i in zip(trials, index, strict=True)
    ]
    at = f"at {seconds:g} s"
    yield Row(f"{name}: mass {at}, median", float(np.median(errors)), "%", f"<= {mass[0]}", note)
    yield Row(
        f"{name}: mass {at}, p95", float(np.percentile(errors, 95)), "%", f"<= {mass[1]}", note
    )
    target = "" if centre is None else f"<= {centre}"
    yield Row(f"{name}: centre {at}, median", float(np.median(away)), "mm", target, note)
    yield Row(f"{name}: centre {at}, p95", float(np.percentile(away, 95)), "mm", "", note)


def _coverage(name: str, trials: list[Trial]) -> Iterator[Row]:
    """Share of read-outs after readiness whose interval holds the true mass."""
    inside = [
        np.mean((t.lows <= t.mass) & (t.mass <= t.highs), where=t.ready)
        for t in trials
        if np.any(t.ready)
    ]
    value = 100.0 * float(np.mean(inside))
    yield Row(
        f"95 % interval of the mass holds, {name}",
        value,
        "%",
        ">= 92",
        f"all read-outs after readiness, {len(inside)} runs; 98 or less is not too wide",
    )


def _printed(bench: Bench, motion: Any) -> Iterator[Row]:
    """The other methods on some of the same runs."""
    errors: dict[str, list[float]] = {"difference": [], "khalil": []}
    centres: dict[str, list[float]] = {"difference": [], "khalil": []}
    few = max(RUNS // 4, 4)
    for run in range(few):
        arm, carried = run % ARMS, bench.payload(run)
        twin = bench.twin(arm)
        loaded = twin.run(motion, seed=run, payload=carried, rest=(REST, 0.0)).recording
        until = np.asarray(loaded.time) <= REST + PAPER_S
        cut = _first(loaded, until)
        for method in errors:
            done = identify_payload(bench.model(arm, paper=True), cut, method=method)
            truth = carried.parameters
            errors[method].append(100 * abs(done.estimate.mass / truth[0] - 1.0))
            away = done.estimate.centre - truth[1:4] / truth[0]
            centres[method].append(1e3 * float(np.linalg.norm(away)))
    for method in errors:
        note = f"{few} of the same runs, power-law friction"
        yield Row(
            f"{method}: mass at 6.59 s, median", float(np.median(errors[method])), "%", "", note
        )
        value = float(np.percentile(errors[method], 95))
        yield Row(f"{method}: mass at 6.59 s, p95", value, "%", "", note)
        value = float(np.median(centres[method]))
        yield Row(f"{method}: centre at 6.59 s, median", value, "mm", "", note)


def _wrong_gains(recording: Any, arm: int, scatter: float) -> Any:
    """The recording of an arm whose drives differ from what is believed, always alike."""
    wrong = 1.0 + scatter * np.random.default_rng(70 + arm).standard_normal(recording.joints)
    return replace(recording, signal=recording.signal * wrong)


def _first(recording: Any, rows: Any) -> Any:
    """The rows of a recording that are wanted."""
    names = (
        "time", "position", "signal", "velocity", "acceleration", "commanded_position",
        "commanded_velocity", "commanded_acceleration", "target_current", "target_torque",
        "temperature",
    )  # fmt: skip
    parts = {n: getattr(recording, n)[rows] for n in names if getattr(recording, n) is not None}
    return replace(recording, **parts)
