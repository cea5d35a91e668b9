"""Other robots that the torque may belong to: bundled ones with the same number of joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import Correction, DiagnosisRows, replace_robot
from taufit.diagnosis.hypothesis_test import HypothesisComparison, HypothesisTest
from taufit.dynamics import engine, gravity_torque
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.robot import Robot, bundled_robots
from taufit.robot.read import serial_robots

# Relative tolerance of tip distances within which two robots have the same kinematics.
_KINEMATIC_TOLERANCE = 0.1
# Shortest motion that identifies another robot [s], and its smallest number of rows.
_MIN_SECONDS, _MIN_ROWS = 3.5, 100
# Fraction of joints that must move for the links to be compared with nominal ones.
_MIN_MOVING_FRACTION = 0.5
# Another robot is reported if the links are further than this from the nominal ones (squared, in
# units of 100 %), return to within this ratio of the distance, with these log odds (twice; more if
# the description is the user's) and at most this residual ratio in cross-validation;
_MIN_PRIOR_DISTANCE, _MAX_PRIOR_RATIO, ROBOT_LOG_ODDS, _USER_ROBOT_LOG_ODDS, _MAX_HOLDOUT_RATIO = (
    3.0,
    0.35,
    6.0,
    20.0,
    1.1,
)
# or, in a short motion, with these log odds and residual ratios, over all folds and in every one.
_SHORT_LOG_ODDS, _SHORT_HOLDOUT_RATIO, _SHORT_FOLD_RATIO = 40.0, 0.8, 0.9
# Another robot is possible if the links return as far, with at least these log odds.
_POSSIBLE_LOG_ODDS = -3.0
# Rows of the first comparison, and smallest log odds in it to be considered further.
_QUICK_ROWS, _QUICK_LOG_ODDS = 300, -10.0
# Largest nrmse with the other robot.
_MAX_NRMSE = 0.12
# Range of the gravity scale of another robot, and fraction of the largest gravity that counts.
_GRAVITY_SCALES, _MIN_GRAVITY_FRACTION = (0.5, 2.0), 0.2
# Positions count as outside the joint limits beyond this margin [rad or m], for more than this
# fraction of the time [1].
LIMIT_MARGIN, OUTSIDE_FRACTION = 0.2, 0.01
# Log odds (twice) within which robots count as equally likely.
_EQUAL_LOG_ODDS = 6.0

# Bundled robots whose lengths differ by less than can be seen in the torque, if the links are known
# to some 30 %.
SIMILAR_ROBOTS = (("ur3", "ur3e"), ("ur5", "ur5e"), ("ur10", "ur10e"), ("iiwa7", "iiwa14"))

Tried = tuple[Correction, HypothesisComparison]


_robots_with_joints = cache(serial_robots)


def candidate_robots(rows: DiagnosisRows) -> list[Correction]:
    """Corrections to bundled robots that can be the recorded one.

    They have as many joints but different lengths or axes, reach the recorded positions, and their
    gravity has the size of that in the torque.
    """
    if rows.robot.is_tree:
        return []
    return [
        replace_robot(other)
        for other in _robots_with_joints(rows.robot.joints)
        if not _has_same_kinematics(rows.robot, other)
        and _reaches(other, rows)
        and _has_gravity_of(replace(other, mounting=rows.robot.mounting), rows)
    ]


def _reaches(robot: Robot, rows: DiagnosisRows) -> bool:
    """Whether the recorded positions are within the joint limits of a robot."""
    low, high = robot.limits.lower - LIMIT_MARGIN, robot.limits.upper + LIMIT_MARGIN
    outside = (rows.position < low) | (rows.position > high)
    return bool(np.all(outside.mean(axis=0) <= OUTSIDE_FRACTION))


def _has_gravity_of(robot: Robot, rows: DiagnosisRows) -> bool:
    """Whether gravity in the torque is 0.5 to 2 times that of a robot, in the median joint.

    The scale s of a joint is that of tau = s g(q) + friction + offset; joints with little gravity
    do not count.
    """
    gravity = gravity_torque(robot, rows.position)
    variation = gravity.std(axis=0)
    scales = []
    for j in np.flatnonzero(variation > _MIN_GRAVITY_FRACTION * variation.max()):
        keep = rows.keep[:, j]
        columns = (gravity[:, j], rows.slip[:, j], rows.velocity[:, j], rows.acceleration[:, j])
        matrix = np.column_stack([*columns, np.ones(len(gravity))])[keep]
        scales.append(np.linalg.lstsq(matrix, rows.torque[keep, j], rcond=1e-9)[0][0])
    low, high = _GRAVITY_SCALES
    return not scales or low < float(np.median(np.abs(scales))) < high


def robot_from_short_motion(evidence: HypothesisTest) -> Tried | None:
    """Another robot that a short motion identifies clearly, or None."""
    robot = evidence.rows.robot
    odds = ROBOT_LOG_ODDS if robot.name in bundled_robots() else _USER_ROBOT_LOG_ODDS
    return _find_other_robot(evidence, lambda comparison: _is_clear(comparison, odds))


def likely_other_robot(evidence: HypothesisTest) -> Tried | None:
    """Another robot that matches the links at least as well as this bundled one, or None.

    If both explain the torque equally well, link lengths are not visible in it, but the fitted
    links may match those of another robot.
    """
    is_bundled = evidence.rows.robot.name in bundled_robots()
    if (
        not is_bundled
        or evidence.unchanged_fit.prior < _MIN_PRIOR_DISTANCE
        or evidence.unchanged_fit.nrmse > _MAX_NRMSE
    ):
        return None
    candidate = _find_other_robot(
        evidence, lambda comparison: favours_other_robot(comparison, _POSSIBLE_LOG_ODDS)
    )
    if candidate is None or candidate[0].remedy is None:
        return None
    correction, comparison = candidate
    given_name, name = evidence.rows.robot.name, candidate[0].remedy.robot
    message = (
        f"the links come out far from those of {given_name} and near to those of {name}: is it "
        f"{name}? "
        f"The torque is explained as well with `{name}`; a longer motion of all joints tells them "
        "apart"
    )
    return replace(correction, message=message, remedy=None), comparison


def similar_robot_findings(robot: Robot, recordings: Sequence[Recording]) -> list[Finding]:
    """Remark on another robot of almost the same lengths, which no torque tells from this one.

    Empty if a recording names its robot.
    """
    if any(isinstance(recording.meta.get("robot"), str) for recording in recordings):
        return []
    pair = next((pair for pair in SIMILAR_ROBOTS if robot.name in pair), ())
    return [
        Finding(
            "similar_robot",
            "info",
            f"torque does not tell {robot.name} from {name}, whose links are almost as long: "
            "check the type plate, or name the robot in the column map (`robot:`). Positions of "
            "the tip, loads and contact forces differ",
        )
        for name in pair
        if name != robot.name
    ]


def excites_links(evidence: HypothesisTest) -> bool:
    """Whether enough joints move to compare the links with nominal ones."""
    return bool(np.mean(evidence.moving_joints(evidence.rows)) >= _MIN_MOVING_FRACTION)


def _find_other_robot(
    evidence: HypothesisTest, condition: Callable[[HypothesisComparison], bool]
) -> Tried | None:
    """Most likely other robot whose comparison satisfies a condition, or None."""
    too_short = evidence.seconds < _MIN_SECONDS or len(evidence.indices) < _MIN_ROWS
    if too_short or not excites_links(evidence):
        return None
    thinned = evidence.thin(_QUICK_ROWS)
    likely = [
        correction
        for correction in candidate_robots(evidence.rows)
        if thinned.log_odds(correction) > _QUICK_LOG_ODDS
    ]
    comparisons = [(correction, evidence.compare(correction)) for correction in likely]
    comparisons.sort(key=lambda correction: -correction[1].log_odds)
    for change, comparison in comparisons:
        if condition(comparison):
            return with_equally_likely_robots(change, comparison, comparisons), comparison
    return None


def _is_clear(comparison: HypothesisComparison, odds: float) -> bool:
    better = (
        comparison.log_odds > _SHORT_LOG_ODDS and comparison.holdout_ratio < _SHORT_HOLDOUT_RATIO
    )
    better &= comparison.worst_fold < _SHORT_FOLD_RATIO
    return (
        better or favours_other_robot(comparison, odds)
    ) and comparison.corrected.nrmse < _MAX_NRMSE


def favours_other_robot(comparison: HypothesisComparison, odds: float) -> bool:
    """Whether the links are far from the nominal ones and close to those of another robot."""
    distance, corrected_distance = comparison.unchanged.prior, comparison.corrected.prior
    is_near = distance > _MIN_PRIOR_DISTANCE and corrected_distance < _MAX_PRIOR_RATIO * distance
    return is_near and comparison.log_odds > odds and comparison.holdout_ratio < _MAX_HOLDOUT_RATIO


def with_equally_likely_robots(
    correction: Correction, comparison: HypothesisComparison, comparisons: Sequence[Tried]
) -> Correction:
    """Correction with the names of equally likely robots in its message."""
    if correction.kind != "wrong_arm" or correction.remedy is None:
        return correction
    best = correction.remedy.robot
    equals = [
        str(other.remedy.robot)
        for other, other_comparison in comparisons
        if other.kind == "wrong_arm"
        and other.remedy is not None
        and other.remedy.robot not in (best, None)
        and abs(comparison.log_odds - other_comparison.log_odds) < _EQUAL_LOG_ODDS
    ]
    if not equals:
        return correction
    names = " and ".join(equals)
    return replace(
        correction,
        message=f"the torque is that of another arm: {best} explains it, and {names}"
        f" as well. Fit with `{best}`, or with the one of them that it is",
    )


def _has_same_kinematics(robot: Robot, other: Robot) -> bool:
    """Whether two robots move equally, wherever their bases are (e.g. UR10 and UR10e)."""
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (20, robot.joints))
    first, second = (
        _distances(engine(candidate).forward_kinematics(q)[:, -1, :3, 3])
        for candidate in (robot, other)
    )
    return bool(np.abs(first - second).max() < _KINEMATIC_TOLERANCE * first.max())


def _distances(points: Float[Array, "n 3"]) -> Float[Array, "n n"]:
    return np.linalg.norm(points[:, None] - points[None], axis=2)
