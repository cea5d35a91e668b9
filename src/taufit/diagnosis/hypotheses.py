"""Which single change makes a recording agree with the arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from taufit.calibration.mounting import GravityEstimate, describe_mounting, mounting_option
from taufit.diagnosis.correction import (
    Correction,
    clock_scale,
    joint_direction,
    position_sign,
    remounted,
    reordered_joints,
    restore_gravity,
    swapped_torque,
    torque_sign,
    zero_offset,
)
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.dynamics import gravity_torque

# Zeros that are tried first; mistakes are mostly right angles [deg].
_ANGLES = (-90.0, 90.0, 180.0, -45.0, 45.0, -20.0, 20.0)
_CLOCKS = (0.5, 0.8, 1.25, 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class RankedCorrection:
    """A hypothesis and what it gains over the recording as it is (twice the log odds)."""

    change: Correction
    gained: float


def hypotheses(evidence: HypothesisTest, gravity: GravityEstimate | None) -> Iterator[Correction]:
    """Every change that is tried, simplest first; continuous ones at a few values."""
    robot = evidence.rows.robot
    joints = robot.joints
    yield torque_sign(list(range(joints)), joints)
    for j in range(joints):
        yield torque_sign([j], joints)
    yield restore_gravity(gravity_torque)
    for j in range(joints):
        yield position_sign(j, joints)
        yield joint_direction(j, joints)
    for i in range(joints):
        for k in range(i + 1, joints):
            yield swapped_torque(i, k, joints)
            order = list(range(joints))
            order[i], order[k] = k, i
            yield reordered_joints(order, f"joints {i + 1} and {k + 1} are exchanged")
    if gravity is not None:
        yield remounted(
            gravity.mounting,
            gravity.angle,
            describe_mounting(gravity, robot),
            mounting_option(gravity, robot),
            evidence.plain.share,
        )
    for j in range(joints):
        if not robot.links[j].prismatic:
            for angle in _ANGLES:
                yield zero_offset(j, np.radians(angle), joints)
    for factor in _CLOCKS:
        yield clock_scale(factor)


def ranked(evidence: HypothesisTest, changes: Sequence[Correction]) -> list[RankedCorrection]:
    """Hypotheses by what they gain, best first, continuous ones refined."""
    tried = [RankedCorrection(change, evidence.gained(change)) for change in changes]
    tried.sort(key=lambda one: one.change.rank - one.gained)
    refined = [_refined(evidence, one) for one in tried[:6]]
    return sorted([*refined, *tried[6:]], key=lambda one: one.change.rank - one.gained)


def _refined(evidence: HypothesisTest, tried: RankedCorrection) -> RankedCorrection:
    """The best value near the one tried, by golden-section search."""
    kind, joint = tried.change.kind, tried.change.joint
    joints = evidence.rows.robot.joints
    if kind == "zero_offset" and joint is not None:
        start = float(tried.change.rows(evidence.rows).position[0, joint - 1])
        start -= float(evidence.rows.position[0, joint - 1])
        return _search(evidence, lambda x: zero_offset(joint - 1, x, joints), start, 0.4, tried)
    if kind == "clock_scale":
        speed = evidence.rows.velocity
        at = np.unravel_index(np.argmax(np.abs(speed)), speed.shape)
        start = float(speed[at] / tried.change.rows(evidence.rows).velocity[at])
        return _search(evidence, lambda x: clock_scale(float(np.exp(x))), np.log(start), 0.2, tried)
    return tried


def _search(
    evidence: HypothesisTest, make, start: float, width: float, tried: RankedCorrection
) -> RankedCorrection:
    golden, rank = 0.618, tried.change.rank

    def at(x: float) -> RankedCorrection:
        change = replace(make(x), rank=rank)
        return RankedCorrection(change, evidence.gained(change))

    low, high = start - width, start + width
    best = tried
    inner = [high - golden * (high - low), low + golden * (high - low)]
    values = [at(x) for x in inner]
    for _ in range(8):
        if values[0].gained > values[1].gained:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - golden * (high - low)
            values[0] = at(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + golden * (high - low)
            values[1] = at(inner[1])
        best = max([best, *values], key=lambda one: one.gained)
    return best
