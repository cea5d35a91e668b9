"""First seconds of shared recordings, judged by the rest: with and without usual friction.

Usual friction is the prior mean of viscous terms on arms whose torque is measured at
the motor. For every arm it is taken from whole recordings of the others, and the arm is scored with
it; UR10 and UR10e are one arm in this. Beside it stand zero means, as before, and the constants of
the package, which have seen all arms. Reads the recordings beside the project (../shared/data).

Simulated arms, of none of which the constants are: ten seconds of work from point to point, judged
by a random motion. Beside it stands a fit of thirty seconds of another random motion.

    python -m benchmarks.accuracy.short_logs [ARM ...]     single cases
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import taufit.fitting.selection.usual_friction as usual_module
from benchmarks import Row
from benchmarks.accuracy.leave_one_arm_out import ARM_CASES, Case, nrmse
from benchmarks.accuracy.real_robots import DATA
from benchmarks.contact_runs import work
from taufit.fitting.selection.prior_scales import maximise_evidence
from taufit.recording import Recording, crop
from taufit.robot import read_robot
from taufit.signals import condition
from taufit.signals.sample_source import as_source
from taufit.sim import Twin, random_fourier, typical_effects, typical_rotor
from taufit.workflow import identify

NAMES = ("_VISCOUS", "_QUADRATIC")
SECONDS = (3.0, 5.0, 8.0)
ARMS = ("UR10e", "UR10", "TX40", "Airbot", "Kinova", "KR300")
SIMULATED, SEED = ("ur3e", "ur5e", "kr5", "piper", "panda", "fr3", "iiwa7", "iiwa14"), 41
SAME = {"UR10e": ("UR10e", "UR10"), "UR10": ("UR10e", "UR10")}
Usual = tuple[tuple[float, float, float], ...]
NONE: Usual = ((0.0, 1e-6, 1.0),) * len(NAMES)


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    ratios = {arm: ratios_to_level(arm) for arm in ARMS}
    logs, worst = [], ("", 0.0)
    for arm in ARMS:
        others = usual_friction(ratios, without(arm))
        for case in cases(arm):
            before, after, default = (score(case, usual) for usual in (NONE, others, None))
            ratio = after / before
            logs.append(np.log(ratio))
            worst = max(worst, (case.name, ratio), key=lambda x: x[1])
            note = f"nrmse {before:.4f} without, {after:.4f} with; own constants {default:.4f}"
            yield Row(f"{case.name}, usual friction of other arms", ratio, "x", "", note)
    mean = float(np.exp(np.mean(logs)))
    yield Row("geometric mean of all", mean, "x", "<= 1", f"{len(logs)} cases")
    yield Row("largest", worst[1], "x", "", worst[0])
    yield from simulated_rows()


def simulated_rows() -> Iterator[Row]:
    """Ten seconds of work of simulated arms: error with usual friction over that without."""
    inside = []
    for name in SIMULATED:
        case, exciting = simulated_work(name)
        with usual_constants(NONE):
            before = identify(case.robot, [case.training], **_judged_by(case))
        after = identify(case.robot, [case.training], **_judged_by(case))
        long = identify(case.robot, [exciting], **_judged_by(case))
        errors = [done.mean_holdout_nrmse or np.nan for done in (before, after, long)]
        inside.append(after.holdout_scores[0].mean_inside or np.nan)
        note = (
            f"{case.training.torque_source}; nrmse {errors[0]:.4f} without, {errors[1]:.4f} with; "
            f"30 s of random motion {errors[2]:.4f}; inside the 95 % band "
            f"{100.0 * inside[-1]:.1f} %"
        )
        yield Row(f"{name}, 10 s of work, usual friction", errors[1] / errors[0], "x", "", note)
    mean = 100.0 * float(np.mean(inside))
    yield Row("10 s of work: inside the 95 % band, mean", mean, "%", "92 .. 98")


def simulated_work(name: str, offset_share: float = 0.0) -> tuple[Case, Recording]:
    """Work and a random motion of a simulated arm, and a longer random motion of it.

    Its offsets are a share of its Coulomb friction.
    """
    robot, rng = read_robot(name), np.random.default_rng([SEED, *name.encode()])
    factors = np.repeat(rng.uniform(0.7, 1.3, robot.joints), 10)
    truth = typical_rotor(robot.with_parameters(robot.parameters * factors))
    effects = typical_effects(truth)
    offset = offset_share * effects.friction.coefficients[:, 0]
    effects = replace(effects, friction=replace(effects.friction, offset=offset))
    twin = Twin(truth, effects, name=name)
    motions = (
        work(truth, 10.0, SEED),
        random_fourier(truth, seed=SEED + 1, periods=1.0),
        random_fourier(truth, seed=SEED + 2, periods=3.0),
    )
    runs = [twin.run(motion, seed=SEED, rate_hz=500.0).recording for motion in motions]
    training, test, exciting = (
        replace(run, meta={k: v for k, v in run.meta.items() if k != "robot"}) for run in runs
    )
    return Case(name, robot, training, (test,)), exciting


def _judged_by(case: Case) -> dict[str, Any]:
    """Settings of a fit that the tests of a case judge."""
    tests = {str(k): [test] for k, test in enumerate(case.tests)}
    return {"holdout": tests, "cutoff_hz": case.cutoff_hz, "ignore_contradictions": True}


def cases(arm: str) -> Iterator[Case]:
    """First seconds of motion of the first training part of an arm, against the rest."""
    case = next(ARM_CASES[arm]())
    samples = condition(case.training, cutoff_hz=case.cutoff_hz)
    start = float(samples.time[np.flatnonzero(samples.in_motion)[0]])
    end = float(samples.time[np.flatnonzero(samples.in_motion)[-1]])
    for seconds in SECONDS:
        if start + seconds + 1.0 > end:
            continue
        training = crop(case.training, None, start + seconds)
        rest = crop(case.training, start + seconds + 0.5, None)
        tests = case.tests if arm in ("UR10e", "KR300") else (rest, *case.tests)
        yield replace(case, name=f"{arm}, {seconds:.0f} s", training=training, tests=tests)


def ratios_to_level(arm: str) -> np.ndarray:
    """Viscous and v |v| friction over its observed level, joint by joint, of a fit."""
    case = next(ARM_CASES[arm]())
    training = [case.training, *case.tests[:1]]
    with usual_constants(NONE):
        result = identify(
            case.robot,
            training,
            cutoff_hz=case.cutoff_hz,
            friction="presliding",
            ignore_contradictions=True,
        )
        search = maximise_evidence(result.model.structure, as_source(result.samples), ())
    scales = search.scales
    terms = usual_module.usual_friction(search.model, scales.viscous)
    return np.array([result.model.values[term.indices] / term.level for term in terms])


def without(arm: str) -> list[str]:
    """Arms whose usual friction another one is judged with."""
    return [other for other in ARMS if other not in SAME.get(arm, (arm,))]


def usual_friction(ratios: dict[str, np.ndarray], arms: list[str]) -> Usual:
    """Mean over arms, its standard deviation, and that of joints, of every term."""
    means = np.array([ratios[arm].mean(axis=1) for arm in arms])
    within = np.sqrt(np.mean([ratios[arm].var(axis=1) for arm in arms], axis=0))
    return tuple(zip(means.mean(axis=0), means.std(axis=0, ddof=1), within, strict=True))


def score(case: Case, usual: Usual | None) -> float:
    """Mean nrmse of the rest."""
    with usual_constants(usual):
        return float(nrmse(case).mean())


@contextmanager
def usual_constants(usual: Usual | None) -> Iterator[None]:
    """Set the constants of usual friction for a while; None for those of the package."""
    former = [getattr(usual_module, name) for name in NAMES]
    try:
        for name, value in zip(NAMES, usual or former, strict=True):
            setattr(usual_module, name, value)
        yield
    finally:
        for name, value in zip(NAMES, former, strict=True):
            setattr(usual_module, name, value)


if __name__ == "__main__":
    for name in sys.argv[1:] or ARMS:
        for one in cases(name):
            values = [score(one, usual) for usual in (NONE, None)]
            print(f"{one.name:16} {values[0]:.4f} {values[1]:.4f}", flush=True)
