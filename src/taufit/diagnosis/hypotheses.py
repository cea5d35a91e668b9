"""Hypotheses about a single fault of a recording, and their ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from taufit.calibration.mounting import GravityEstimate, describe_mounting, mounting_option
from taufit.core.dataclasses import dataclass
from taufit.diagnosis.correction import (
    Correction,
    change_mounting,
    clock_scale,
    joint_direction,
    position_sign,
    reorder_joints,
    restore_gravity,
    swap_torque,
    torque_sign,
    zero_offset,
)
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.dynamics import gravity_torque

# Zero offsets tested first; faults are mostly right angles [deg].
_ANGLES_DEG = (-90.0, 90.0, 180.0, -45.0, 45.0, -20.0, 20.0)
_CLOCK_SCALES = (0.5, 0.8, 1.25, 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class RankedCorrection:
    """Correction with its log odds (twice the logarithm) against the unchanged recording."""

    correction: Correction
    log_odds: float


def hypotheses(evidence: HypothesisTest, gravity: GravityEstimate | None) -> Iterator[Correction]:
    """All corrections to test, simplest first; continuous ones at a few values."""
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
            yield swap_torque(i, k, joints)
            order = list(range(joints))
            order[i], order[k] = k, i
            yield reorder_joints(order, f"joints {i + 1} and {k + 1} are exchanged")
    if gravity is not None:
        yield change_mounting(
            gravity.mounting,
            gravity.angle,
            describe_mounting(gravity, robot),
            mounting_option(gravity, robot),
            evidence.unchanged_fit.nrmse,
        )
    for j in range(joints):
        if not robot.is_prismatic[j]:
            for angle in _ANGLES_DEG:
                yield zero_offset(j, np.radians(angle), joints)
    for factor in _CLOCK_SCALES:
        yield clock_scale(factor)


def rank_corrections(
    evidence: HypothesisTest, corrections: Sequence[Correction]
) -> list[RankedCorrection]:
    """Rank corrections by log odds, best first, with continuous ones refined."""
    ranking = [
        RankedCorrection(correction, evidence.log_odds(correction)) for correction in corrections
    ]
    ranking.sort(key=lambda candidate: candidate.correction.rank - candidate.log_odds)
    best_refined = [_refine(evidence, candidate) for candidate in ranking[:6]]
    return sorted(
        [*best_refined, *ranking[6:]],
        key=lambda candidate: candidate.correction.rank - candidate.log_odds,
    )


def _refine(evidence: HypothesisTest, candidate: RankedCorrection) -> RankedCorrection:
    """Optimise a continuous correction near its tested value."""
    kind, joint = candidate.correction.kind, candidate.correction.joint
    joints = evidence.rows.robot.joints
    if kind == "zero_offset" and joint is not None:
        start = float(candidate.correction.rows(evidence.rows).position[0, joint - 1])
        start -= float(evidence.rows.position[0, joint - 1])
        return _golden_section_search(
            evidence, lambda x: zero_offset(joint - 1, x, joints), start, 0.4, candidate
        )
    if kind == "clock_scale":
        speed = evidence.rows.velocity
        index = np.unravel_index(np.argmax(np.abs(speed)), speed.shape)
        start = float(speed[index] / candidate.correction.rows(evidence.rows).velocity[index])
        return _golden_section_search(
            evidence, lambda x: clock_scale(float(np.exp(x))), np.log(start), 0.2, candidate
        )
    return candidate


def _golden_section_search(
    evidence: HypothesisTest,
    make_correction,
    start: float,
    width: float,
    candidate: RankedCorrection,
) -> RankedCorrection:
    """Maximise the log odds over a continuous value by golden-section search."""
    golden, rank = 0.618, candidate.correction.rank

    def evaluate(x: float) -> RankedCorrection:
        correction = replace(make_correction(x), rank=rank)
        return RankedCorrection(correction, evidence.log_odds(correction))

    low, high = start - width, start + width
    best = candidate
    inner = [high - golden * (high - low), low + golden * (high - low)]
    values = [evaluate(x) for x in inner]
    for _ in range(8):
        if values[0].log_odds > values[1].log_odds:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - golden * (high - low)
            values[0] = evaluate(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + golden * (high - low)
            values[1] = evaluate(inner[1])
        best = max([best, *values], key=lambda result: result.log_odds)
    return best
