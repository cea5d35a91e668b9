"""Wear against temperature: how soon a rise is found, and how often a healthy robot is accused.

A UR5 with the friction of Raviola et al. (viscous friction that falls by 9 to 24 % from cold to
warm) repeats one motion of 12 s at 50 Hz. Temperatures wander over 15 K from run to run, friction
scatters by 0.3 % per joint and run, the torque channel has white noise. The model that says what to
expect is fitted to nine noisy runs of the same robot; 30 healthy runs are the baseline.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import Row
from taufit.estimators.wls import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.health import HealthReport, History, assess_health, friction_index, start_history
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.signals import Samples
from taufit.sim import random_fourier
from taufit.terms.friction import Linear, TemperatureDependent

COULOMB = np.array([6.5, 8.0, 6.0, 1.4, 1.4, 1.3])
VISCOUS = np.array([11.18, 16.52, 11.12, 2.02, 2.37, 2.01])
SLOPE = np.array([-0.08707, -0.3576, -0.1454, -0.04023, -0.02891, -0.01843])
COLD = np.array([25.2, 24.9, 22.2, 26.1, 22.4, 23.2])
NOISE = 0.4 * np.array([1.4, 1.4, 1.1, 0.35, 0.35, 0.3])
SCATTER = 0.003
RATE_HZ = 50.0
BASELINE = 30
HISTORIES, RUNS = 40, 110


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """A simulated robot with one motion: torque at any temperature and state of wear."""

    truth: TorqueModel
    blank: Samples

    def run(
        self,
        rng: np.random.Generator,
        warmth: np.ndarray,
        wear: np.ndarray | float = 0.0,
        motion: Samples | None = None,
    ) -> Samples:
        """One run at a mean temperature; `wear` is the relative rise of friction per joint."""
        blank = self.blank if motion is None else motion
        n, joints = blank.position.shape
        drift = np.linspace(-0.3, 0.3, n)[:, None] * rng.uniform(0.5, 1.5, joints)
        temperature = warmth + drift
        factor = (1.0 + wear) * (1.0 + SCATTER * rng.normal(size=joints))
        values = np.array(self.truth.values)
        first = 11 * joints
        terms = values[first : first + 3 * joints].reshape(joints, 3) * factor[:, None]
        values[first : first + 3 * joints] = terms.ravel()
        torque = self.truth.with_values(values).torque(
            blank.position, blank.velocity, blank.acceleration, temperature=temperature
        )
        torque = torque + NOISE * rng.normal(size=torque.shape)
        # A sensor shows tenths of a degree.
        return replace(blank, torque=torque).with_channels(temperature=np.round(temperature, 1))


def arm(seed: int = 0) -> Arm:
    robot = read_robot("ur5")
    friction = TemperatureDependent(Linear(0.02), "linear", 25.0, ("viscous",))
    terms = np.stack([COULOMB, VISCOUS + SLOPE * (25.0 - COLD), SLOPE], -1)
    rotor = np.array([1.1, 1.1, 1.1, 0.26, 0.26, 0.26])
    values = np.concatenate([robot.parameters, rotor, terms.ravel(), np.zeros(6)])
    truth = TorqueModel(robot, friction).with_values(values)
    return Arm(truth, motion(seed))


def motion(seed: int) -> Samples:
    path = random_fourier(
        read_robot("ur5"), seed=seed, frequency_hz=1 / 12, periods=1, speed=2.0, reach=1.4
    )
    q, v, a = path.at(np.arange(int(12 * RATE_HZ)) / RATE_HZ)
    return Samples.from_arrays(q, v, a, 0.0 * q, rate_hz=RATE_HZ)


def wandering(rng: np.random.Generator, runs: int) -> np.ndarray:
    """Mean joint temperatures of runs that wander over 15 K, all joints together and each alone."""
    walk = np.cumsum(rng.normal(size=runs))
    walk = (walk - walk.min()) / max(np.ptp(walk), 1e-9)
    return COLD + 15.0 * walk[:, None] + rng.normal(size=(runs, 6))


def fitted(one: Arm, seed: int) -> TorqueModel:
    """A temperature-aware model from nine noisy runs of other motions, cold to warm."""
    rng = np.random.default_rng((seed, 1))
    runs = [
        one.run(rng, COLD + 15.0 * share, motion=motion(100 + k))
        for k, share in enumerate(np.linspace(0, 1, 9))
    ]
    samples = Samples.concatenate(runs)
    model = TorqueModel(one.truth.robot, one.truth.friction_model)
    return fitted_model(model, fit_samples(model, samples, Wls()), samples)


def watched(
    one: Arm, model: TorqueModel, seed: int, runs: int, *, joint: int | None = None, rise=0.0
) -> tuple[History, HealthReport]:
    """A baseline and runs after it, with friction of one joint rising linearly up to `rise`."""
    rng = np.random.default_rng((seed, 2))
    warmth = wandering(rng, BASELINE + runs)
    healthy = [(f"healthy {k}", one.run(rng, warmth[k])) for k in range(BASELINE)]
    history = start_history(model, healthy)
    for k in range(runs):
        wear = np.zeros(6)
        if joint is not None:
            wear[joint] = rise * (k + 1) / runs
        history = history.with_run(f"run {k}", one.run(rng, warmth[BASELINE + k], wear))
    return history, assess_health(history)


def rows() -> Iterator[Row]:
    start = time.process_time()
    alarms = total = 0
    models = [fitted(arm(), seed) for seed in range(4)]
    for seed in range(HISTORIES):
        _, found = watched(arm(), models[seed % 4], seed, RUNS)
        alarms += len(found.alarms)
        total += RUNS
    seconds = time.process_time() - start
    yield Row(
        "false alarms per 1,000 healthy runs",
        1000 * alarms / total,
        "",
        "< 1",
        f"{alarms} in {total} runs of {HISTORIES} histories, set for 1; {seconds:.0f} CPU s",
    )
    right, delays, others = 0, [], 0
    for seed in range(12):
        joint = seed % 6
        history, found = watched(arm(), models[seed % 4], 1000 + seed, 60, joint=joint, rise=0.03)
        right += found.joints[joint].alarm
        others += sum(one.alarm for one in found.joints if one.joint != joint + 1)
        if found.joints[joint].alarm:
            names = [run.name for run in history.runs]
            delays.append(names.index(found.joints[joint].alarm_run) - BASELINE + 1)
    yield Row(
        "3 % rise over 60 runs found, right joint",
        100 * right / 12,
        "%",
        ">= 100",
        f"12 histories, every joint twice, alarm after {np.median(delays):.0f} runs (median), "
        f"{others} alarms on other joints",
    )
    yield from _sudden(models)
    yield from _loaded()
    model = models[0]
    rng = np.random.default_rng(5)
    history, _ = watched(arm(), model, 77, 0)
    for k in range(80):
        history = history.with_run(f"run {k}", arm().run(rng, COLD + (0.0 if k < 40 else 15.0)))
    found = assess_health(history)
    yield Row(
        "alarms while only temperature changes", float(len(found.alarms)), "", "<= 0",
        "40 runs in a row at the coldest, then 40 in a row 15 K warmer",
    )  # fmt: skip
    blind = TorqueModel(arm().truth.robot, Linear(0.02))
    rng = np.random.default_rng(6)
    train = Samples.concatenate(
        [arm().run(rng, COLD + 15.0 * s, motion=motion(100 + k)) for k, s in enumerate((0, 0.5, 1))]
    )
    blind = fitted_model(blind, fit_samples(blind, train, Wls()), train)
    scatter = [
        np.std([run.index for run in watched(arm(), one, 3, 0)[0].runs], axis=0)
        for one in (blind, model)
    ]
    ratio = scatter[0] / scatter[1]
    yield Row(
        "scatter of the index without temperature in the model",
        float(np.median(ratio)),
        "x",
        "",
        "median joint, 30 healthy runs that wander over 15 K",
    )


def _sudden(models: list[FittedModel]) -> Iterator[Row]:
    """Runs until friction that rose at once is found."""
    for rise, most in ((0.2, 3), (0.05, 15)):
        delays = []
        for seed in range(12):
            joint = seed % 6
            rng = np.random.default_rng((seed, 9))
            one, model = arm(), models[seed % 4]
            warmth = wandering(rng, BASELINE + 20)
            healthy = [(f"healthy {k}", one.run(rng, warmth[k])) for k in range(BASELINE)]
            history = start_history(model, healthy)
            wear = np.zeros(6)
            wear[joint] = rise
            found = None
            for k in range(20):
                history = history.with_run(f"run {k}", one.run(rng, warmth[BASELINE + k], wear))
                if assess_health(history).joints[joint].alarm:
                    found = k + 1
                    break
            delays.append(20 if found is None else found)
        yield Row(
            f"runs until a sudden +{100 * rise:.0f} % is found, worst of 12",
            float(max(delays)),
            "",
            f"<= {most}",
            f"median {np.median(delays):.0f}",
        )


def _loaded() -> Iterator[Row]:
    """UR10e: a healthy arm that carries 2.6 and 2.8 kg, against nine unloaded runs."""
    from benchmarks.accuracy.real_robots import DATA, MAPS, NINE, TRAIN
    from taufit.recording import read_recording
    from taufit.workflow import condition_for_model, identify

    folder = DATA / "ur10e" / "identification_data"
    if not folder.is_dir():
        return

    def read(name: str):
        return read_recording(folder / f"{name}.csv.gz", column_map=MAPS / "ur10e_csv.yaml")

    model = identify(read_robot(DATA / "ur10e" / "ur10e.urdf"), [read(TRAIN)], cutoff_hz=5.0).model
    history = start_history(
        model, [(name, condition_for_model(model, [read(name)])) for name in NINE]
    )
    loads = {"ur-20_01_13-load_2600": 2.602, "ur-20_01_31-load": 2.805}
    loads["ur-20_02_19_14harm50secLoad"] = 2.805
    worst = 0.0
    for repeat in range(8):
        for name, mass in loads.items():
            samples = condition_for_model(model, [read(name)])
            if repeat == 0:
                worst = max(worst, abs(friction_index(model, samples).payload / mass - 1.0))
            history = history.with_run(f"{name} {repeat}", samples)
    yield Row(
        "alarms in 24 replayed runs of a healthy arm with a payload",
        float(len(assess_health(history).alarms)),
        "",
        "<= 0",
        f"UR10e, nine unloaded runs before; mass found within {100 * worst:.1f} %",
    )
