"""What the arm says about rows: nothing, or the one change that puts them right.

If the links explain the torque as well as each joint's own columns do, and lie where the nominal
robot has them, nothing is wrong. Else every hypothesis is tried. One is named when the odds for it
are overwhelming, when it also holds on each quarter of the rows left out of the fit, and when the
arm then explains about as much as can be explained. Hypotheses that explain no more torque and only
bring the links back to the nominal ones (a unit, all signs, another arm) are named when they bring
them all the way back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.correction import Cause, Correction, DiagnosisRows, torque_scale
from taufit.diagnosis.hypothesis_test import HypothesisComparison, HypothesisTest
from taufit.diagnosis.other_robots import (
    ARM_ODDS,
    candidate_robots,
    excites_links,
    favours_other_robot,
    likely_other_robot,
    robot_from_short_motion,
    with_equally_likely_robots,
)
from taufit.dynamics import RegressorEngine, gravity_torque
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.robot import Robot, bundled_robots

if TYPE_CHECKING:
    from taufit.calibration.mounting import GravityEstimate


# Joints whose gravity changes at least this much of the most loaded one's tell, and at least this
# much of their torque's own spread.
_LOADED, _SHOWN = 0.2, 0.5


def gravity_scale_by_joint(rows: DiagnosisRows, links: Float[Array, " p"]) -> Float[Array, " j"]:
    """s of g(links) = s g(nominal) + offset, per joint; nan where gravity says little.

    `links` are fitted to all joints at once with friction, rotors and offsets beside them and the
    nominal ones as a weak prior, so nothing else is taken for gravity, and where the recording
    does not show gravity the slope is one.
    """
    joints = rows.torque.shape[1]
    out = np.full(joints, np.nan)
    if not np.any(rows.robot.parameters):
        return out
    nominal = gravity_torque(rows.robot, rows.position)
    still = np.zeros_like(rows.position)
    fitted = RegressorEngine(rows.robot, parameters=links.ravel())
    found = fitted.inverse_dynamics(rows.position, still, still)
    spread = nominal.std(axis=0)
    for j in range(joints):
        kept = rows.keep[:, j]
        if np.count_nonzero(kept) < 20 or spread[j] < max(_LOADED * spread.max(), 1e-9):
            continue
        both = max(nominal[kept, j].std(), found[kept, j].std())
        if both < _SHOWN * rows.torque[kept, j].std():
            continue
        x = nominal[kept, j] - nominal[kept, j].mean()
        out[j] = float(x @ found[kept, j] / max(float(x @ x), 1e-300))
    return out


def median_gravity_scale(slopes: Float[Array, " j"]) -> float:
    """Median over the joints that tell; nan where none does."""
    known = slopes[np.isfinite(slopes)]
    return float(np.median(known)) if len(known) else float("nan")


# Lags that are tried [s]; smaller ones than the least do no harm at usual cut-offs.
_LAGS = (-0.15, -0.1, -0.06, -0.03, 0.03, 0.06, 0.1, 0.15, 0.2)
LEAST_S = 0.015
# The lag must make the model this much better, and by this many log odds.
_BETTER, _ODDS = 0.85, 30.0


def delay_finding(evidence: HypothesisTest) -> Finding | None:
    """A delay that makes the arm explain the torque much better, or nothing."""
    plain = evidence.plain
    tried = [(lag, evidence.worth(rows=evidence.shifted(lag))) for lag in _LAGS]
    lag, worth = min(tried, key=lambda item: item[1].cost)
    if worth.cost > plain.cost - _ODDS / 2:
        return None
    for step in (0.02, 0.01, 0.005, 0.0025):
        for other in (lag - step, lag + step):
            found = evidence.worth(rows=evidence.shifted(other))
            if found.cost < worth.cost:
                lag, worth = other, found
    if abs(lag) < LEAST_S or worth.share > _BETTER * plain.share:
        return None
    held = evidence.compared(Correction("delay", "", rows=lambda _: evidence.shifted(lag)))
    if held.gained < _ODDS or held.held_out > _BETTER or held.worst_fold > 1.0:
        return None
    word = "later" if lag > 0 else "earlier"
    return Finding(
        "delay",
        "warning",
        f"torque was recorded {1e3 * abs(lag):.0f} ms {word} than the motion it belongs to: "
        f"shifted back, {100 * worth.share:.1f} % of it stays unexplained instead of "
        f"{100 * plain.share:.1f} %. Fit with --delay-s {lag:.3f}",
        value=float(np.round(lag, 4)),
        remedy=Remedy(("--delay-s", f"{lag:.3f}")),
    )


# Links explain a joint's torque worse than its own columns by this factor, or lie this far from
# the nominal ones (squared, in units of 100 %), or leave this share unexplained: look closer.
_WORSE, _FAR, _SHARE = 1.4, 4.0, 0.08
# So where gravity seems to come from this far off its declared direction, to first order [rad].
_TILT = np.radians(1.0)
# A hypothesis is named when it gains this many log odds (twice) and, of rows left out of the fit,
# leaves this much of what was unexplained, in every fold less than before.
ODDS, BETTER, EVERY_FOLD = 40.0, 0.93, 0.98
# Or when it gains this many, the links come this much closer to the nominal ones, to within this
# share of the distance they had, and rows left out of the fit are not explained worse than this.
BACK_ODDS, CLOSER, BACK, NO_WORSE = 20.0, 5.0, 0.35, 1.03
# A bundled arm is weighed against another bundled one, both described as well: few odds decide
# where the torque is explained, rows left out of the fit are not explained worse, and the links
# come back to within this share of the distance they had; fewer still where gravity is off by a
# factor in every joint.
_ARM_BACK, _FACTOR_ODDS = 0.5, 3.0
_BACK_KINDS = ("torque_sign", "mounting", "wrong_arm", "clock_scale", "zero_offset")
# Gravity itself shows that these are so; they need no such odds.
_SHOWN_KINDS = ("unit", "gravity_removed")
# It is refused, not only named, when it gains this many and leaves this share.
SURE, _HALF = 100.0, 0.85
# What a hypothesis leaves must be within this of what the joints' own columns leave, or small, and
# not as much as this.
_PUT_RIGHT, _SMALL, _NOTHING = 2.0, 0.12, 0.5
# Gravity relative to the nominal arm that is as it should be, that no tool or bad description
# explains, and that is none at all; slopes of one unit agree within this factor.
_RIGHT, _ABSURD, _NONE, _ALIKE = (0.5, 2.0), (0.15, 6.5), 0.3, 1.7
# Powers of ten that units may be off by.
_TENS = (1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3)
# Hypotheses are compared on this many rows before the best are confirmed on all.
_QUICK_ROWS, _CONFIRMED = 300, 5
# A velocity that was measured, and is the change of position, speaks for the clock: this many log
# odds (twice).
_MEASURED = 40.0
# Joints whose velocities are correlated more than this move as one: no cause can be separated.
_AS_ONE = 0.98
_MOTION_KINDS = ("zero_offset", "swapped_joints", "swapped_torque", "clock_scale")


def find_model_contradiction(
    robot: Robot, recordings: Sequence[Recording], evidence: HypothesisTest
) -> list[Cause]:
    """The cause of a contradiction between the rows and the arm, or a delay, or nothing."""
    if not evidence.enough:
        arm = robot_from_short_motion(evidence)
        if arm is not None:
            return [_cause(*arm, None, robot)]
        return [*_perhaps(evidence), *_unchecked(evidence)]
    own_gain = all(r.gain is not None for r in recordings)
    evidence = evidence.with_gain(evidence.samples.gain if own_gain else None)
    slopes = _slopes(evidence)
    if _suspicious(evidence, slopes):
        from taufit.calibration.mounting import estimate_gravity

        gravity = estimate_gravity(robot, evidence.samples)
        measured = all(r.velocity is not None for r in recordings)
        found = _best(evidence, gravity, slopes, measured)
        if found is not None:
            late = delay_finding(evidence) if found[0].kind == "wrong_arm" else None
            if late is None or found[1].gained > _gained_by(evidence, late):
                return [_cause(*found, gravity, robot)]
            return [Cause(late)]
    lag = delay_finding(evidence)
    return _perhaps(evidence) if lag is None else [Cause(lag)]


def _perhaps(evidence: HypothesisTest) -> list[Cause]:
    """A warning where the links come out as those of another arm."""
    found = likely_other_robot(evidence)
    return [] if found is None else [Cause(Finding("wrong_arm", "warning", found[0].message))]


def _gained_by(evidence: HypothesisTest, late: Finding) -> float:
    """Log odds (twice) of a delay."""
    assert isinstance(late.value, float)
    return evidence.plain.cost - evidence.worth(rows=evidence.shifted(late.value)).cost


def _unchecked(evidence: HypothesisTest) -> list[Cause]:
    """A motion too short for any of this is said to be."""
    if len(evidence.picked) == 0:
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


def _slopes(evidence: HypothesisTest) -> Float[Array, " j"]:
    """Gravity in the torque relative to the nominal arm's, per joint.

    The weak prior keeps links within some powers of ten, so those are tried one by one where the
    torque is not explained as it is.
    """
    plain = evidence.plain
    slopes = gravity_scale_by_joint(evidence.rows, plain.links)
    if plain.share < _SHARE:
        return np.where(evidence.moves(evidence.rows), slopes, np.nan)
    quick = evidence.thinned(_QUICK_ROWS)
    best = quick.plain.share
    for ten in _TENS:
        rows = replace(quick.rows, torque=quick.rows.torque / ten)
        tried = quick.worth(rows=rows)
        if tried.share < 0.7 * best:
            best = tried.share
            slopes = ten * gravity_scale_by_joint(rows, tried.links)
    return np.where(evidence.moves(evidence.rows), slopes, np.nan)


def _suspicious(evidence: HypothesisTest, slopes: Float[Array, " j"]) -> bool:
    """Whether the arm and the rows disagree enough to look for a cause."""
    plain = evidence.plain
    worse = np.nanmax(plain.shares / np.maximum(evidence.own_shares(), 0.01))
    tilted = evidence.tilt() > _TILT
    middle = median_gravity_scale(slopes)
    off = np.isfinite(middle) and not _RIGHT[0] < middle < _RIGHT[1]
    return bool(worse > _WORSE or plain.prior > _FAR or plain.share > _SHARE or off or tilted)


def _best(
    evidence: HypothesisTest,
    gravity: GravityEstimate | None,
    slopes: Float[Array, " j"],
    measured: bool,
) -> tuple[Correction, HypothesisComparison] | None:
    """The hypothesis that puts things right, or None."""
    from taufit.diagnosis.hypotheses import hypotheses, ranked

    changes = _changes(evidence, hypotheses(evidence, gravity), slopes, measured)
    quick = evidence.thinned(_QUICK_ROWS)
    tried = [
        (one.change, evidence.compared(one.change))
        for i, one in enumerate(ranked(quick, changes))
        if one.change.kind in _SHOWN_KINDS
        or (i < _CONFIRMED and one.gained > 0.5 * BACK_ODDS)
        or (one.change.kind == "wrong_arm" and one.gained > 0.0 and _told_apart(evidence))
    ]
    # A factor that a bad description may have, too, is named where nothing else explains it.
    tried.sort(key=lambda one: (_mild(one[0]), one[0].rank - one[1].gained))
    for change, comparison in tried:
        if change.small and comparison.gained > ODDS:
            # Something is a little off; what else seems to explain it does not.
            return None
        arm = _other_arm(evidence, change, comparison)
        convincing = arm or _convincing(change, comparison)
        if convincing and _put_right(evidence, change, comparison):
            if _mild(change):
                change, comparison = _another(evidence, tried)
            return with_equally_likely_robots(change, comparison, tried), comparison
    return None


def _changes(
    evidence: HypothesisTest,
    given: Iterable[Correction],
    slopes: Float[Array, " j"],
    measured: bool,
) -> list[Correction]:
    """Hypotheses that this recording can tell from others."""
    untested = _MOTION_KINDS if _together(evidence) else ()
    known = slopes[np.isfinite(slopes)]
    none = len(known) > 0 and bool(np.all(np.abs(known) < _NONE))
    changes = [
        replace(change, rank=_MEASURED) if measured and change.kind == "clock_scale" else change
        for change in given
        if (change.kind != "gravity_removed" or none) and change.kind not in untested
    ]
    changes += candidate_robots(evidence.rows.robot)
    changes += [_unit(median_gravity_scale(slopes))] if _scaled(slopes) else []
    return [change for change in changes if _shows(evidence, change)]


def _told_apart(evidence: HypothesisTest) -> bool:
    """Whether the arm is a bundled one and leaves so little that another arm would show."""
    return evidence.rows.robot.name in bundled_robots() and evidence.plain.share < _SHARE


def _other_arm(
    evidence: HypothesisTest, change: Correction, compared: HypothesisComparison
) -> bool:
    """Whether another bundled arm explains the torque of this one better."""
    if change.kind != "wrong_arm" or not _told_apart(evidence):
        return False
    nearer = compared.changed.prior < _ARM_BACK * compared.plain.prior
    better = compared.gained > BACK_ODDS and compared.held_out < BETTER
    if compared.gained > ARM_ODDS and compared.held_out < 1.0 and (nearer or better):
        return True
    return favours_other_robot(compared, ARM_ODDS) and excites_links(evidence)


def _another(
    evidence: HypothesisTest, tried: list[tuple[Correction, HypothesisComparison]]
) -> tuple[Correction, HypothesisComparison]:
    """Another arm in which gravity is right, where one explains the torque; else the factor."""
    for change, compared in tried:
        held = compared.gained > BACK_ODDS and compared.held_out < NO_WORSE
        held |= (
            favours_other_robot(compared, _FACTOR_ODDS)
            and _told_apart(evidence)
            and excites_links(evidence)
        )
        if _other_arm(evidence, change, compared) or (change.kind == "wrong_arm" and held):
            return change, compared
    return tried[-1]


def _mild(change: Correction) -> bool:
    return change.kind == "unit" and _ABSURD[0] < 1.0 / change.scale < _ABSURD[1]


def _shows(evidence: HypothesisTest, change: Correction) -> bool:
    """Whether the joints concerned move for long enough."""
    if not change.concerns:
        return True
    moves = evidence.moves(change.shown(evidence.rows))
    return bool(np.all(moves[list(change.concerns)]))


def _convincing(change: Correction, compared: HypothesisComparison) -> bool:
    if _mild(change) and change.scale < 1.0:
        # A load makes gravity larger, too, and does not leave the other links as described.
        nearer = compared.changed.prior < BACK * compared.plain.prior
        return nearer and compared.gained > ARM_ODDS
    if change.kind in _SHOWN_KINDS:
        return compared.gained > (-0.5 * BACK_ODDS if change.kind == "unit" else 0.0)
    if change.small:
        return False
    explains = compared.held_out < BETTER and compared.worst_fold < EVERY_FOLD
    return (explains and compared.gained > ODDS) or _returns(change, compared)


def _returns(change: Correction, compared: HypothesisComparison) -> bool:
    """Whether the links come back to the nominal ones; never against a measured velocity."""
    return (
        change.kind in _BACK_KINDS
        and change.rank < _MEASURED
        and compared.gained > BACK_ODDS
        and compared.closer > CLOSER
        and compared.changed.prior < BACK * compared.plain.prior
        and compared.held_out < NO_WORSE
    )


def _put_right(
    evidence: HypothesisTest, change: Correction, compared: HypothesisComparison
) -> bool:
    """Whether the arm then explains about as much as there is to explain."""
    share = compared.changed.share
    if share < _SMALL or share > _NOTHING:
        return share < _SMALL
    floor = evidence.own_shares(change.rows(change.shown(evidence.rows)))
    return share < _PUT_RIGHT * float(np.nanmean(floor))


def _together(evidence: HypothesisTest) -> bool:
    """Whether joints move as one: such a motion cannot tell one joint's angle from another's."""
    velocity = evidence.rows.velocity
    active = velocity[:, velocity.std(axis=0) > 1e-3]
    if active.shape[1] < 2:
        return False
    correlation = np.abs(np.corrcoef(active.T))
    return bool(np.max(correlation - np.eye(len(correlation))) > _AS_ONE)


def _scaled(slopes: Float[Array, " j"]) -> bool:
    """Whether gravity is as many times too large or small in every joint that carries any.

    A tool adds more to the joints near it than to those near the base; a unit is the same for all.
    """
    known = slopes[np.isfinite(slopes)]
    if len(known) == 0 or np.any(known <= 0.0):
        return False
    low, high = float(known.min()), float(known.max())
    return high < _ALIKE * low and (high < _RIGHT[0] or low > _RIGHT[1])


def _unit(middle: float) -> Correction:
    """Torque in another unit, where gravity is as many times too large or small."""
    size, unit = abs(middle), None
    if 500 < size < 2000:
        unit = "mN m"
    elif 5e-4 < size < 2e-3:
        unit = "kN m"
    elif 6.0 < size < 12.0:
        unit = "lbf in"
    if unit is not None:
        cause = f"it is in {unit}? Give `unit: {unit}` at the torque in the column map"
    elif size < 0.5:
        cause = (
            "it is a current, or the torque of the motor before its gear? Give `current:` with "
            "gains, or gear_ratio, in the column map"
        )
    else:
        cause = "check its unit, the drive gains in the column map, and whether it is this robot"
    return torque_scale(
        1.0 / middle,
        f"the torque is {middle:.2g} times what gravity on the nominal robot makes of it: "
        f"{cause}; a factor of {1 / middle:.3g} (`scale`) makes them agree",
        unit,
    )


def _cause(
    change: Correction,
    compared: HypothesisComparison,
    gravity: GravityEstimate | None,
    robot: Robot,
) -> Cause:
    """The finding: refused where the evidence is overwhelming, else only named."""
    message = change.message
    if change.kind == "mounting" and gravity is not None:
        from taufit.calibration.mounting import describe_mounting

        message = describe_mounting(gravity, robot)
    sure = compared.gained > SURE and compared.held_out < _HALF
    sure |= change.kind in _SHOWN_KINDS or _returns(change, compared)
    if change.kind == "mounting":
        sure &= gravity is not None and gravity.contradicts_declared
    if change.kind == "unit":
        sure = not _mild(change)
    # A model of another arm may predict its torque and weighs what it carries wrongly.
    sure |= change.kind == "wrong_arm"
    severity = "error" if sure else "warning"
    finding = Finding(change.kind, severity, message, joint=change.joint, remedy=change.remedy)
    return Cause(finding, change)
