"""Limits of checks against the nominal robot, chosen on half of the arms, scored on the other.

Three statistics of `taufit.diagnosis.nominal_torque`, without a fit: odds of a reversed sign, ratio
of residuals with gravity from anywhere, odds of a joint zero (the smallest over several sets of
masses where they pass the limit). A limit is the largest value on the right structures of one half,
also with masses off by 30 %, times 1.2; odds are logarithms, and 12.8 is added to the largest one
(2 ln 600: one alarm in a hundred recordings of six joints), which is at least 0: a joint that
stands has odds of 0 on every arm. The residual of the first joints is not chosen: above 1 a robot
explains less than a constant does.

On the other half a limit is scored by the right structures above it and the wrong ones found. Then
the verdicts on wrong structures (`benchmarks.accuracy.verdicts`) are made with the limits of the
other half in place of those of the code.

Rules changed after runs: odds were multiplied by 1.2, then raised by 20, and their largest value
could be below 0; the residual was chosen like the ratio, and fell to 0.26.

python -m benchmarks verdict_limits
python -m benchmarks.accuracy.verdict_limits FOLDER [SECONDS]   verdicts that FOLDER does not hold
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from benchmarks import Row
from benchmarks.accuracy import verdicts
from benchmarks.accuracy.clean_verdicts import descriptions
from benchmarks.accuracy.verdicts import CHOSEN, TESTED, structures
from benchmarks.clean_runs import SHARED
from benchmarks.shared_arms import RecordedArm, recorded_arm
from taufit.diagnosis import nominal_contradiction, nominal_torque
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.nominal_contradiction import zero_evidence
from taufit.diagnosis.nominal_torque import sign_evidence
from taufit.signals import condition

# Faults that each statistic is for, and the limit of the code.
FAULTS = {
    "sign odds": (("signs_all", "sign_1", "sign_2", "sign_3"), nominal_torque, "_MIN_ODDS"),
    "direction ratio": (("zero2_90", "zero2_30"), nominal_contradiction, "_MAX_TILT_RATIO"),
    "zero odds": (("zero2_-10", "zero2_30"), nominal_contradiction, "_MIN_ZERO_ODDS"),
}
HALVES = {"first": CHOSEN, "second": TESTED}
_OTHER = {"first": "second", "second": "first"}
_FACTOR, _ADDED_ODDS = 1.2, 12.8
Values = dict[tuple[str, str], dict[str, float]]


def statistics(arm: RecordedArm) -> dict[str, float]:
    """The statistics of one structure."""
    evidence = HypothesisTest(arm.robot, condition(arm.training, cutoff_hz=arm.cutoff_hz))
    signs = sign_evidence(evidence)
    return {
        "sign odds": float(np.max(signs.odds)),
        "direction ratio": signs.tilt_ratio,
        "zero odds": zero_evidence(evidence)[2],
    }


def values(arms: tuple[str, ...]) -> tuple[Values, Values]:
    """Statistics of right structures, with other masses too, and of wrong ones."""
    right, wrong = Values(), Values()
    names = {fault for faults, _, _ in FAULTS.values() for fault in faults}
    # The SO-101 has magnitudes of current, of which nothing of this is checked.
    for name in (name for name in arms if name != "so101"):
        arm = recorded_arm(name)
        for variant, robot in descriptions(arm.robot, name):
            if variant not in ("wall", "ceiling"):
                described = RecordedArm(robot, arm.training, arm.holdout, arm.cutoff_hz)
                right[name, variant] = statistics(described)
        for fault, changed in structures(name, arm):
            if fault in names:
                wrong[name, fault] = statistics(changed)
    return right, wrong


def chosen_limits(right: Values) -> dict[str, float]:
    """Limits by the right structures of some arms."""
    largest = {name: max(x[name] for x in right.values()) for name in FAULTS}
    return {
        name: max(x, 0.0) + _ADDED_ODDS if name.endswith("odds") else _FACTOR * x
        for name, x in largest.items()
    }


def work(folder: Path, limits: dict[str, dict[str, float]], seconds: float = float("inf")) -> None:
    """Judge the structures of each half with the limits of the other one."""
    for half, arms in HALVES.items():
        with ExitStack() as stack:
            for name, limit in limits[_OTHER[half]].items():
                stack.enter_context(patch.object(*FAULTS[name][1:], limit))
            verdicts.work(folder, seconds, arms)


def rows(folder: Path | None = None, seconds: float = float("inf")) -> Iterator[Row]:
    """Limits of either half, scored on the other one."""
    if not SHARED.exists():
        return
    halves = {half: values(arms) for half, arms in HALVES.items()}
    limits = {half: chosen_limits(right) for half, (right, _) in halves.items()}
    for half, (right, wrong) in halves.items():
        for name, (faults, module, constant) in FAULTS.items():
            limit, limit_of_code = limits[_OTHER[half]][name], getattr(module, constant)
            of_kind = [x[name] for (_, fault), x in wrong.items() if fault in faults]
            alarms = [" ".join(key) for key, x in right.items() if x[name] > limit]
            found, by_code = (sum(x > y for x in of_kind) for y in (limit, limit_of_code))
            alarms_by_code = sum(x[name] > limit_of_code for x in right.values())
            note = (
                f"limit {limit:.3g} by the {_OTHER[half]} half; of {len(right)}; wrong structures "
                f"found: {found} of {len(of_kind)}; with the code's limit {limit_of_code:g}: "
                f"{alarms_by_code} and {by_code}; {', '.join(alarms) or 'none'}"
            )
            label = f"{name}: right structures of the {half} half above the limit"
            yield Row(label, len(alarms), "", "<= 0", note)
    with TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        work(place, limits, seconds)
        for row in verdicts.counts(place):
            yield Row(f"limits of the other half, {row.name}", row.value, "", row.target, row.note)


if __name__ == "__main__":
    for row in rows(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")):
        print(row.name, row.value, row.note)
