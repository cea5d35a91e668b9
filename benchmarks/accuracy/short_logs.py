"""First seconds of shared recordings, judged by the rest: with and without usual friction.

Usual friction is the prior mean of viscous terms on arms whose torque is measured at
the motor. For every arm it is taken from whole recordings of the others, and the arm is scored with
it; UR10 and UR10e are one arm in this. Beside it stand zero means, as before, and the constants of
the package, which have seen all arms. Reads the recordings beside the project (../shared/data).

    python -m benchmarks.accuracy.short_logs [ARM ...]     single cases
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

import taufit.fitting.selection.usual_friction as usual_module
from benchmarks import Row
from benchmarks.accuracy.leave_one_arm_out import ARM_CASES, Case, nrmse
from benchmarks.accuracy.real_robots import DATA
from taufit.fitting.selection.prior_scales import maximise_evidence
from taufit.recording import crop
from taufit.signals import condition
from taufit.signals.sample_source import as_source
from taufit.workflow import identify

NAMES = ("_VISCOUS", "_QUADRATIC")
SECONDS = (3.0, 5.0, 8.0)
ARMS = ("UR10e", "UR10", "TX40", "Airbot", "Kinova", "KR300")
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
