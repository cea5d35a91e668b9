"""Cost of a hypothesis about a recording: how well one set of links explains all joints.

The cost is the minimum of `taufit.diagnosis.normal_equations`: residual torque, with friction,
rotor and offset of each joint, plus the deviation of the links from their nominal values (100 %
each). The last link may carry an undescribed load where that lowers the cost by more than its own
penalty. `compared` judges one hypothesis on the rows that both it and the unchanged recording
explain, and on quarters of those rows left out of the fit.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.parameters import PER_LINK
from taufit.diagnosis.correction import Correction, DiagnosisRows
from taufit.diagnosis.normal_equations import (
    FLOOR,
    NormalEquations,
    NormalSolution,
    covariance,
    normal_equations,
    residual_lower_bound,
    solve,
)
from taufit.diagnosis.priors import Priors, link_priors
from taufit.dynamics import RegressorEngine, regressor
from taufit.fitting.selection.friction_terms import NOMINAL_WEIGHT
from taufit.robot import Robot
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples
from taufit.terms.friction.presliding import dahl_state

_MOST_ROWS = 1200
_LEAST_SECONDS = 5.0
# Independent residuals per second of motion: those of real arms are correlated over about 0.5 s.
_PER_SECOND = 2.0
# Displacements over which friction builds up after a reversal [rad].
_WIDTHS = (3e-3, 3e-2)
# Log odds (twice) against a load that the description does not have; one that lies further than
# this from none (squared, in standard deviations of loads) is none that an arm carries.
LOAD_ODDS, _UNLIKELY_LOAD = 6.0, 20.0
# Parts that are left out in turn, each made of pieces this long [s].
FOLDS, _PIECE_S = 4, 2.5
# A joint that moves for less than this cannot be judged [s].
_LEAST_MOVING = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class HypothesisFit:
    """How well one hypothesis explains the rows.

    Attributes:
        shares: Unexplained torque over its spread, per joint; nan where a joint has no rows.
        cost: As above; differences are logarithms of odds, twice.
        prior: The part of the cost that is distance from the nominal links.
        links: theta.
        friction: phi, per joint: direction, speed, drag, load, after reversals, rotor, offset.
        loaded: Whether the last link carries what its description does not have.
    """

    shares: Float[Array, " j"]
    cost: float
    prior: float
    links: Float[Array, " p"]
    friction: Float[Array, "j f"]
    loaded: bool = False

    @property
    def share(self) -> float:
        """Mean over the joints."""
        known = self.shares[np.isfinite(self.shares)]
        return float(np.mean(known)) if len(known) else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class HypothesisComparison:
    """A hypothesis beside the recording as it is, on the rows by which both can be judged.

    Attributes:
        plain, changed: What they are worth.
        held_out: Unexplained torque of rows left out of the fit, changed over plain, geometric
            mean over the joints.
        joints: The same, per joint.
        worst_fold: The largest of the same over single folds.
        gained: Log odds (twice) by all rows.
    """

    plain: HypothesisFit
    changed: HypothesisFit
    held_out: float
    joints: Float[Array, " j"]
    worst_fold: float

    @property
    def gained(self) -> float:
        return self.plain.cost - self.changed.cost

    @property
    def closer(self) -> float:
        """By how much the links come closer to the nominal ones."""
        return self.plain.prior - self.changed.prior


class HypothesisTest:
    """Thinned rows of samples, and what any hypothesis is worth on them."""

    def __init__(
        self,
        robot: Robot,
        samples: Samples,
        *,
        most_rows: int = _MOST_ROWS,
    ) -> None:
        moving = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
        self.picked = moving[:: max(1, len(moving) // most_rows)]
        at = self.picked
        slip = lowpass(samples, np.tanh(samples.friction_velocity / 0.01))[at]
        slow = np.stack([_lagging(samples, width)[at] for width in _WIDTHS], axis=-1)
        keep: Bool[Array, "n j"] = samples.keep[at]
        self.rows = DiagnosisRows(
            robot,
            samples.position[at],
            samples.velocity[at],
            samples.acceleration[at],
            slip,
            slow,
            np.where(keep, samples.torque[at], 0.0),
            keep,
            np.ones(samples.joints),
        )
        self.samples = samples
        self.seconds = len(moving) / samples.rate_hz
        self.fold = _folds(samples, at, self.seconds)
        # By identity; the links are kept so that no other object gets their address.
        self._priors: dict[int, Priors] = {}
        self._links: list[object] = []
        self._rigid = _rigid(self.rows) if len(at) else np.zeros((0, 0, 0))
        self.plain = self.worth()

    def thinned(self, most_rows: int) -> HypothesisTest:
        """The same on fewer rows, for many hypotheses."""
        step = max(1, len(self.picked) // most_rows)
        if step == 1:
            return self
        few = copy(self)
        few.picked, few.fold = self.picked[::step], self.fold[::step]
        few._rigid = self._rigid[::step]
        few.rows = self.rows.at(slice(None, None, step))
        few.plain = few.worth()
        return few

    @property
    def enough(self) -> bool:
        """Whether there is motion enough to tell causes apart."""
        return len(self.picked) >= 100 and self.seconds >= _LEAST_SECONDS

    def moves(self, rows: DiagnosisRows) -> Bool[Array, " j"]:
        """Which joints move for long enough to be judged, and both ways: a joint that turns one
        way cannot tell gravity from friction.
        """
        least = min(_LEAST_MOVING, 0.5 * self.seconds)
        forth, back = (
            (rows.keep & (way * rows.slip > 0.5)).mean(axis=0) * self.seconds for way in (1, -1)
        )
        return (forth + back >= 0.8 * least) & (np.minimum(forth, back) >= 0.2 * least)

    def worth(
        self, change: Correction | None = None, rows: DiagnosisRows | None = None
    ) -> HypothesisFit:
        """The worth of the rows as they are, or as a change would make them."""
        rows = self.rows if rows is None else rows
        rows = rows if change is None else change.rows(change.shown(rows))
        sums = self._sums(rows, 1)
        return self._worth(rows, sums, self._solved(rows, sums))

    def gained(self, change: Correction) -> float:
        """Log odds (twice) of a change over the rows as they are, where both can be judged."""
        shown = change.shown(self.rows)
        plain = self.plain if shown is self.rows else self.worth(rows=shown)
        return plain.cost - self.worth(change).cost + self._jacobian(shown, change)

    def compared(self, change: Correction) -> HypothesisComparison:
        """A change beside the rows as they are, also on rows that were left out."""
        shown = change.shown(self.rows)
        plain, first = self._left_out(shown)
        changed, second = self._left_out(change.rows(shown))
        changed = replace(changed, cost=changed.cost - self._jacobian(shown, change))
        second = second / change.scale**2
        joints = np.sqrt(_ratio(second.sum(axis=0), first.sum(axis=0)))
        folds = np.sqrt(np.exp(np.mean(np.log(_ratio(second, first)), axis=1)))
        return HypothesisComparison(
            plain,
            changed,
            float(np.exp(np.mean(np.log(joints)))),
            joints,
            float(folds.max()),
        )

    def shifted(self, lag: float) -> DiagnosisRows:
        """The rows with torque taken `lag` seconds later than the motion."""
        samples = self.samples
        torque = np.empty_like(self.rows.torque)
        step = lag * samples.rate_hz
        for run in samples.run_slices():
            inside = (self.picked >= run.start) & (self.picked < run.stop)
            at = self.picked[inside] + step
            grid = np.arange(run.start, run.stop)
            for j in range(samples.joints):
                torque[inside, j] = np.interp(at, grid, samples.torque[run, j])
        return replace(self.rows, torque=np.where(self.rows.keep, torque, 0.0))

    def own_shares(self, rows: DiagnosisRows | None = None) -> Float[Array, " j"]:
        """Unexplained share of each joint's torque with links of its own: a floor."""
        sums = self._sums(self.rows if rows is None else rows, 1)
        return np.sqrt(residual_lower_bound(sums) / sums.spread)

    def tilt(self) -> float:
        """By how much gravity leans in what the links leave unexplained, to first order [rad].

        Its two horizontal parts on the fitted links, fitted to the residuals of all joints.
        """
        rows, plain = self.rows, self.plain
        down = np.asarray(rows.robot.gravity, float)
        least = np.eye(3)[int(np.argmin(np.abs(down)))]
        across = np.cross(down, least)
        across *= np.linalg.norm(down) / np.linalg.norm(across)
        sides = (across, np.cross(down, across) / np.linalg.norm(down))
        still = np.zeros_like(rows.position)
        unloaded, *tilted = (
            RegressorEngine(
                rows.robot, gravity=gravity, parameters=plain.links.ravel()
            ).inverse_dynamics(rows.position, still, still)
            for gravity in (np.zeros(3), *sides)
        )
        columns = np.stack([torque - unloaded for torque in tilted], axis=-1)
        left = rows.torque - self._rigid @ plain.links
        left -= np.einsum("njo,jo->nj", _own(rows), plain.friction)
        size = np.where(rows.keep, left, 0.0)
        weight = rows.keep / np.maximum(np.sum(size**2, axis=0), 1e-300)
        square = np.einsum("nja,nj,njb->ab", columns, weight, columns)
        right = np.einsum("nja,nj,nj->a", columns, weight, left)
        return float(np.linalg.norm(np.linalg.lstsq(square, right, rcond=1e-9)[0]))

    @property
    def without_load(self) -> float:
        """Log odds (twice) against a last link that carries nothing undescribed."""
        sums, independent = self._sums(self.rows, 1), self._independent(self.rows)
        priors = self._prior(self.rows.robot)
        (bare,) = solve(sums, independent, (priors.described,), priors.centre)
        return _cost(independent, bare) - self.plain.cost

    def load(self) -> tuple[Float[Array, " 10"], Float[Array, "10 10"]]:
        """What the last link has more than its description, and the covariance of that.

        The other links are taken to be described to about 30 %.
        """
        rows, priors = self.rows, self._prior(self.rows.robot)
        sums, independent = self._sums(rows, 1), self._independent(rows)
        last = slice(-PER_LINK, None)
        prior = NOMINAL_WEIGHT * priors.loaded
        prior[last, last] = priors.loaded[last, last]
        (fitted,) = solve(sums, independent, (prior,), priors.centre)
        values = fitted.links[last] - rows.robot.parameters[last]
        return values, covariance(sums, independent, prior, fitted)[last, last]

    def without_each(
        self, part: Int[Array, " n"], parts: int
    ) -> tuple[list[NormalSolution], list[NormalSolution]]:
        """For every part of the rows, the fit to all rows but its own, and to its own alone."""
        sums = self._sums(self.rows, parts, part)
        whole = sums.whole
        single = [sums.fold(k) for k in range(parts)]
        others = [self._solved(self.rows, whole - one) for one in single]
        return others, [self._solved(self.rows, one) for one in single]

    def with_gain(self, gain: Float[Array, " j"] | None) -> HypothesisTest:
        """The same where each joint's channel has a gain of the user's."""
        if gain is None:
            return self
        out = copy(self)
        out.rows = replace(self.rows, gain=gain)
        return out

    def _left_out(self, rows: DiagnosisRows) -> tuple[HypothesisFit, Float[Array, "f j"]]:
        """The worth of rows, and squares of each fold by a fit to the others."""
        sums = self._sums(rows, FOLDS)
        whole = sums.whole
        out = np.zeros((FOLDS, rows.torque.shape[1]))
        for f in range(FOLDS):
            own = sums.fold(f)
            fitted = self._solved(rows, whole - own)
            out[f] = own.left(fitted.links, fitted.own) + FLOOR**2 * whole.spread / FOLDS
        return self._worth(rows, whole, self._solved(rows, whole)), out

    def _sums(
        self, rows: DiagnosisRows, folds: int, fold: Int[Array, " n"] | None = None
    ) -> NormalEquations:
        return normal_equations(
            self._rigid if self._as_recorded(rows) else _rigid(rows),
            _own(rows),
            rows.torque,
            rows.velocity,
            rows.keep,
            self.fold if fold is None else fold,
            folds,
        )

    def _as_recorded(self, rows: DiagnosisRows) -> bool:
        """Whether a change left the motion alone: the rigid columns are those already known."""
        mine = self.rows
        return (
            rows.robot is mine.robot
            and rows.position is mine.position
            and rows.velocity is mine.velocity
            and rows.acceleration is mine.acceleration
        )

    def _solved(self, rows: DiagnosisRows, sums: NormalEquations) -> NormalSolution:
        """The fit of the links as described, or with a load where that is worth it."""
        priors, independent = self._prior(rows.robot), self._independent(rows)
        each = solve(sums, independent, (priors.described, priors.loaded), priors.centre)
        bare, loaded = (_cost(independent, fit) for fit in each)
        carries = loaded + LOAD_ODDS < bare and priors.of_load(each[1].links) < _UNLIKELY_LOAD
        return replace(each[1], loaded=True) if carries else each[0]

    def _independent(self, rows: DiagnosisRows) -> Float[Array, " j"]:
        """Rows per joint that say something of their own."""
        share = rows.keep.mean(axis=0) if len(rows.keep) else np.zeros(rows.keep.shape[1])
        return np.where(share > 0.0, np.maximum(_PER_SECOND * self.seconds * share, 5.0), 0.0)

    def _jacobian(self, rows: DiagnosisRows, change: Correction) -> float:
        """What a factor on torque adds to the cost by itself."""
        return 2.0 * float(np.log(abs(change.scale)) * self._independent(rows).sum())

    def _worth(
        self, rows: DiagnosisRows, sums: NormalEquations, fitted: NormalSolution
    ) -> HypothesisFit:
        known = rows.keep.any(axis=0)
        cost = _cost(self._independent(rows), fitted) + fitted.loaded * LOAD_ODDS
        shares = np.where(known, np.sqrt(fitted.squares / sums.spread), np.nan)
        return HypothesisFit(shares, cost, fitted.distance, fitted.links, fitted.own, fitted.loaded)

    def _prior(self, robot: Robot) -> Priors:
        known = self._priors.get(id(robot.links))
        if known is None:
            known = self._priors[id(robot.links)] = link_priors(robot)
            self._links.append(robot.links)
        return known


def residual(rows: DiagnosisRows, fitted: NormalSolution) -> Float[Array, "n j"]:
    """Torque of rows that a fit to others leaves unexplained; zero where it does not count."""
    arm = RegressorEngine(rows.robot, parameters=fitted.links.ravel())
    rigid = arm.inverse_dynamics(rows.position, rows.velocity, rows.acceleration)
    own = np.einsum("njo,jo->nj", _own(rows), fitted.own)
    return np.where(rows.keep, rows.torque - rigid - own, 0.0)


def _cost(independent: Float[Array, " j"], fitted: NormalSolution) -> float:
    """Of a fit, by the joints that have rows."""
    known = independent > 0.0
    return float(independent[known] @ np.log(fitted.squares[known])) + fitted.distance


def _ratio(over: Array, under: Array) -> Array:
    return np.where(under > 0.0, over / np.maximum(under, 1e-300), 1.0)


def _rigid(rows: DiagnosisRows) -> Float[Array, "n j p"]:
    return regressor(rows.robot, rows.position, rows.velocity, rows.acceleration)


def _own(rows: DiagnosisRows) -> Float[Array, "n j o"]:
    """Columns of each joint's own."""
    v = rows.velocity
    load = np.abs(rows.torque) * rows.slip
    drag = np.concatenate([np.stack([rows.slip, v, np.abs(v) * v, load], -1), rows.slow], -1)
    return np.concatenate([drag, np.stack([rows.acceleration, np.ones_like(v)], -1)], -1)


def _folds(samples: Samples, at: Array, seconds: float) -> Array:
    """Which fold each row belongs to: short pieces in turn, run after run."""
    piece = max(1.0, min(_PIECE_S, seconds / (2 * FOLDS)) * samples.rate_hz)
    runs = samples.run[at] if len(at) else np.zeros(0, int)
    out, before = np.zeros(len(at), int), 0
    for run in np.unique(runs):
        inside = runs == run
        own = ((at[inside] - at[inside][0]) // piece).astype(int)
        out[inside] = own + before
        before += int(own[-1]) + 1
    return out % FOLDS


def _lagging(samples: Samples, width: float) -> Float[Array, "n j"]:
    """Friction that builds up over a displacement after each reversal."""
    travel = samples.friction_velocity / samples.rate_hz
    out = np.empty_like(travel)
    for run in samples.run_slices():
        for j in range(travel.shape[1]):
            out[run, j] = dahl_state(travel[run, j], width)
    return lowpass(samples, out)
