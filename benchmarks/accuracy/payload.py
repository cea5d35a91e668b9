"""Payload on the simulated UR10 of [Xu2024]: all methods on the same runs, and honest intervals.

Ten arms (ripple and friction of their own), each with a model fitted to ten empty periods of the
paper's motion, and runs of each with the paper's two payloads. TAUFIT_PAYLOAD_RUNS sets how many of
each kind (100). Seeds and arms here are others than those the settings were chosen with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.excitation import FourierBasis, design, mounting_plane, scene_for
from taufit.excitation.motion_kinds import payload_columns
from taufit.model.torque_model import TorqueModel
from taufit.papers.xu2024_payload import standing_poses_motion
from taufit.payload import PayloadFilter, PayloadSettings, identify_payload, stream
from taufit.payload.template import Template
from taufit.robot.inertia import pseudo_inertia
from taufit.sim import random_fourier, read_preset
from taufit.sim.payload import CarriedPayload
from taufit.terms.friction import Linear, PowerLaw
from taufit.workflow import identify

RUNS = int(os.environ.get("TAUFIT_PAYLOAD_RUNS", "100"))
ARMS, FIRST_ARM, FIRST_SEED = 10, 80, 20_000
REST = 0.5
PAPER_S = 6.59
SAMPLE_S = 0.008
TEMPLATES = 5
CENTRE = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What one run gave, read-out by read-out, time counted from the start of motion."""

    mass: float
    centre: np.ndarray
    times: np.ndarray
    masses: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    ready: np.ndarray
    centres: np.ndarray
    spreads: np.ndarray
    stopped: float | None
    possible: bool

    def at(self, seconds: float) -> int:
        """The last read-out up to the first sample at or after then."""
        return int(np.searchsorted(self.times, seconds + SAMPLE_S)) - 1


class Bench:
    """Arms, their models and runs."""

    def __init__(self) -> None:
        self.preset = read_preset("ur10-paper")
        self.models: dict[Any, Any] = {}
        self.empty: dict[Any, Any] = {}

    def twin(self, arm: int) -> Any:
        effects = self.preset.twin.effects
        effects = replace(effects, ripple=replace(effects.ripple, arm=1.0 + FIRST_ARM + arm))
        return replace(self.preset.twin, effects=effects)

    def model(self, arm: int, paper: bool = False, scatter: float = 0.0) -> Any:
        """Of the empty arm; with the paper's friction for the paper's method."""
        if (arm, paper, scatter) not in self.models:
            twin = self.twin(arm)
            empty = twin.run(self.preset.motion(periods=10), seed=FIRST_SEED - 1000 + arm).recording
            friction: Any = PowerLaw() if paper else "auto"
            self.models[arm, paper, scatter] = identify(
                twin.robot, [_wrong_gains(empty, arm, scatter)], friction=friction
            ).model
        return self.models[arm, paper, scatter]

    def payload(self, run: int) -> CarriedPayload:
        """The paper's two, in turn with the arms."""
        own = self.preset.payload.parameters
        return CarriedPayload(own if (run // ARMS) % 2 == 0 else own * (3.223 / 3.5256))

    def loaded(self, run: int, motion: Any) -> Any:
        twin = self.twin(run % ARMS)
        seed = FIRST_SEED + run
        return twin.run(motion, seed=seed, payload=self.payload(run), rest=(REST, 0.0)).recording

    def templates(self, arm: int, motion: Any, name: str) -> list[Any]:
        """The motion recorded empty, some times."""
        if (arm, name) not in self.empty:
            twin, first = self.twin(arm), FIRST_SEED + 5000 + 100 * arm
            self.empty[arm, name] = [
                twin.run(motion, seed=first + k, rest=(REST, 0.0)).recording
                for k in range(TEMPLATES)
            ]
        return self.empty[arm, name]

    def filtered(
        self, run: int, motion: Any, gain: float = 0.001, scatter: float = 0.0, template: str = ""
    ) -> Trial:
        arm, truth = run % ARMS, self.payload(run).parameters
        settings = PayloadSettings(gain_std=gain, gain_common=1e-4)
        model = self.model(arm, scatter=scatter)
        source = stream(model, _wrong_gains(self.loaded(run, motion), arm, scatter))
        live = PayloadFilter(model, settings, gain_std=np.full(6, gain))
        if template:
            runs = self.templates(arm, motion, template)
            live.template = Template(model, [stream(model, one) for one in runs], live)
        rows, found = [], None
        due = iter(sorted([*np.arange(0.1, 60.0, 0.1), REST + PAPER_S, np.inf]))
        next_due = next(due)
        for sample in source.samples():
            live.update(*sample)
            if sample[0] >= next_due - 1e-9:
                next_due = next(due)
                live.flush()
                found = live.estimate()
                told = (found.mass, *found.mass_interval, found.ready)
                rows.append((sample[0] - REST, *told, *found.centre, *found.centre_std))
        found = live.estimate()
        table = np.array(rows, float)
        return Trial(
            float(truth[0]),
            truth[1:4] / truth[0],
            *table.T[:4],
            table[:, 4] > 0,
            table[:, 5:8],
            table[:, 8:11],
            None if live.stopped_at is None else live.stopped_at - REST,
            bool(np.linalg.eigvalsh(pseudo_inertia(found.parameters)).min() > 0.0),
        )


def rows() -> Iterator[Row]:
    bench = Bench()
    motion = bench.preset.motion(periods=1)
    every = range(RUNS)
    trials = [bench.filtered(run, motion) for run in every]
    note = f"{RUNS} runs of {ARMS} arms, 3.5256 and 3.223 kg, paper's motion"
    yield from _accuracy("filter", trials, PAPER_S, note, (0.25, 1.0), (3.5, None))
    yield Row(
        "filter: physically possible",
        100.0 * np.mean([t.possible for t in trials]),
        "%",
        ">= 100",
        note,
    )
    yield from _stops("filter", trials, 6.5, 1.5)
    yield from _coverage("paper's motion", trials)
    yield from _others(bench, motion)

    off = [bench.filtered(run, motion, gain=0.01, scatter=0.01) for run in every]
    yield from _coverage("gains off by 1 %", off)
    robot = bench.preset.twin.robot
    other = [
        bench.filtered(run, random_fourier(robot, seed=run, centre=CENTRE, frequency_hz=0.1))
        for run in every
    ]
    yield from _coverage("another motion than the model's", other)
    small = [bench.filtered(run, _small(robot, run)) for run in every]
    yield from _coverage("small motion of the arm", small)

    best = _designed(bench)
    same = [bench.filtered(run, best, template="designed") for run in every]
    note = f"{RUNS} runs, {TEMPLATES} empty ones of each arm, motion planned for payloads"
    yield from _accuracy("5 s and template", same, 5.0, note, (0.25, 0.9), (None, 4.0))
    yield from _coverage("5 s and template", same)
    same = [bench.filtered(run, motion, template="paper") for run in every]
    yield from _accuracy("paper's motion and template", same, PAPER_S, f"{RUNS} runs")
    yield from _coverage("paper's motion and template", same)


def _accuracy(
    name: str,
    trials: Sequence[Trial],
    seconds: float,
    note: str,
    mass: tuple[float | None, float | None] = (None, None),
    centre: tuple[float | None, float | None] = (None, None),
) -> Iterator[Row]:
    index = [t.at(seconds) for t in trials]
    errors = [100 * abs(t.masses[i] / t.mass - 1.0) for t, i in zip(trials, index, strict=True)]
    away = [
        1e3 * np.linalg.norm(t.centres[i] - t.centre) for t, i in zip(trials, index, strict=True)
    ]
    for what, values, unit, targets in (
        ("mass", errors, "%", mass),
        ("centre", away, "mm", centre),
    ):
        for level, target in zip((50, 95), targets, strict=True):
            told = "median" if level == 50 else "p95"
            limit = "" if target is None else f"<= {target}"
            value = float(np.percentile(values, level))
            yield Row(f"{name}: {what} at {seconds:g} s, {told}", value, unit, limit, note)


def _stops(name: str, trials: Sequence[Trial], latest: float, worst: float) -> Iterator[Row]:
    stops = [(t, t.stopped) for t in trials if t.stopped is not None]
    if not stops:
        return
    errors = [abs(t.masses[t.at(s)] / t.mass - 1.0) for t, s in stops]
    median = float(np.median([s for _, s in stops]))
    note = f"{len(stops)} of {len(trials)} runs stop, the last after {max(s for _, s in stops):.1f}"
    yield Row(f"{name}: stops after, median", median, "s", f"<= {latest}", f"{note} s")
    value = 100 * float(np.percentile(errors, 95))
    yield Row(f"{name}: mass at stop, p95", value, "%", f"<= {worst}", note)


def _coverage(name: str, trials: Sequence[Trial]) -> Iterator[Row]:
    """How often intervals hold the truth, second by second after readiness."""
    hits: list[np.ndarray] = []
    single: list[np.ndarray] = []
    for second in range(1, 11):
        now = [(t, t.at(second)) for t in trials if t.times[-1] >= second - 0.15]
        now = [(t, i) for t, i in now if t.ready[i]]
        if len(now) < 10:
            continue
        hits.append(np.array([t.lows[i] <= t.mass <= t.highs[i] for t, i in now]))
        away = np.array([(t.centres[i] - t.centre) / t.spreads[i] for t, i in now])
        single.append(np.abs(away) < 1.96)
    if not hits:
        yield Row(f"95 % interval of the mass, {name}", 0.0, "%", ">= 92", "never ready")
        return
    shares = [100.0 * h.mean() for h in hits]
    value = 100.0 * float(np.concatenate(hits).mean())
    ready = np.mean([t.ready[-1] for t in trials])
    note = (
        f"{len(trials)} runs, {100 * ready:.0f} % ready; at single seconds "
        f"{min(shares):.0f} to {max(shares):.0f} %"
    )
    yield Row(f"95 % interval of the mass holds at least, {name}", value, "%", ">= 92", note)
    yield Row(f"95 % interval of the mass holds at most, {name}", value, "%", "<= 98", "not wider")
    value = 100.0 * float(np.concatenate(single).mean())
    yield Row(f"95 % interval of the centre, {name}", value, "%", "", "single coordinates")


def _others(bench: Bench, motion: Any) -> Iterator[Row]:
    """The other methods: on the first 6.59 s of the same runs, and on poses held still."""
    few = max(RUNS // 4, 4)
    methods = ("printed", "difference", "khalil", "direct", "static")
    errors: dict[str, list[float]] = {name: [] for name in methods}
    centres: dict[str, list[float]] = {name: [] for name in methods}
    for run in range(few):
        arm, truth = run % ARMS, bench.payload(run).parameters
        cut = _first(bench.loaded(run, motion), REST + PAPER_S)
        still = bench.loaded(run, standing_poses_motion(6))
        for method in methods:
            source = still if method == "static" else cut
            done = identify_payload(bench.model(arm, paper=True), source, method=method)
            errors[method].append(100 * abs(done.estimate.mass / truth[0] - 1.0))
            away = done.estimate.centre - truth[1:4] / truth[0]
            centres[method].append(1e3 * float(np.linalg.norm(away)))
    for method in methods:
        told = "after 20 poses" if method == "static" else "at 6.59 s"
        note = f"{few} of the same runs, power-law friction"
        value = float(np.median(errors[method]))
        yield Row(f"{method}: mass {told}, median", value, "%", "", note)
        value = float(np.percentile(errors[method], 95))
        yield Row(f"{method}: mass {told}, p95", value, "%", "", note)
        value = float(np.median(centres[method]))
        yield Row(f"{method}: centre {told}, median", value, "mm", "", note)


def _small(robot: Any, seed: int) -> Any:
    """Joints 1 to 3 within about 0.2 rad, away from where the model's motion rests."""
    away = CENTRE + np.array([0.3, 0.5, 0.6, -0.3, 0.2, 0.0])
    motion = random_fourier(robot, seed=seed, centre=away, frequency_hz=0.1)
    size = np.array([0.1, 0.1, 0.1, 0.6, 0.6, 0.6])[:, None]
    return replace(motion, sine=motion.sine * size, cosine=motion.cosine * size)


def _designed(bench: Bench) -> Any:
    """Five seconds for a payload on a known arm: noise of its joints, friction known to 5 %."""
    robot, fitted = bench.preset.twin.robot, bench.model(0)
    model = TorqueModel(robot, Linear(), offset=True)
    columns, focus = payload_columns(model)
    rate = 125.0
    noise = np.sqrt(fitted.training.residuals.noise_density * rate)
    level = np.array(bench.preset.twin.effects.friction.coefficients).sum(axis=1)
    known = np.zeros(len(columns))
    known[4:10] = 1e4
    joints = np.array([int(model.names[c].split(".")[0][6:]) - 1 for c in columns[10:]])
    known[10:] = 1.0 / (0.05 * 0.5 * level[joints]) ** 2
    limits = replace(robot.limits, acceleration=np.array([8.0, 8.0, 8.0, 12.0, 12.0, 12.0]))
    return design(
        robot,
        model=model,
        basis=FourierBasis(8, 0.2, joint_harmonics=(3, 3, 3, 8, 8, 8)),
        limits=limits,
        scene=scene_for(robot, planes=(mounting_plane(robot),)),
        columns=columns,
        focus=focus,
        weights=1.0 / noise,
        prior=np.diag(known) / (5.0 * rate),
        seconds=8.0,
    ).motion


def _wrong_gains(recording: Any, arm: int, scatter: float) -> Any:
    """The recording of an arm whose drives differ from what is believed, always alike."""
    rng = np.random.default_rng(70 + FIRST_ARM + arm)
    wrong = 1.0 + scatter * rng.standard_normal(recording.joints)
    return replace(recording, signal=recording.signal * wrong)


def _first(recording: Any, seconds: float) -> Any:
    """The beginning of a recording."""
    rows = np.asarray(recording.time) <= seconds
    names = (
        "time", "position", "signal", "velocity", "acceleration", "commanded_position",
        "commanded_velocity", "commanded_acceleration", "target_current", "target_torque",
        "temperature",
    )  # fmt: skip
    parts = {n: getattr(recording, n)[rows] for n in names if getattr(recording, n) is not None}
    return replace(recording, **parts)
