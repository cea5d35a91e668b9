"""Limits of checks against the nominal robot, chosen on half of the arms, scored on the other.

Four statistics of `taufit.diagnosis.nominal_torque`, without a fit: odds of a reversed sign, ratio
of residuals with gravity from anywhere, odds of a joint zero (the smallest over several sets of
masses where they pass the limit), residual of the first joints. A limit
is the largest value on the right structures of one half, also with masses off by 30 %, times 1.2;
odds are logarithms, and 20 is added to them (a first run multiplied these too, which has no meaning
for a negative one, and was seen). On the other half the limit is scored by the right structures
above it and the wrong ones found, beside the limit of the code.

python -m benchmarks verdict_limits
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.clean_verdicts import descriptions
from benchmarks.accuracy.verdicts import CHOSEN, TESTED, structures
from benchmarks.clean_runs import SHARED
from benchmarks.shared_arms import RecordedArm, recorded_arm
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.nominal_contradiction import zero_evidence
from taufit.diagnosis.nominal_torque import sign_evidence
from taufit.signals import condition

# Faults that each statistic is for, and the limit of the code.
FAULTS = {
    "sign odds": (("signs_all", "sign_1", "sign_2", "sign_3"), 25.0),
    "direction ratio": (("zero2_90", "zero2_30"), 1.8),
    "zero odds": (("zero2_-10", "zero2_30"), 12.8),
    "residual": (("arm_",), 1.0),
}
_FACTOR, _ADDED_ODDS = 1.2, 20.0
Values = dict[tuple[str, str], dict[str, float]]


def statistics(arm: RecordedArm) -> dict[str, float]:
    """The four statistics of one structure."""
    evidence = HypothesisTest(arm.robot, condition(arm.training, cutoff_hz=arm.cutoff_hz))
    signs = sign_evidence(evidence)
    return {
        "sign odds": float(np.max(signs.odds)),
        "direction ratio": signs.tilt_ratio,
        "zero odds": zero_evidence(evidence)[2],
        "residual": float(np.nanmedian(signs.residual[:3])),
    }


def values(arms: tuple[str, ...]) -> tuple[Values, Values]:
    """Statistics of right structures, with other masses too, and of wrong ones."""
    right, wrong = Values(), Values()
    names = {fault for faults, _ in FAULTS.values() for fault in faults}
    for name in arms:
        arm = recorded_arm(name)
        for variant, robot in descriptions(arm.robot, name):
            if variant not in ("wall", "ceiling"):
                described = RecordedArm(robot, arm.training, arm.holdout, arm.cutoff_hz)
                right[name, variant] = statistics(described)
        for fault, changed in structures(name, arm):
            if fault in names or fault.startswith("arm_"):
                wrong[name, fault] = statistics(changed)
    return right, wrong


def rows() -> Iterator[Row]:
    """Limits of either half, scored on the other one."""
    if not SHARED.exists():
        return
    halves = {
        label: values(tuple(name for name in arms if name != "so101"))
        for label, arms in (("first", CHOSEN), ("second", TESTED))
    }
    for chosen, scored in (("first", "second"), ("second", "first")):
        for name, (faults, limit_of_code) in FAULTS.items():
            largest = max(x[name] for x in halves[chosen][0].values())
            limit = largest + _ADDED_ODDS if name.endswith("odds") else _FACTOR * largest
            right, wrong = halves[scored]
            of_kind = {key: x[name] for key, x in wrong.items() if key[1].startswith(faults)}
            alarms = [" ".join(key) for key, x in right.items() if x[name] > limit]
            found = sum(x > limit for x in of_kind.values())
            by_code = sum(x > limit_of_code for x in of_kind.values())
            alarms_by_code = sum(x[name] > limit_of_code for x in right.values())
            note = (
                f"limit {limit:.3g} by the {chosen} half; of {len(right)}; wrong structures found: "
                f"{found} of {len(of_kind)}; with the code's limit {limit_of_code:g}: "
                f"{alarms_by_code} and {by_code}; {', '.join(alarms) or 'none'}"
            )
            label = f"{name}: right structures of the {scored} half above the limit"
            yield Row(label, len(alarms), "", "<= 0", note)


if __name__ == "__main__":
    for row in rows():
        print(row.name, row.value, row.note)
