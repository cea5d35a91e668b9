"""Contradiction between recording and robot: find the single correction that resolves it.

If the links explain the torque as well as independent columns of each joint do, and are close to
the nominal ones, nothing is wrong. Else every hypothesis is tested. One is reported if its odds are
overwhelming, if it holds in every fold of the cross-validation, and if the robot then explains
about as much as can be explained. Hypotheses that explain no more torque but bring the links back
to the nominal ones (a unit, all signs, another robot) are reported if they do so completely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import Cause, Correction, DiagnosisRows
from taufit.diagnosis.hypothesis_test import HypothesisComparison, HypothesisTest
from taufit.diagnosis.nominal_contradiction import (
    direction_warning,
    nominal_contradiction,
    torque_sign_cause,
    unit_correction,
)
from taufit.diagnosis.nominal_torque import nominal_log_odds, shows_nominal_gravity, sign_evidence
from taufit.diagnosis.other_robots import (
    ROBOT_LOG_ODDS,
    candidate_robots,
    excites_links,
    favours_other_robot,
    likely_other_robot,
    robot_from_short_motion,
    with_equally_likely_robots,
)
from taufit.diagnosis.torque_delay import estimate_torque_delay
from taufit.dynamics import RegressorEngine, gravity_torque
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.robot import Robot, bundled_robots

if TYPE_CHECKING:
    from taufit.calibration.mounting import GravityEstimate


# Gravity of a joint is evaluated if it varies by at least these fractions of the most loaded
# joint's and of the standard deviation of its torque.
_MIN_GRAVITY_FRACTION, _MIN_TORQUE_FRACTION = 0.2, 0.5


def gravity_scale_by_joint(rows: DiagnosisRows, links: Float[Array, " p"]) -> Float[Array, " j"]:
    """Gravity scale s of g(links) = s g(nominal) + offset, per joint; nan for small gravity.

    `links` are fitted to all joints jointly with friction, rotors and offsets and the nominal
    links as a weak prior, so only gravity is compared; the scale is one where gravity is not
    identifiable.
    """
    joints = rows.torque.shape[1]
    out = np.full(joints, np.nan)
    if not np.any(rows.robot.parameters):
        return out
    nominal = gravity_torque(rows.robot, rows.position)
    zeros = np.zeros_like(rows.position)
    fitted = RegressorEngine(rows.robot, parameters=links.ravel())
    fitted_gravity = fitted.inverse_dynamics(rows.position, zeros, zeros)
    spread = nominal.std(axis=0)
    for j in range(joints):
        keep = rows.keep[:, j]
        if np.count_nonzero(keep) < 20 or spread[j] < max(
            _MIN_GRAVITY_FRACTION * spread.max(), 1e-9
        ):
            continue
        largest_std = max(nominal[keep, j].std(), fitted_gravity[keep, j].std())
        if largest_std < _MIN_TORQUE_FRACTION * rows.torque[keep, j].std():
            continue
        x = nominal[keep, j] - nominal[keep, j].mean()
        out[j] = float(x @ fitted_gravity[keep, j] / max(float(x @ x), 1e-300))
    return out


def median_gravity_scale(scales: Float[Array, " j"]) -> float:
    """Median over the joints with a finite scale; nan if there is none."""
    finite = scales[np.isfinite(scales)]
    return float(np.median(finite)) if len(finite) else float("nan")


# Delays tested [s]; delays below the minimum are negligible at usual cut-off frequencies.
_DELAYS = (-0.15, -0.1, -0.06, -0.03, 0.03, 0.06, 0.1, 0.15, 0.2)
MIN_DELAY_S = 0.015
# Required ratio of nrmse and log odds (twice) for a delay.
_DELAY_NRMSE_RATIO, _DELAY_LOG_ODDS = 0.85, 30.0


def delay_finding(evidence: HypothesisTest) -> Finding | None:
    """Finding on a delay with which the robot explains the torque much better, or None."""
    unchanged = evidence.unchanged_fit
    fits = [evidence.fit(rows=evidence.shift_torque(delay_s)) for delay_s in _DELAYS]
    if min(fit.cost for fit in fits) > unchanged.cost - _DELAY_LOG_ODDS / 2:
        return None
    delay_s = estimate_torque_delay(evidence.rows.robot, evidence.samples).seconds
    best = evidence.fit(rows=evidence.shift_torque(delay_s))
    if abs(delay_s) < MIN_DELAY_S or best.nrmse > _DELAY_NRMSE_RATIO * unchanged.nrmse:
        return None
    comparison = evidence.compare(
        Correction("delay", "", rows=lambda _: evidence.shift_torque(delay_s))
    )
    if (
        comparison.log_odds < _DELAY_LOG_ODDS
        or comparison.holdout_ratio > _DELAY_NRMSE_RATIO
        or comparison.worst_fold > 1.0
    ):
        return None
    direction = "later" if delay_s > 0 else "earlier"
    return Finding(
        "delay",
        "warning",
        f"torque was recorded {1e3 * abs(delay_s):.0f} ms {direction} than the motion it belongs "
        f"to: shifted back, {100 * best.nrmse:.1f} % of it stays unexplained instead of "
        f"{100 * unchanged.nrmse:.1f} %. Fit with --delay-s {delay_s:.3f}",
        value=float(np.round(delay_s, 4)),
        remedy=Remedy(("--delay-s", f"{delay_s:.3f}")),
    )


# Hypotheses are tested if nrmse exceeds its lower bound by this factor, or the links are this far
# from the nominal ones (squared, in units of 100 %), or nrmse exceeds this value.
_SUSPICIOUS_RATIO, _SUSPICIOUS_PRIOR, _SUSPICIOUS_NRMSE = 1.4, 4.0, 0.08
# Likewise for a tilt of gravity above this value [rad].
_SUSPICIOUS_TILT = np.radians(1.0)
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
# Gravity scales: plausible range, range outside which no tool or bad description is the cause,
# largest scale of torque without gravity; scales of one unit agree within the last factor.
_PLAUSIBLE_SCALES, _EXTREME_SCALES, _NO_GRAVITY_SCALE, _SCALE_AGREEMENT = (
    (0.5, 2.0),
    (0.15, 6.5),
    0.3,
    1.7,
)
# Powers of ten by which units may be wrong.
_POWERS_OF_TEN = (1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3)
# Hypotheses are compared on this many rows before the best are confirmed on all.
_QUICK_ROWS, _CONFIRMED_COUNT = 300, 5
# A measured velocity consistent with position supports the recorded clock by these log odds
# (twice).
_MEASURED_CLOCK_RANK = 40.0
# Correlation of velocities above which joints move together and causes cannot be separated.
_MAX_CORRELATION = 0.98
_MOTION_KINDS = ("zero_offset", "swapped_joints", "swapped_torque", "clock_scale")


def find_model_contradiction(
    robot: Robot, recordings: Sequence[Recording], evidence: HypothesisTest
) -> list[Cause]:
    """Causes of a contradiction between rows and robot, or a delay; empty if there are none."""
    if not evidence.has_enough_data:
        other_robot = robot_from_short_motion(evidence)
        if other_robot is not None:
            return [_cause(*other_robot, None, robot)]
        return [*_other_robot_warning(evidence), *_too_short_causes(evidence)]
    has_gains = all(r.gain is not None for r in recordings)
    evidence = evidence.with_gain(evidence.samples.gain if has_gains else None)
    signs = sign_evidence(evidence)
    if signs.is_reversed_throughout:
        return [torque_sign_cause(signs, list(range(robot.joints)))]
    cause = _suspicious_cause(robot, recordings, evidence)
    if cause is not None and cause.finding.severity == "error":
        return [cause]
    error = nominal_contradiction(evidence, signs)
    if error is not None:
        return [error]
    if cause is not None:
        return [cause]
    lag = delay_finding(evidence)
    if lag is not None:
        return [Cause(lag)]
    return _other_robot_warning(evidence) or direction_warning(evidence, signs)


def _suspicious_cause(
    robot: Robot, recordings: Sequence[Recording], evidence: HypothesisTest
) -> Cause | None:
    """Cause by the best correction of rows that disagree with the robot, if one resolves it."""
    scales = _gravity_scales(evidence)
    if not _is_suspicious(evidence, scales):
        return None
    from taufit.calibration.mounting import estimate_gravity

    gravity = estimate_gravity(robot, evidence.samples)
    measured = all(r.velocity is not None for r in recordings)
    best = _best_correction(evidence, gravity, scales, measured)
    if best is None:
        return None
    delay = delay_finding(evidence) if best[0].kind == "wrong_arm" else None
    if delay is not None and best[1].log_odds <= _delay_log_odds(evidence, delay):
        return Cause(delay)
    cause = _cause(*best, gravity, robot)
    is_confirmed = (
        best[0].kind in _CONFIRMED_KINDS and nominal_log_odds(evidence, best[0]) > MIN_LOG_ODDS
    )
    return (
        replace(cause, finding=replace(cause.finding, severity="error")) if is_confirmed else cause
    )


def _other_robot_warning(evidence: HypothesisTest) -> list[Cause]:
    """Warning if the fitted links match another robot."""
    other_robot = likely_other_robot(evidence)
    return (
        []
        if other_robot is None
        else [Cause(Finding("wrong_arm", "warning", other_robot[0].message))]
    )


def _delay_log_odds(evidence: HypothesisTest, delay: Finding) -> float:
    """Twice the log odds of a delay."""
    assert isinstance(delay.value, float)
    return evidence.unchanged_fit.cost - evidence.fit(rows=evidence.shift_torque(delay.value)).cost


def _too_short_causes(evidence: HypothesisTest) -> list[Cause]:
    """Warning that the motion is too short for these checks."""
    if len(evidence.indices) == 0:
        return []
    return [
        Cause(
            Finding(
                "unchecked",
                "warning",
                f"{evidence.seconds:.1f} s of motion are too short to check units, signs, the "
                "order of the joints and the robot itself against the torque. Record 10 s or more",
                value=evidence.seconds,
            )
        )
    ]


def _gravity_scales(evidence: HypothesisTest) -> Float[Array, " j"]:
    """Gravity scale of each joint: gravity in the torque relative to the nominal robot.

    The weak prior limits links to some orders of magnitude, so powers of ten are tested in turn if
    the torque is not explained as recorded.
    """
    unchanged = evidence.unchanged_fit
    scales = gravity_scale_by_joint(evidence.rows, unchanged.links)
    if unchanged.nrmse < _SUSPICIOUS_NRMSE:
        return np.where(evidence.moving_joints(evidence.rows), scales, np.nan)
    thinned = evidence.thin(_QUICK_ROWS)
    best_nrmse = thinned.unchanged_fit.nrmse
    for ten in _POWERS_OF_TEN:
        rows = replace(thinned.rows, torque=thinned.rows.torque / ten)
        fit = thinned.fit(rows=rows)
        if fit.nrmse < 0.7 * best_nrmse:
            best_nrmse = fit.nrmse
            scales = ten * gravity_scale_by_joint(rows, fit.links)
    return np.where(evidence.moving_joints(evidence.rows), scales, np.nan)


def _is_suspicious(evidence: HypothesisTest, scales: Float[Array, " j"]) -> bool:
    """Whether robot and rows disagree enough to look for a cause."""
    unchanged = evidence.unchanged_fit
    nrmse_ratio = np.nanmax(
        unchanged.nrmse_by_joint / np.maximum(evidence.nrmse_lower_bound(), 0.01)
    )
    tilted = evidence.gravity_tilt() > _SUSPICIOUS_TILT
    median_scale = median_gravity_scale(scales)
    wrong_scale = (
        np.isfinite(median_scale) and not _PLAUSIBLE_SCALES[0] < median_scale < _PLAUSIBLE_SCALES[1]
    )
    return bool(
        nrmse_ratio > _SUSPICIOUS_RATIO
        or unchanged.prior > _SUSPICIOUS_PRIOR
        or unchanged.nrmse > _SUSPICIOUS_NRMSE
        or wrong_scale
        or tilted
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
    thinned = evidence.thin(_QUICK_ROWS)
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
        and evidence.unchanged_fit.nrmse < _SUSPICIOUS_NRMSE
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
        high < _PLAUSIBLE_SCALES[0] or low > _PLAUSIBLE_SCALES[1]
    )


def _cause(
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
