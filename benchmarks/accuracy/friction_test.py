"""Friction tests end to end by commands, on noisy twins: design, simulate, friction.

All joints of a UR5 and a Panda, three payloads. The friction the model file predicts is compared
with the twin's own law at speeds midway between the tested ones (in logarithm), at the least, the
median and the largest load of the test; relative errors, root mean square. At twice the fastest
speed it is within 15 % or refused. Residuals of the chosen form with all its terms, all pairs
alike, are compared with the best of 20 Levenberg-Marquardt fits of all parameters from random
starts.

    python -m benchmarks.accuracy.friction_test CASE [SEED]

Twins: `ur5` typical friction and noise; `ur5-warmup` that warms up; `panda` torque sensors behind
the gears, which see 40 % of the friction in noise about as large.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row

PAYLOADS = ("", "1.5,0,0,0.05", "3,0,0,0.05")
STARTS = 20
SEED = 501
CASES = {
    "ur5": ("ur5", "typical"),
    "ur5-warmup": ("ur5", "ur5-warmup"),
    "panda": ("panda", "franka"),
}


@dataclass(frozen=True, slots=True)
class Joint:
    """One joint's test.

    Attributes:
        joint: From 1.
        between: Relative error between the tested speeds, rms.
        twice: Relative error at twice the fastest speed; NaN where refused.
        to_best: RMS of the residuals with all terms over that of the best random start, all pairs
            alike.
        kept_to_best: The same for the curve that was kept, its terms and the pairs' weights.
    """

    joint: int
    between: float
    twice: float
    to_best: float
    kept_to_best: float


def tested(case: str, seed: int, folder: Path) -> tuple[str, list[Joint]]:
    """The chosen model and every joint's figures."""
    arm, preset = CASES[case]
    _command("design", arm, "--kind", "friction-test", "-o", str(folder / "strokes.json"))
    files = []
    for k, payload in enumerate(PAYLOADS):
        files.append(str(folder / f"test{k}.parquet"))
        carried = ["--payload", payload] if payload else []
        _command(
            *("simulate", arm, str(folder / "strokes.json"), "--preset", preset, *carried),
            *("--seed", str(seed + k), "--rate-hz", "200", "-o", files[-1]),
        )
    model = folder / "friction.json"
    found = _command("friction", arm, *files, "-o", str(model))
    truth = json.loads((folder / "test0.truth.json").read_text())
    return found["model"], list(judged(found, truth, model, files))


def _command(*words: str) -> dict[str, Any]:
    """A command's JSON."""
    call = [sys.executable, "-m", "taufit", *words, "--json"]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def judged(
    found: dict[str, Any], truth: dict[str, Any], model: Path, files: list[str]
) -> Iterator[Joint]:
    """Figures of every joint against the twin's own law and against random starts."""
    from taufit.model.model_file import read_model
    from taufit.terms import TermInput

    fitted = read_model(model)
    steady = fitted.friction_model.steady_state()
    coefficients = fitted.values[fitted.layout.drive].reshape(fitted.robot.joints, -1)
    law = true_law(truth)
    best = random_starts(found, fitted, files)
    for one in found["joints"]:
        i = one["joint"] - 1
        shape = fitted.joint_shape[i] if fitted.friction_model.shapes else np.empty(0)
        warm = 30.0 if one["temperature"] is None else one["temperature"][1]

        def error(speed, load, i=i, shape=shape, warm=warm):
            load, warmth = np.full_like(speed, load), np.full_like(speed, warm)
            inputs = TermInput(speed, load=load, temperature=warmth)
            return steady.columns(inputs, shape) @ coefficients[i] / law(i, inputs) - 1.0

        speeds = np.array(one["tested_speeds"])
        middle = np.sqrt(speeds[1:] * speeds[:-1])
        errors = np.concatenate([error(middle, load) for load in one["load"]])
        known = one["valid_to"] >= 2.0 * speeds[-1] * (1 - 1e-3)
        twice = float(error(2.0 * speeds[-1:], one["load"][1])[0]) if known else np.nan
        spread = float(np.sqrt(np.mean(errors**2)))
        yield Joint(one["joint"], spread, twice, *best[one["joint"]])


def true_law(truth: dict[str, Any]) -> Callable[[int, Any], np.ndarray]:
    """Friction at constant speed by the twin's own settings, as its torque channel sees it."""
    from taufit.terms import term_from_dict

    effects = truth["effects"]
    friction, thermal = effects["friction"], effects.get("thermal")
    seen = 1.0
    if truth["torque_side"] == "link":
        seen = effects["sensing"]["friction_share"]
    model = term_from_dict(friction["model"]).steady_state()

    def each(value, i):
        return value[i] if isinstance(value, list) else value

    def law(i, inputs):
        shape = np.empty(0) if friction["shape"] is None else np.array(friction["shape"][i])
        level = model.columns(inputs, shape) @ np.array(friction["coefficients"][i])
        level = level + each(friction["load_factor"], i) * np.abs(inputs.load)
        if thermal is not None:
            slope = each(thermal["coulomb_slope"], i)
            slope = slope + each(thermal["viscous_slope"], i) * inputs.velocity
            level = level + slope * (inputs.temperature - each(thermal["reference"], i))
        # Age grows in `dwell` and fades within `distance`: where both balance at this speed.
        age = 1.0 / (1.0 + inputs.velocity * friction["dwell"] / friction["distance"])
        level = level * (1.0 + each(friction["breakaway"], i) * age)
        return seen * truth["friction_scale"][i] * level

    return law


def random_starts(
    found: dict[str, Any], fitted: Any, files: list[str]
) -> dict[int, tuple[float, float]]:
    """Ours over the best of Levenberg-Marquardt fits of all parameters from random starts.

    Per joint: residuals of all terms with all pairs alike, and of the terms that were kept with
    the pairs' weights, rms.
    """
    from taufit.calibration.friction_identification import collect_friction_pairs
    from taufit.recording import read_recording
    from taufit.signals import condition

    samples = (condition(read_recording(path), cutoff_hz=10.0) for path in files)
    joints = {one["joint"]: one for one in found["joints"]}
    coefficients = fitted.values[fitted.layout.drive].reshape(fitted.robot.joints, -1)
    terms = [term.name for term in fitted.friction_model.parameters]
    out = {}
    for pairs in collect_friction_pairs(fitted.robot, samples).pairs:
        one = joints[pairs.joint]
        every = np.ones(len(terms), bool)
        least = best_start(fitted.friction_model, pairs, every, np.ones(len(pairs.torque)))
        kept = np.array([name not in one["dropped"] for name in terms])
        alone = best_start(fitted.friction_model, pairs, kept, pairs.weight)
        shape = fitted.joint_shape[pairs.joint - 1] if fitted.friction_model.shapes else np.empty(0)
        curve = columns_at(fitted.friction_model, pairs, shape) @ coefficients[pairs.joint - 1]
        ours = float(np.sqrt(np.mean((pairs.weight * (curve - pairs.torque)) ** 2)))
        out[pairs.joint] = (one["rmse_all_terms"] / least, ours / alone)
    return out


def columns_at(model: Any, pairs: Any, shape: Any) -> np.ndarray:
    """The model's columns at the pairs."""
    from taufit.terms import TermInput

    inputs = TermInput(pairs.velocity, load=pairs.load, temperature=pairs.temperature)
    return model.steady_state().columns(inputs, shape)


def best_start(model: Any, pairs: Any, live: np.ndarray, weight: np.ndarray) -> float:
    """Least weighted RMS over the random starts, coefficients and logarithms of shapes at once."""
    from scipy.optimize import least_squares

    terms, rng = int(live.sum()), np.random.default_rng(pairs.joint)
    low = np.log([shape.lower for shape in model.shapes])
    high = np.log([shape.upper for shape in model.shapes])
    level = float(np.mean(pairs.torque))

    def residual(x: np.ndarray) -> np.ndarray:
        columns = columns_at(model, pairs, np.exp(np.clip(x[terms:], low, high)))[:, live]
        return weight * (columns @ x[:terms] - pairs.torque)

    costs = []
    for _ in range(STARTS):
        start = np.r_[level * rng.uniform(-1, 2, terms), rng.uniform(low, high)]
        costs.append(least_squares(residual, start, method="lm", max_nfev=2000).cost)
    return float(np.sqrt(2.0 * min(costs) / len(pairs.torque)))


def rows() -> Iterator[Row]:
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            yield from rows_of(case, *tested(case, SEED, Path(folder)))


def rows_of(case: str, name: str, joints: list[Joint]) -> Iterator[Row]:
    """The figures of one test."""
    note = f"{name}; joints " + ", ".join(f"{100 * one.between:.1f}" for one in joints)
    worst = 100.0 * max(one.between for one in joints)
    yield Row(f"{case}: error between tested speeds, worst joint", worst, "%", "<= 3", note)
    known = [100.0 * abs(one.twice) for one in joints if np.isfinite(one.twice)]
    note = f"{len(joints) - len(known)} of {len(joints)} joints refused"
    yield Row(f"{case}: at twice the fastest", max(known, default=0.0), "%", "<= 15", note)
    ratio = max(one.to_best for one in joints)
    yield Row(f"{case}: residuals / best of 20 starts", ratio, "", "<= 1.0001", "all terms")
    ratio = max(one.kept_to_best for one in joints)
    note = "the curve kept: its terms, passive, with the pairs' weights"
    yield Row(f"{case}: the same, curve kept", ratio, "", "<= 1.005", note)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        model_name, figures = tested(
            sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else SEED, Path(place)
        )
    print(model_name)
    for figure in figures:
        print(figure)
