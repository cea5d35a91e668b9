"""A robot that warms up: one temperature-aware fit against what is usually done.

UR3 and UR5 of Raviola et al. on the twin: friction, temperatures and noise of the warm-up presets,
59 runs of 30 s back to back, which is the half hour of the paper at its own pace, on two mornings.
Errors are on runs nobody was fitted to, recorded without noise, as root mean square over all joints
and all samples in motion; every figure is the worst of three seeds.

"Mid" can be read in two ways, and both are told: half-way in temperature, and half-way in time. A
fit that ignores temperature is by construction best near the mean of the temperatures it has seen,
which is where the robot is half-way in time: there it is off by the distance to that mean only.

All fits are given the twin's own pre-sliding width, so that nothing but temperature tells them
apart, and leave out a joint's rows below 0.02 rad/s: there the noise of the encoders blurs the
moment of a reversal. The errors leave nothing out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.dynamics import base_parameters
from taufit.estimators.wls import Wls
from taufit.fitting import automatic_model, fitted_model
from taufit.fitting.fit import fit
from taufit.fitting.fit_samples import solve_rows
from taufit.fitting.selection.presliding_width import with_fitted_width
from taufit.model import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.regression.regression import RowsInMemory
from taufit.regression.rows import SampleRows
from taufit.report.temperature_page import torque_change
from taufit.signals import Samples, condition
from taufit.sim import Twin, read_preset
from taufit.temperature.heat_model import thermal_temperature, with_thermal_model
from taufit.temperature.runwise_fits import RunwiseFits, repeat_identification, single_runs
from taufit.temperature.temperature_slopes import friction_at, select_temperature_law
from taufit.terms.friction import Presliding

RUNS, PERIODS, MORNINGS = 59, 3, 2
SEEDS = (40_000, 50_000, 60_000)
CUTOFF_HZ, DEAD_ZONE = 10.0, 0.02
STATES = ("cold", "half warm", "half time", "warm")
# Temperatures of the paper, degC; Table 4, percent.
WARM = np.array([36.5, 34.6, 32.6, 37.9, 39.7, 40.1])
TABLE_4 = {
    "ur3": np.array([-10.6, -11.6, -19.5, -26.4, -25.5, -23.9]),
    "ur5": np.array([-8.8, -21.0, -13.6, -23.5, -21.1, -15.5]),
}
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "ur3_ur5_temperature_mounting.json"
# The twin's friction turns over within 0.2 mrad of travel.
FRICTION = Presliding((2e-4,), load=False, quadratic=False)


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A warm-up, run after run, and noise-free runs at four states of warmth.

    Attributes:
        twin: The arm.
        samples: All runs, conditioned together.
        morning: How many of them are of the first morning.
        tests: Noise-free runs of `STATES`.
        pair: One motion with every joint kept cold, and kept warm.
        end: Temperatures at the end [degC].
    """

    twin: Twin
    samples: Samples
    morning: int
    tests: tuple[Samples, ...]
    pair: tuple[Samples, Samples]
    end: np.ndarray


def warm_up(
    name: str,
    *,
    runs: int = RUNS,
    periods: int = PERIODS,
    mornings: int = MORNINGS,
    seed: int = 0,
) -> Session:
    """Runs back to back, each starting as warm as the last one ended; every morning anew."""
    preset = read_preset(f"{name}-warmup")
    effects = preset.twin.effects
    cold = np.array(effects.thermal.initial, float)
    recordings: list[Any] = []
    states: list[tuple[Any, Any]] = []
    for k in range(runs * mornings):
        if k % runs == 0:
            warm = housing = cold
        thermal = replace(effects.thermal, initial=warm, initial_housing=housing)
        twin = replace(preset.twin, effects=replace(effects, thermal=thermal))
        run = twin.run(preset.motion(seed + k, periods=periods), seed=seed + k, rest=(0.3, 0.3))
        states.append((warm, housing))
        warm, housing = run.trace.temperature[-1], np.array(run.truth["housing_end"])
        recordings.append(run.recording)

    quiet = replace(
        effects.without("sensing", "encoder"), friction=replace(effects.friction, scatter=0.0)
    )

    def test(motion_seed: int, state: tuple[Any, Any], **thermal: Any) -> Samples:
        heat = replace(effects.thermal, initial=state[0], initial_housing=state[1], **thermal)
        motion = preset.motion(motion_seed, periods=1)
        arm = replace(preset.twin, effects=replace(quiet, thermal=heat))
        run = arm.run(motion, seed=0, rest=(0.3, 0.3))
        return condition([run.recording], cutoff_hz=CUTOFF_HZ, delay_s=0.0)

    course = np.array([state[0].mean() for state in states[:runs]])
    half = int(np.argmin(np.abs(course - 0.5 * (course[0] + course[-1]))))
    at = (0, half, runs // 2, runs - 1)
    return Session(
        preset.twin,
        condition(recordings, cutoff_hz=CUTOFF_HZ, dead_zone=DEAD_ZONE),
        runs,
        tuple(test(seed + 900 + k, states[k]) for k in at),
        (
            test(seed + 900, (cold, cold), speed_up=0.0),
            test(seed + 900, (WARM, WARM), speed_up=0.0),
        ),
        warm,
    )


def fitted(model: TorqueModel, samples: Samples, dropped: tuple[str, ...] = ()) -> TorqueModel:
    """Weighted least squares, all parameters free; their covariance is not asked for."""
    rows = SampleRows(model, samples, dropped=dropped)
    base = base_parameters(model, dropped=dropped)
    solution, _, _ = solve_rows(RowsInMemory(rows, base), model, Wls())
    return model.with_values(solution.values)


def error(model: TorqueModel, samples: Samples) -> float:
    """Root mean square over joints and all samples in motion [N m]."""
    left = samples.torque - predicted_torque(model, samples)
    return float(np.sqrt(np.mean(left[samples.in_motion] ** 2)))


def compared(session: Session) -> dict[str, Any]:
    """Every way of dealing with temperature, on the tests."""
    plain = TorqueModel(session.twin.robot, FRICTION)
    choice = select_temperature_law(plain, session.samples, "linear")
    aware = fitted(choice.model, choice.samples, choice.dropped)
    blind = fitted(plain, session.samples)
    repeated = repeat_identification(plain, single_runs(session.samples)[: session.morning], Wls())
    tests = session.tests
    return {
        "aware_model": aware,
        "repeated_fits": repeated,
        "aware": np.array([error(aware, one) for one in tests]),
        "blind": np.array([error(blind, one) for one in tests]),
        "cold": np.array([error(repeated.models[0], one) for one in tests]),
        "repeated": np.array([error(repeated.nearest(_warmth(one)), one) for one in tests]),
        "expected": np.array([blind_by_theory(session, one) for one in tests]),
    }


def blind_by_theory(session: Session, test: Samples) -> float:
    """What ignoring temperature must cost a fit that is right otherwise [N m].

    Pooled least squares takes viscous friction as its mean over the runs, weighted with v^2; the
    error is the distance of the true one from it, times v.
    """
    thermal, all_ = session.twin.effects.thermal, session.samples
    square = all_.velocity[all_.in_motion] ** 2
    pooled = np.sum(square * all_.temperature[all_.in_motion], 0) / square.sum(0)
    off = thermal.viscous_slope * (_warmth(test) - pooled)
    return float(np.sqrt(np.mean((off * test.velocity[test.in_motion]) ** 2)))


def without_sensor(session: Session) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the thermal model, which is shown no temperature, and of a blind fit.

    Both see the first morning: heat is followed from run to run, and the night is not recorded.
    """
    plain = TorqueModel(session.twin.robot, FRICTION)
    morning = session.samples.rows(session.samples.run < session.morning)
    heat = with_thermal_model(plain, morning.with_channels(temperature=None))
    latent = fitted(heat.model, heat.samples, heat.dropped)
    blind = fitted(plain, morning)
    state = heat.thermal
    followed = [
        error(latent, one.with_channels(temperature=thermal_temperature(latent, one, state)))
        for one in session.tests
    ]
    return np.array(followed), np.array([error(blind, one) for one in session.tests])


def with_default_widths(session: Session) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the default fit, which finds the pre-sliding width, and of a blind one."""
    choice = select_temperature_law(automatic_model(session.twin.robot), session.samples, "linear")
    model = with_fitted_width(choice.model, choice.samples)
    dropped = tuple(name for name in choice.dropped if name in model.names)
    found = fit(model, choice.samples, dropped=dropped)
    aware = fitted_model(model, found, choice.samples)
    plain = TorqueModel(session.twin.robot, Presliding(load=False, quadratic=False))
    blind = fitted(plain, session.samples)
    out = [[error(model, one) for one in session.tests] for model in (aware, blind)]
    return np.array(out[0]), np.array(out[1])


def coefficient_error(session: Session, aware: TorqueModel) -> float:
    """Worst relative error of Coulomb and viscous friction, cold and warm."""
    friction, thermal = session.twin.effects.friction, session.twin.effects.thermal
    cold = np.array(thermal.reference, float)
    worst = 0.0
    for at in (cold, WARM):
        truth = friction.coefficients[:, 1] + thermal.viscous_slope * (at - cold)
        worst = max(worst, np.abs(friction_at(aware, at)[0] / truth - 1).max())
        dry = friction_at(aware, at, "coulomb")[0]
        worst = max(worst, np.abs(dry / friction.coefficients[:, 0] - 1).max())
    return worst


def changes(session: Session, aware: TorqueModel, repeated: RunwiseFits) -> tuple[Any, Any]:
    """Percent of viscous friction lost from the paper's cold to its warm temperatures."""
    cold = np.array(session.twin.effects.thermal.reference, float)
    ours = friction_at(aware, WARM)[0] / friction_at(aware, cold)[0]
    theirs = repeated.at(WARM) / repeated.at(cold)
    return 100.0 * (ours - 1.0), 100.0 * (theirs - 1.0)


def torque_rows(label: str, name: str, found: list[tuple[Session, dict[str, Any]]]) -> Iterator:
    """Tables 5 to 7: what warmth does to torque."""
    off, tables = [], []
    for session, fits in found:
        cold = np.array(session.twin.effects.thermal.reference, float)
        aware, pair = fits["aware_model"], session.pair
        said = np.array(torque_change(aware, pair[0], cold, WARM))
        change = np.abs(pair[1].torque - pair[0].torque)[pair[0].in_motion]
        off.append(np.abs(said / np.array([change.mean(0), change.max(0)]) - 1.0).max(1))
        tables.append(np.abs(friction_at(aware, cold)[0] - friction_at(aware, WARM)[0]) * np.pi)
    for k, what in enumerate(("mean", "largest")):
        yield Row(
            f"{label}: {what} change of torque along a motion, cold to warm",
            100.0 * max(one[k] for one in off),
            "%",
            "",
            "worst joint, against the twin kept cold and kept warm; "
            f"as Table {5 + k}, with another motion",
        )
    if not REFERENCE.is_file():
        return
    paper = json.loads(REFERENCE.read_text())
    limits = np.array(paper["max_joint_torque_Nm"][name.upper()], float)
    printed = np.array(paper["temperature"]["table6_max_torque_change_Nm"][name.upper()])
    seven = paper["temperature"]["table7_percent_of_max_torque"]
    groups = (
        (("UR3_base_shoulder", [0, 1]), ("UR3_elbow", [2]), ("UR3_wrists", [3, 4, 5]))
        if name == "ur3"
        else (("UR5_base_shoulder_elbow", [0, 1, 2]), ("UR5_wrists", [3, 4, 5]))
    )
    yield Row(
        f"{label}: Table 6 at the speed limit",
        100.0 * max(np.abs(table / printed - 1.0).max() for table in tables),
        "%",
        "<= 5",
        "identified change of viscous friction times pi rad/s, worst joint; "
        + _told(tables[0])
        + " N m",
    )
    shares = [
        [100.0 * np.mean(table[joints] / limits[joints]) - seven[key] for key, joints in groups]
        for table in tables
    ]
    yield Row(
        f"{label}: Table 7, percent of the largest torque",
        float(np.abs(shares).max()),
        "points",
        "<= 0.2",
        "the same over Table 2, means of a joint size",
    )


def rows() -> Iterator[Row]:
    for name in ("ur5", "ur3"):
        start = time.process_time()
        found = []
        for seed in SEEDS:
            session = warm_up(name, seed=seed)
            found.append((session, compared(session)))
        seconds = time.process_time() - start
        label = f"{name.upper()} warm-up"
        yield Row(
            f"{label}: temperatures at the end",
            max(float(np.abs(session.end - WARM).max()) for session, _ in found),
            "K",
            "",
            f"worst joint, against the paper's; {MORNINGS} x {RUNS} runs, {len(SEEDS)} seeds, "
            f"{seconds:.0f} CPU s",
        )
        yield Row(
            f"{label}: friction coefficients, cold and warm",
            100 * max(coefficient_error(s, fits["aware_model"]) for s, fits in found),
            "%",
            "<= 2",
            "worst of 24 and of the seeds",
        )
        percent = [changes(s, fits["aware_model"], fits["repeated_fits"]) for s, fits in found]
        off = np.abs(np.array(percent) - TABLE_4[name]).max((0, 2))
        yield Row(
            f"{label}: Table 4 percentages",
            off[0],
            "points",
            "<= 1",
            f"worst joint; repeated identification {off[1]:.2f}",
        )
        yield from torque_rows(label, name, found)
        for k, state in enumerate(STATES):
            at = {key: np.array([fits[key][k] for _, fits in found]) for key in _ERRORS}
            yield Row(
                f"{label}, {state}: blind pooled fit over aware fit",
                float((at["blind"] / at["aware"]).min()),
                "x",
                ">= 3",
                f"seeds {_told(at['blind'])} / {_told(at['aware'])} N m; "
                f"theory of ignored temperature {_told(at['expected'])}",
            )
            yield Row(
                f"{label}, {state}: repeated identification over aware fit",
                float((at["repeated"] / at["aware"]).min()),
                "x",
                ">= 1",
                f"seeds {_told(at['repeated'])} N m",
            )
        at = {key: np.array([fits[key][-1] for _, fits in found]) for key in _ERRORS}
        yield Row(
            f"{label}: identified cold, used warm, over aware fit",
            float((at["cold"] / at["aware"]).min()),
            "x",
            ">= 10",
            f"seeds {_told(at['cold'])} / {_told(at['aware'])} N m",
        )
        own, blind = with_default_widths(found[0][0])
        yield Row(
            f"{label}, pre-sliding width not told: blind over aware fit",
            float(np.delete(blind / own, STATES.index("half time")).min()),
            "x",
            "",
            f"smallest of cold, half warm, warm; {', '.join(STATES)}: {_told(blind)} / "
            f"{_told(own)} N m",
        )
        yield Row(
            f"{label}, pre-sliding width not told: error",
            float(np.delete(own, STATES.index("half time")).max()),
            "N m",
            "<= 0.03",
            "largest of cold, half warm, warm",
        )
        heat, blind = without_sensor(found[0][0])
        yield Row(
            f"{label} without a sensor: thermal model over blind fit",
            float(np.sqrt(np.mean(heat**2) / np.mean(blind**2))),
            "x",
            "<= 0.5",
            f"{', '.join(STATES)}: {_told(heat)} N m; start temperature estimated from each run",
        )


_ERRORS = ("aware", "blind", "cold", "repeated", "expected")


def _warmth(samples: Samples) -> np.ndarray:
    assert samples.temperature is not None
    return samples.temperature[samples.in_motion].mean(axis=0)


def _told(values: np.ndarray) -> str:
    return " ".join(f"{x:.3g}" for x in values)
