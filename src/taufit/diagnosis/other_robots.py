"""Other arms that the torque may belong to: bundled ones with as many joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import Correction, replace_robot
from taufit.diagnosis.hypothesis_test import HypothesisComparison, HypothesisTest
from taufit.dynamics import forward_kinematics
from taufit.robot import Robot, bundled_robots, read_robot

# Arms whose tips travel as far as each other's, within this share, are the same to a model.
_SAME = 0.1
# A motion of this length shows another arm, and nothing else for certain [s].
_LEAST_SECONDS, _LEAST_ROWS = 3.5, 100
# Share of the joints that must move for the links to be compared with nominal ones.
_MOVING = 0.5
# An arm is another one when the links lie further than this from the nominal ones (squared, in
# units of 100 %), come back to within this share of it, and gain this many log odds (twice), more
# where the description is the user's, without explaining rows left out of the fit worse than this;
_AWAY, _BACK, ARM_ODDS, _ODDS_OF_USERS, _NO_WORSE = 3.0, 0.35, 6.0, 20.0, 1.1
# or, in a short motion, when it gains this many, and leaves this share of rows left out of the
# fit unexplained that was, in every fold.
_MANY_ODDS, _BETTER, _EVERY_FOLD = 40.0, 0.8, 0.9
# It may be another one when the links come back as far and that many odds are not against it.
_PERHAPS_ODDS = -3.0
# Arms are first compared on this many rows; with as many odds against it one is not looked at.
_QUICK_ROWS, _QUICK_ODDS = 300, -10.0
# It leaves at most this share of the torque unexplained.
_EXPLAINED = 0.12
# Arms within this many log odds (twice) of the best are as likely.
_AS_LIKELY = 6.0

Tried = tuple[Correction, HypothesisComparison]


@cache
def _bundled() -> tuple[Robot, ...]:
    return tuple(read_robot(name) for name in bundled_robots())


def candidate_robots(robot: Robot) -> list[Correction]:
    """Bundled arms of the same number of joints and of other lengths or axes."""
    return [
        replace_robot(other)
        for other in _bundled()
        if other.joints == robot.joints and not _alike(robot, other)
    ]


def robot_from_short_motion(evidence: HypothesisTest) -> Tried | None:
    """Another arm that a motion too short to check anything else shows clearly, or None."""
    robot = evidence.rows.robot
    odds = ARM_ODDS if robot.name in bundled_robots() else _ODDS_OF_USERS
    return _first(evidence, lambda compared: _clearly(compared, odds))


def likely_other_robot(evidence: HypothesisTest) -> Tried | None:
    """Another arm to which the links belong as likely as to this bundled one, or None.

    Where the torque is explained as well by both, lengths of the arm are not visible in it; that
    the links come out as those of another arm is.
    """
    known = evidence.rows.robot.name in bundled_robots()
    if not known or evidence.plain.prior < _AWAY or evidence.plain.share > _EXPLAINED:
        return None
    found = _first(evidence, lambda compared: favours_other_robot(compared, _PERHAPS_ODDS))
    if found is None or found[0].remedy is None:
        return None
    change, compared = found
    given, name = evidence.rows.robot.name, found[0].remedy.robot
    message = (
        f"the links come out far from those of {given} and near to those of {name}: is it {name}? "
        f"The torque is explained as well with `{name}`; a longer motion of all joints tells them "
        "apart"
    )
    return replace(change, message=message, remedy=None), compared


def excites_links(evidence: HypothesisTest) -> bool:
    """Whether half of the joints move, so that the links can lie far from, or near to, nominal."""
    return bool(np.mean(evidence.moves(evidence.rows)) >= _MOVING)


def _first(evidence: HypothesisTest, holds: Callable[[HypothesisComparison], bool]) -> Tried | None:
    """The likeliest other arm for which something holds."""
    short = evidence.seconds < _LEAST_SECONDS or len(evidence.picked) < _LEAST_ROWS
    if short or not excites_links(evidence):
        return None
    quick = evidence.thinned(_QUICK_ROWS)
    likely = [
        one for one in candidate_robots(evidence.rows.robot) if quick.gained(one) > _QUICK_ODDS
    ]
    tried = [(one, evidence.compared(one)) for one in likely]
    tried.sort(key=lambda one: -one[1].gained)
    for change, compared in tried:
        if holds(compared):
            return with_equally_likely_robots(change, compared, tried), compared
    return None


def _clearly(compared: HypothesisComparison, odds: float) -> bool:
    better = compared.gained > _MANY_ODDS and compared.held_out < _BETTER
    better &= compared.worst_fold < _EVERY_FOLD
    return (better or favours_other_robot(compared, odds)) and compared.changed.share < _EXPLAINED


def favours_other_robot(compared: HypothesisComparison, odds: float) -> bool:
    """Whether the links are far from the nominal ones of the arm, and near to those of another."""
    away, left = compared.plain.prior, compared.changed.prior
    near = away > _AWAY and left < _BACK * away
    return near and compared.gained > odds and compared.held_out < _NO_WORSE


def with_equally_likely_robots(
    change: Correction, compared: HypothesisComparison, tried: Sequence[Tried]
) -> Correction:
    """The change with the names of arms that explain the torque as well, in its message."""
    if change.kind != "wrong_arm" or change.remedy is None:
        return change
    best = change.remedy.robot
    equals = [
        str(other.remedy.robot)
        for other, worth in tried
        if other.kind == "wrong_arm"
        and other.remedy is not None
        and other.remedy.robot not in (best, None)
        and abs(compared.gained - worth.gained) < _AS_LIKELY
    ]
    if not equals:
        return change
    others = " and ".join(equals)
    return replace(
        change,
        message=f"the torque is that of another arm: {best} explains it, and {others}"
        f" as well. Fit with `{best}`, or with the one of them that it is",
    )


def _alike(one: Robot, other: Robot) -> bool:
    """Whether two arms move alike, wherever their bases are: UR10 and UR10e do."""
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (20, one.joints))
    first, second = (_distances(forward_kinematics(arm, q)[:, -1, :3, 3]) for arm in (one, other))
    return bool(np.abs(first - second).max() < _SAME * first.max())


def _distances(points: Float[Array, "n 3"]) -> Float[Array, "n n"]:
    return np.linalg.norm(points[:, None] - points[None], axis=2)
