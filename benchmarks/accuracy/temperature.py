"""A robot that warms up: one temperature-aware fit against what is usually done.

UR3 and UR5 of Raviola et al. on the twin: friction, temperatures and noise of the warm-up presets,
twelve runs of 30 s while half an hour of warming passes. Errors are on runs nobody was fitted to,
cold, half warm and warm, recorded without noise, as root mean square over all joints while they
turn faster than 0.1 rad/s (four fifths of the time). Slower than that, what happens at reversals
between two samples leaves 0.1 N m to every model, the true one included.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.estimation import fitted_model, predicted_torque
from taufit.estimation.fit_samples import fit_samples
from taufit.estimation.repeated import Repeated, repeat_identification
from taufit.estimation.temperature import follow_temperature, friction_at
from taufit.estimation.thermal_state import ThermalState, follow_heat, thermal_temperature
from taufit.estimation.wls import Wls
from taufit.friction import Presliding
from taufit.signals import Samples, condition
from taufit.sim import Twin, read_preset
from taufit.torque_model import TorqueModel

RUNS, PERIODS = 12, 3
CUTOFF_HZ = 10.0
FAST = 0.1
WARM_UP_S = 1800.0
# Temperatures of the paper, degC; Table 4, percent.
WARM = np.array([36.5, 34.6, 32.6, 37.9, 39.7, 40.1])
TABLE_4 = {
    "ur3": np.array([-10.6, -11.6, -19.5, -26.4, -25.5, -23.9]),
    "ur5": np.array([-8.8, -21.0, -13.6, -23.5, -21.1, -15.5]),
}
# The twin's friction turns over within 0.2 mrad of travel.
FRICTION = Presliding((2e-4,), load=False, quadratic=False)


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A warm-up, run after run, and noise-free runs at three states of warmth.

    Attributes:
        twin: The arm.
        samples: All runs, conditioned together.
        tests: Noise-free runs: cold, half-way in temperature, warm.
    """

    twin: Twin
    samples: Samples
    tests: tuple[Samples, ...]

    @property
    def runs(self) -> list[Samples]:
        out = []
        for rows in self.samples.run_slices():
            part = self.samples.rows(rows)
            name = self.samples.names[int(part.run[0])]
            out.append(replace(part, run=0 * part.run, names=(name,)))
        return out


def warm_up(name: str, *, runs: int = RUNS, periods: int = PERIODS, seed: int = 0) -> Session:
    """Runs back to back while thermal time passes faster, so that they span the whole warm-up."""
    preset = read_preset(f"{name}-warmup")
    effects = preset.twin.effects
    speed_up = WARM_UP_S / (runs * (10.0 * periods + 0.6))
    warm = np.array(effects.thermal.initial, float)
    housing, recordings, states = warm, [], []
    for k in range(runs):
        thermal = replace(effects.thermal, initial=warm, initial_housing=housing, speed_up=speed_up)
        twin = replace(preset.twin, effects=replace(effects, thermal=thermal))
        run = twin.run(preset.motion(seed + k, periods=periods), seed=seed + k, rest=(0.3, 0.3))
        states.append((warm, housing))
        warm, housing = run.trace.temperature[-1], np.array(run.truth["housing_end"])
        recordings.append(run.recording)
    quiet = effects.without("sensing", "encoder")
    tests = []
    course = np.array([state[0].mean() for state in states])
    half = int(np.argmin(np.abs(course - 0.5 * (course[0] + course[-1]))))
    for k in (0, half, runs - 1):
        thermal = replace(effects.thermal, initial=states[k][0], initial_housing=states[k][1])
        still = replace(quiet, thermal=thermal, friction=replace(effects.friction, scatter=0.0))
        motion = preset.motion(seed + 900 + k, periods=1)
        run = replace(preset.twin, effects=still).run(motion, seed=k, rest=(0.3, 0.3))
        tests.append(condition([run.recording], cutoff_hz=CUTOFF_HZ, delay_s=0.0))
    return Session(preset.twin, condition(recordings, cutoff_hz=CUTOFF_HZ), tuple(tests))


def fitted(model: TorqueModel, samples: Samples, dropped: tuple[str, ...] = ()) -> TorqueModel:
    """Weighted least squares, all parameters free."""
    return fitted_model(model, fit_samples(model, samples, Wls(), dropped=dropped), samples)


def error(model: TorqueModel, samples: Samples) -> float:
    """Root mean square over joints and samples in motion faster than 0.1 rad/s [N m]."""
    left = samples.torque - predicted_torque(model, samples)
    counted = samples.in_motion[:, None] & (np.abs(samples.velocity) > FAST)
    return float(np.sqrt(np.mean(left[counted] ** 2)))


def compared(session: Session) -> dict[str, Any]:
    """Every way of dealing with temperature, on the three tests."""
    plain = TorqueModel(session.twin.robot, FRICTION)
    runs = session.runs
    choice = follow_temperature(plain, session.samples, "linear")
    aware = fitted(choice.model, choice.samples, choice.dropped)
    blind = fitted(plain, session.samples)
    repeated = repeat_identification(plain, runs, Wls())
    heat = follow_heat(plain, replace(session.samples, temperature=None))
    latent = fitted(heat.model, heat.samples, heat.dropped)
    latent = replace(latent, meta={**latent.meta, "thermal": heat.model.meta["thermal"]})
    cold = repeated.models[0]
    out: dict[str, Any] = {"aware_model": aware, "repeated": repeated, "dropped": choice.dropped}
    tests = session.tests
    out["aware"] = [error(aware, one) for one in tests]
    out["blind"] = [error(blind, one) for one in tests]
    out["cold"] = [error(cold, one) for one in tests]
    out["repeated_error"] = [
        error(repeated.nearest(one.temperature[one.in_motion].mean(axis=0)), one) for one in tests
    ]
    state = ThermalState.from_dict(latent.meta["thermal"])
    out["heat"] = [
        error(latent, replace(one, temperature=thermal_temperature(latent, one, state)))
        for one in tests
    ]
    return out


def changes(session: Session, aware: TorqueModel, repeated: Repeated) -> tuple[Any, Any]:
    """Percent of viscous friction lost from the paper's cold to its warm temperatures."""
    cold = np.array(session.twin.effects.thermal.reference, float)
    ours = friction_at(aware, WARM)[0] / friction_at(aware, cold)[0]
    theirs = repeated.at(WARM) / repeated.at(cold)
    return 100.0 * (ours - 1.0), 100.0 * (theirs - 1.0)


def rows() -> Iterator[Row]:
    for name in ("ur5", "ur3"):
        start = time.process_time()
        session = warm_up(name)
        found = compared(session)
        aware = np.array(found["aware"])
        seconds = time.process_time() - start
        friction = session.twin.effects.friction
        thermal = session.twin.effects.thermal
        worst = 0.0
        for at in (np.array(thermal.reference, float), WARM):
            truth = friction.coefficients[:, 1] + thermal.viscous_slope * (at - thermal.reference)
            worst = max(worst, np.abs(friction_at(found["aware_model"], at)[0] / truth - 1).max())
            dry = friction_at(found["aware_model"], at, "coulomb")[0]
            worst = max(worst, np.abs(dry / friction.coefficients[:, 0] - 1).max())
        ours, theirs = changes(session, found["aware_model"], found["repeated"])
        off = [np.abs(x - TABLE_4[name]).max() for x in (ours, theirs)]
        label = f"{name.upper()} warm-up"
        yield Row(
            f"{label}: friction coefficients, cold and warm",
            100 * worst,
            "%",
            "<= 2",
            f"worst of 24; {RUNS} runs, {seconds:.0f} CPU s",
        )
        yield Row(
            f"{label}: Table 4 percentages",
            off[0],
            "points",
            "<= 1",
            f"worst joint; repeated identification {off[1]:.2f}",
        )
        for key, what, target in (
            ("blind", "blind pooled fit over aware fit", ">= 3"),
            ("repeated_error", "repeated identification over aware fit", ">= 1"),
        ):
            other = np.array(found[key])
            yield Row(
                f"{label}: {what}",
                float((other / aware).min()),
                "x",
                target,
                f"smallest of cold, mid, warm; {_told(other)} / {_told(aware)} N m",
            )
        yield Row(
            f"{label}: identified cold, used warm, over aware fit",
            found["cold"][2] / aware[2],
            "x",
            ">= 10",
            f"{found['cold'][2]:.3f} / {aware[2]:.3f} N m",
        )
        heat, blind = np.array(found["heat"]), np.array(found["blind"])
        yield Row(
            f"{label} without a sensor: thermal model over blind fit",
            float(np.sqrt(np.mean(heat**2) / np.mean(blind**2))),
            "x",
            "<= 0.5",
            f"cold, mid, warm: {_told(heat)} N m; start temperature estimated from each run",
        )


def _told(values: np.ndarray) -> str:
    return " ".join(f"{x:.3f}" for x in values)
