"""Search for the single correction that resolves a contradiction between recording and robot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import Cause, Correction
from taufit.diagnosis.gravity_scale import (
    PLAUSIBLE_SCALES,
    QUICK_ROWS,
    SUSPICIOUS_NRMSE,
    median_gravity_scale,
)
from taufit.diagnosis.hypothesis_test import HypothesisComparison, HypothesisTest
from taufit.diagnosis.nominal_causes import unit_correction
from taufit.diagnosis.nominal_torque import nominal_log_odds, shows_nominal_gravity
from taufit.diagnosis.other_robots import (
    ROBOT_LOG_ODDS,
    candidate_robots,
    excites_links,
    favours_other_robot,
    with_equally_likely_robots,
)
from taufit.diagnosis.torque_delay import delay_finding, delay_log_odds
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.robot import Robot, bundled_robots

if TYPE_CHECKING:
    from taufit.calibration.mounting import GravityEstimate

# Required log odds (twice) of a hypothesis, and largest residual ratios in cross-validation, over
# all folds and in every single one.
MIN_LOG_ODDS, MAX_HOLDOUT_RATIO, MAX_FOLD_RATIO = 40.0, 0.93, 0.98
# Alternatively, for links that return to the nominal ones: required log odds, decrease of the
# distance, ratio of distances, and largest residual ratio in cross-validation.
RETURN_LOG_ODDS, MIN_PRIOR_GAIN, MAX_PRIOR_RATIO, RETURN_HOLDOUT_RATIO = 20.0, 5.0, 0.35, 1.03
# Between two bundled robots, both well described, smaller log odds decide if the torque is
# explained and the links return to within this ratio of distances; still smaller ones (second
# value) if gravity is wrong by a common factor in every joint.
_ROBOT_PRIOR_RATIO, _FACTOR_LOG_ODDS = 0.5, 3.0
_RETURN_KINDS = ("torque_sign", "mounting", "wrong_arm", "clock_scale", "zero_offset")
# Kinds shown by gravity itself, which need no such odds.
_GRAVITY_KINDS = ("unit", "gravity_removed")
# Kinds that are errors if the nominal robot, in which no link is fitted, agrees.
_CONFIRMED_KINDS = ("torque_sign", "swapped_torque", "swapped_joints", "zero_offset")
# Log odds and residual ratio from which the finding is an error instead of a warning.
ERROR_LOG_ODDS, _ERROR_HOLDOUT_RATIO = 100.0, 0.85
# Nrmse of a hypothesis must be within this factor of its lower bound, or below the second value,
# and never above the third.
_NRMSE_BOUND_RATIO, _GOOD_NRMSE, _MAX_NRMSE = 2.0, 0.12, 0.5
# Gravity scales: range outside which no tool or bad description is the cause, largest scale of
# torque without gravity; scales of one unit agree within the last factor.
_EXTREME_SCALES, _NO_GRAVITY_SCALE, _SCALE_AGREEMENT = (0.15, 6.5), 0.3, 1.7
# Number of hypotheses that are confirmed on all rows.
_CONFIRMED_COUNT = 5
# A measured velocity consistent with position supports the recorded clock by these log odds
# (twice).
_MEASURED_CLOCK_RANK = 40.0
# Correlation of velocities above which joints move together and causes cannot be separated.
_MAX_CORRELATION = 0.98
_MOTION_KINDS = ("zero_offset", "swapped_joints", "swapped_torque", "clock_scale")


def best_cause(
    robot: Robot,
    recordings: Sequence[Recording],
    evidence: HypothesisTest,
    scales: Float[Array, " j"],
) -> Cause | None:
    """Cause by the best correction of rows that disagree with the robot, if one resolves it."""
    from taufit.calibration.mounting import estimate_gravity

    gravity = estimate_gravity(robot, evidence.samples)
    measured = all(r.velocity is not None for r in recordings)
    best = _best_correction(evidence, gravity, scales, measured)
    if best is None:
        return None
    delay = delay_finding(evidence) if best[0].kind == "wrong_arm" else None
    if delay is not None and best[1].log_odds <= delay_log_odds(evidence, delay):
        return Cause(delay)
    cause = correction_cause(*best, gravity, robot)
    is_confirmed = (
        best[0].kind in _CONFIRMED_KINDS and nominal_log_odds(evidence, best[0]) > MIN_LOG_ODDS
    )
    return (
        replace(cause, finding=replace(cause.finding, severity="error")) if is_confirmed else cause
    )


def _best_correction(
    evidence: HypothesisTest,
    gravity: GravityEstimate | None,
    scales: Float[Array, " j"],
    measured: bool,
) -> tuple[Correction, HypothesisComparison] | None:
    """Best correction that resolves the contradiction with its comparison, or None."""
    from taufit.diagnosis.hypotheses import hypotheses, rank_corrections

    corrections = _testable_corrections(evidence, hypotheses(evidence, gravity), scales, measured)
    thinned = evidence.thin(QUICK_ROWS)
    comparisons = [
        (candidate.correction, evidence.compare(candidate.correction))
        for i, candidate in enumerate(rank_corrections(thinned, corrections))
        if candidate.correction.kind in _GRAVITY_KINDS
        or (i < _CONFIRMED_COUNT and candidate.log_odds > 0.5 * RETURN_LOG_ODDS)
        or (
            candidate.correction.kind == "wrong_arm"
            and candidate.log_odds > 0.0
            and _can_identify_robot(evidence)
        )
    ]
    # A moderate factor may also be a bad description: reported only if nothing else explains it.
    comparisons.sort(
        key=lambda candidate: (
            _is_moderate_scale(candidate[0]),
            candidate[0].rank - candidate[1].log_odds,
        )
    )
    for correction, comparison in comparisons:
        if correction.small and comparison.log_odds > MIN_LOG_ODDS:
            # A small error is present; other apparent explanations are not valid.
            return None
        is_other_robot = _is_other_robot(evidence, correction, comparison)
        is_convincing = is_other_robot or _is_convincing(correction, comparison)
        if is_convincing and _explains_torque(evidence, correction, comparison):
            if _is_moderate_scale(correction):
                correction, comparison = _prefer_other_robot(evidence, comparisons)
            return with_equally_likely_robots(correction, comparison, comparisons), comparison
    return None


def _testable_corrections(
    evidence: HypothesisTest,
    corrections: Iterable[Correction],
    scales: Float[Array, " j"],
    measured: bool,
) -> list[Correction]:
    """Hypotheses that this recording can distinguish."""
    untested = _MOTION_KINDS if _joints_move_together(evidence) else ()
    finite = scales[np.isfinite(scales)]
    without_gravity = len(finite) > 0 and bool(np.all(np.abs(finite) < _NO_GRAVITY_SCALE))
    without_gravity = without_gravity and not shows_nominal_gravity(evidence)
    selected = [
        replace(correction, rank=_MEASURED_CLOCK_RANK)
        if measured and correction.kind == "clock_scale"
        else correction
        for correction in corrections
        if (correction.kind != "gravity_removed" or without_gravity)
        and correction.kind not in untested
    ]
    selected += candidate_robots(evidence.rows)
    selected += [unit_correction(median_gravity_scale(scales))] if _has_common_scale(scales) else []
    return [correction for correction in selected if _is_testable(evidence, correction)]


def _can_identify_robot(evidence: HypothesisTest) -> bool:
    """Whether the robot is bundled and fits so well that another robot would be visible."""
    return (
        evidence.rows.robot.name in bundled_robots()
        and evidence.unchanged_fit.nrmse < SUSPICIOUS_NRMSE
    )


def _is_other_robot(
    evidence: HypothesisTest, correction: Correction, comparison: HypothesisComparison
) -> bool:
    """Whether another bundled robot explains the torque better."""
    if correction.kind != "wrong_arm" or not _can_identify_robot(evidence):
        return False
    nearer = comparison.corrected.prior < _ROBOT_PRIOR_RATIO * comparison.unchanged.prior
    better = comparison.log_odds > RETURN_LOG_ODDS and comparison.holdout_ratio < MAX_HOLDOUT_RATIO
    if (
        comparison.log_odds > ROBOT_LOG_ODDS
        and comparison.holdout_ratio < 1.0
        and (nearer or better)
    ):
        return True
    return favours_other_robot(comparison, ROBOT_LOG_ODDS) and excites_links(evidence)


def _prefer_other_robot(
    evidence: HypothesisTest, comparisons: list[tuple[Correction, HypothesisComparison]]
) -> tuple[Correction, HypothesisComparison]:
    """Another robot with correct gravity, if one explains the torque; else the factor."""
    for correction, comparison in comparisons:
        is_supported = (
            comparison.log_odds > RETURN_LOG_ODDS
            and comparison.holdout_ratio < RETURN_HOLDOUT_RATIO
        )
        is_supported |= (
            favours_other_robot(comparison, _FACTOR_LOG_ODDS)
            and _can_identify_robot(evidence)
            and excites_links(evidence)
        )
        if _is_other_robot(evidence, correction, comparison) or (
            correction.kind == "wrong_arm" and is_supported
        ):
            return correction, comparison
    return comparisons[-1]


def _is_moderate_scale(correction: Correction) -> bool:
    return (
        correction.kind == "unit"
        and _EXTREME_SCALES[0] < 1.0 / correction.scale < _EXTREME_SCALES[1]
    )


def _is_testable(evidence: HypothesisTest, correction: Correction) -> bool:
    """Whether the joints concerned move long enough."""
    if not correction.concerns:
        return True
    moving = evidence.moving_joints(correction.judged_rows(evidence.rows))
    return bool(np.all(moving[list(correction.concerns)]))


def _is_convincing(correction: Correction, comparison: HypothesisComparison) -> bool:
    if _is_moderate_scale(correction) and correction.scale < 1.0:
        # An undescribed load also increases gravity, but changes the other links.
        nearer = comparison.corrected.prior < MAX_PRIOR_RATIO * comparison.unchanged.prior
        return nearer and comparison.log_odds > ROBOT_LOG_ODDS
    if correction.kind in _GRAVITY_KINDS:
        return comparison.log_odds > (-0.5 * RETURN_LOG_ODDS if correction.kind == "unit" else 0.0)
    if correction.small:
        return False
    explains = (
        comparison.holdout_ratio < MAX_HOLDOUT_RATIO and comparison.worst_fold < MAX_FOLD_RATIO
    )
    return (explains and comparison.log_odds > MIN_LOG_ODDS) or _restores_nominal(
        correction, comparison
    )


def _restores_nominal(correction: Correction, comparison: HypothesisComparison) -> bool:
    """Whether the links return to the nominal ones; never against a measured velocity."""
    return (
        correction.kind in _RETURN_KINDS
        and correction.rank < _MEASURED_CLOCK_RANK
        and comparison.log_odds > RETURN_LOG_ODDS
        and comparison.prior_gain > MIN_PRIOR_GAIN
        and comparison.corrected.prior < MAX_PRIOR_RATIO * comparison.unchanged.prior
        and comparison.holdout_ratio < RETURN_HOLDOUT_RATIO
    )


def _explains_torque(
    evidence: HypothesisTest, correction: Correction, comparison: HypothesisComparison
) -> bool:
    """Whether the corrected robot explains about as much as can be explained."""
    nrmse = comparison.corrected.nrmse
    if nrmse < _GOOD_NRMSE or nrmse > _MAX_NRMSE:
        return nrmse < _GOOD_NRMSE
    lower_bound = evidence.nrmse_lower_bound(correction.rows(correction.judged_rows(evidence.rows)))
    return nrmse < _NRMSE_BOUND_RATIO * float(np.nanmean(lower_bound))


def _joints_move_together(evidence: HypothesisTest) -> bool:
    """Whether joints move together, so that their angles cannot be distinguished."""
    velocity = evidence.rows.velocity
    active = velocity[:, velocity.std(axis=0) > 1e-3]
    if active.shape[1] < 2:
        return False
    correlation = np.abs(np.corrcoef(active.T))
    return bool(np.max(correlation - np.eye(len(correlation))) > _MAX_CORRELATION)


def _has_common_scale(scales: Float[Array, " j"]) -> bool:
    """Whether gravity is wrong by a common factor in every loaded joint.

    A tool affects the joints near it more than those near the base; a unit affects all equally.
    """
    finite = scales[np.isfinite(scales)]
    if len(finite) == 0 or np.any(finite <= 0.0):
        return False
    low, high = float(finite.min()), float(finite.max())
    return high < _SCALE_AGREEMENT * low and (
        high < PLAUSIBLE_SCALES[0] or low > PLAUSIBLE_SCALES[1]
    )


def correction_cause(
    correction: Correction,
    comparison: HypothesisComparison,
    gravity: GravityEstimate | None,
    robot: Robot,
) -> Cause:
    """Cause with its finding: an error if the evidence is overwhelming, else a warning."""
    message = correction.message
    if correction.kind == "mounting" and gravity is not None:
        from taufit.calibration.mounting import describe_mounting

        message = describe_mounting(gravity, robot)
    is_error = (
        comparison.log_odds > ERROR_LOG_ODDS and comparison.holdout_ratio < _ERROR_HOLDOUT_RATIO
    )
    is_error |= correction.kind in _GRAVITY_KINDS or _restores_nominal(correction, comparison)
    if correction.kind == "mounting":
        is_error &= gravity is not None and gravity.contradicts_declared
    if correction.kind == "unit":
        is_error = not _is_moderate_scale(correction)
    # A model of another robot may predict the torque and still estimate payloads wrongly.
    is_error |= correction.kind == "wrong_arm"
    severity = "error" if is_error else "warning"
    finding = Finding(
        correction.kind, severity, message, joint=correction.joint, remedy=correction.remedy
    )
    return Cause(finding, correction)
