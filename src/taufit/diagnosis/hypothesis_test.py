"""Test of hypotheses about a recording: how well one set of links explains all joints.

The cost is the minimum of `taufit.diagnosis.normal_equations`: residual torque, with friction,
rotor and offset of each joint, plus the deviation of the links from their nominal values (100 %
each). The last link may carry an undescribed load where that lowers the cost by more than its
penalty. `compare` evaluates a hypothesis on the rows that are valid both with and without it, and
by cross-validation over quarters of those rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.diagnosis.correction import Correction, DiagnosisRows
from taufit.diagnosis.normal_equations import (
    FRICTION_COLUMNS,
    NRMSE_FLOOR,
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

_MAX_ROWS = 1200
_MIN_SECONDS = 5.0
# Independent residuals per second of motion: those of real arms are correlated over about 0.5 s.
_INDEPENDENT_PER_SECOND = 2.0
# Pre-sliding displacements of friction after a reversal [rad].
_PRESLIDING_WIDTHS = (3e-3, 3e-2)
# Prior log odds (twice) against an undescribed load, and the largest plausible load (squared
# distance in standard deviations of loads).
LOAD_ODDS, _MAX_LOAD_DISTANCE = 6.0, 20.0
# Number of cross-validation folds, each made of segments of this length [s].
FOLDS, _FOLD_SEGMENT_S = 4, 2.5
# Shortest motion by which a joint can be tested [s].
_MIN_MOVING_S = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class HypothesisFit:
    """Fit of one hypothesis to the rows.

    Attributes:
        nrmse_by_joint: RMSE over standard deviation of torque, per joint; nan where a joint has no
            rows.
        cost: Cost as above; differences are twice the log odds.
        prior: Part of the cost by the distance from the nominal links.
        links: Link parameters theta.
        friction: Drive coefficients phi per joint: Coulomb, viscous, quadratic, load, pre-sliding,
            rotor, offset.
        has_load: Whether the last link carries an undescribed load.
    """

    nrmse_by_joint: Float[Array, " j"]
    cost: float
    prior: float
    links: Float[Array, " p"]
    friction: Float[Array, "j f"]
    has_load: bool = False

    @property
    def nrmse(self) -> float:
        """Mean nrmse over the joints."""
        finite = self.nrmse_by_joint[np.isfinite(self.nrmse_by_joint)]
        return float(np.mean(finite)) if len(finite) else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class HypothesisComparison:
    """Corrected against unchanged recording, on rows valid for both.

    Attributes:
        unchanged, corrected: Fits without and with the correction.
        holdout_ratio: Residual RMS on left-out rows, corrected over unchanged, geometric mean over
            the joints.
        ratio_by_joint: The ratio per joint.
        worst_fold: Largest ratio of a single fold.
        log_odds: Twice the log odds by all rows.
    """

    unchanged: HypothesisFit
    corrected: HypothesisFit
    holdout_ratio: float
    ratio_by_joint: Float[Array, " j"]
    worst_fold: float

    @property
    def log_odds(self) -> float:
        return self.unchanged.cost - self.corrected.cost

    @property
    def prior_gain(self) -> float:
        """Decrease of the distance from the nominal links."""
        return self.unchanged.prior - self.corrected.prior


class HypothesisTest:
    """Thinned rows of samples on which hypotheses are fitted and compared."""

    def __init__(
        self,
        robot: Robot,
        samples: Samples,
        *,
        max_rows: int = _MAX_ROWS,
        presliding_widths: tuple[float, float] | None = _PRESLIDING_WIDTHS,
    ) -> None:
        """Select rows of samples.

        Args:
            robot: Robot with nominal masses.
            samples: Conditioned samples.
            max_rows: Largest number of rows.
            presliding_widths: Pre-sliding displacements [rad]; None: Coulomb and viscous friction
                alone.
        """
        moving = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
        self.indices = moving[:: max(1, len(moving) // max_rows)]
        indices = self.indices
        slip = lowpass(samples, np.tanh(samples.friction_velocity / 0.01))[indices]
        slow = np.stack(
            [
                _presliding_direction(samples, width)[indices]
                for width in presliding_widths or _PRESLIDING_WIDTHS
            ],
            axis=-1,
        )
        keep: Bool[Array, "n j"] = samples.keep[indices]
        self.rows = DiagnosisRows(
            robot,
            samples.position[indices],
            samples.velocity[indices],
            samples.acceleration[indices],
            slip,
            slow,
            np.where(keep, samples.torque[indices], 0.0),
            keep,
            np.ones(samples.joints),
        )
        self.samples = samples
        self._has_simple_friction = presliding_widths is None
        self.seconds = len(moving) / samples.rate_hz
        self.fold = _assign_folds(samples, indices, self.seconds)
        # Keyed by identity; references to the links prevent reuse of their addresses.
        self._priors: dict[int, Priors] = {}
        self._links: list[object] = []
        self._rigid = _rigid_columns(self.rows)
        self.unchanged_fit = self.fit()

    def thin(self, max_rows: int) -> HypothesisTest:
        """Test on fewer rows, for many hypotheses."""
        step = max(1, len(self.indices) // max_rows)
        if step == 1:
            return self
        few = copy(self)
        few.indices, few.fold = self.indices[::step], self.fold[::step]
        few._rigid = self._rigid[::step]
        few.rows = self.rows.select(slice(None, None, step))
        few.unchanged_fit = few.fit()
        return few

    @property
    def has_enough_data(self) -> bool:
        """Whether there is enough motion to distinguish causes."""
        return len(self.indices) >= 100 and self.seconds >= _MIN_SECONDS

    def moving_joints(self, rows: DiagnosisRows) -> Bool[Array, " j"]:
        """Joints that move long enough to be tested, in both directions.

        Unidirectional motion cannot separate gravity from friction.
        """
        minimum = min(_MIN_MOVING_S, 0.5 * self.seconds)
        forward, backward = (
            (rows.keep & (sign * rows.slip > 0.5)).mean(axis=0) * self.seconds for sign in (1, -1)
        )
        return (forward + backward >= 0.8 * minimum) & (
            np.minimum(forward, backward) >= 0.2 * minimum
        )

    def fit(
        self, correction: Correction | None = None, rows: DiagnosisRows | None = None
    ) -> HypothesisFit:
        """Fit the rows, unchanged or as corrected."""
        rows = self.rows if rows is None else rows
        rows = rows if correction is None else correction.rows(correction.judged_rows(rows))
        sums = self._sums(rows, 1)
        return self._make_fit(rows, sums, self._solve(rows, sums))

    def log_odds(self, correction: Correction) -> float:
        """Twice the log odds of a correction against the unchanged rows, where both are valid."""
        judged = correction.judged_rows(self.rows)
        unchanged = self.unchanged_fit if judged is self.rows else self.fit(rows=judged)
        return unchanged.cost - self.fit(correction).cost + self._scale_log_odds(judged, correction)

    def compare(self, correction: Correction) -> HypothesisComparison:
        """Compare a correction with the unchanged rows, with cross-validation."""
        judged = correction.judged_rows(self.rows)
        unchanged, unchanged_squares = self._cross_validate(judged)
        corrected, corrected_squares = self._cross_validate(correction.rows(judged))
        corrected = replace(
            corrected, cost=corrected.cost - self._scale_log_odds(judged, correction)
        )
        corrected_squares = corrected_squares / correction.scale**2
        ratio_by_joint = np.sqrt(
            _ratio(corrected_squares.sum(axis=0), unchanged_squares.sum(axis=0))
        )
        ratio_by_fold = np.sqrt(
            np.exp(np.mean(np.log(_ratio(corrected_squares, unchanged_squares)), axis=1))
        )
        return HypothesisComparison(
            unchanged,
            corrected,
            float(np.exp(np.mean(np.log(ratio_by_joint)))),
            ratio_by_joint,
            float(ratio_by_fold.max()),
        )

    def shift_torque(self, delay_s: float) -> DiagnosisRows:
        """Rows with torque taken `delay_s` seconds later than the motion."""
        samples = self.samples
        torque = np.empty_like(self.rows.torque)
        step = delay_s * samples.rate_hz
        for run in samples.run_slices():
            in_run = (self.indices >= run.start) & (self.indices < run.stop)
            sample = self.indices[in_run] + step
            grid = np.arange(run.start, run.stop)
            for j in range(samples.joints):
                torque[in_run, j] = np.interp(sample, grid, samples.torque[run, j])
        return replace(self.rows, torque=np.where(self.rows.keep, torque, 0.0))

    def nrmse_lower_bound(self, rows: DiagnosisRows | None = None) -> Float[Array, " j"]:
        """Lower bound on nrmse of each joint: fit with independent links per joint."""
        sums = self._sums(self.rows if rows is None else rows, 1)
        return np.sqrt(residual_lower_bound(sums) / sums.torque_variation)

    def gravity_tilt(self) -> float:
        """Tilt of gravity in the residuals of the links, to first order [rad].

        Its two horizontal components on the fitted links, fitted to the residuals of all joints.
        """
        rows, unchanged = self.rows, self.unchanged_fit
        down = np.asarray(rows.robot.gravity, float)
        unit = np.eye(3)[int(np.argmin(np.abs(down)))]
        across = np.cross(down, unit)
        across *= np.linalg.norm(down) / np.linalg.norm(across)
        sides = (across, np.cross(down, across) / np.linalg.norm(down))
        zeros = np.zeros_like(rows.position)
        unloaded, *tilted = (
            RegressorEngine(
                rows.robot, gravity=gravity, parameters=unchanged.links.ravel()
            ).inverse_dynamics(rows.position, zeros, zeros)
            for gravity in (np.zeros(3), *sides)
        )
        columns = np.stack([torque - unloaded for torque in tilted], axis=-1)
        residual = rows.torque - self._rigid @ unchanged.links
        residual -= np.einsum("njo,jo->nj", _drive_columns(rows), unchanged.friction)
        kept_residual = np.where(rows.keep, residual, 0.0)
        weight = rows.keep / np.maximum(np.sum(kept_residual**2, axis=0), 1e-300)
        square = np.einsum("nja,nj,njb->ab", columns, weight, columns)
        right_side = np.einsum("nja,nj,nj->a", columns, weight, residual)
        return float(np.linalg.norm(np.linalg.lstsq(square, right_side, rcond=1e-9)[0]))

    @property
    def load_log_odds(self) -> float:
        """Twice the log odds for an undescribed load of the last link."""
        sums, independent = self._sums(self.rows, 1), self._independent(self.rows)
        priors = self._prior(self.rows.robot)
        (unloaded,) = solve(sums, independent, (priors.described,), priors.centre)
        return _cost(independent, unloaded) - self.unchanged_fit.cost

    def estimate_load(self) -> tuple[Float[Array, " 10"], Float[Array, "10 10"]]:
        """Inertial parameters of the last link beyond its description, with covariance.

        The other links are assumed to be described to about 30 %.
        """
        rows, priors = self.rows, self._prior(self.rows.robot)
        sums, independent = self._sums(rows, 1), self._independent(rows)
        last = rows.robot.layout.link(-1)
        prior = NOMINAL_WEIGHT * priors.loaded
        prior[last, last] = priors.loaded[last, last]
        (fitted,) = solve(sums, independent, (prior,), priors.centre)
        values = fitted.links[last] - rows.robot.parameters[last]
        return values, covariance(sums, independent, prior, fitted)[last, last]

    def fit_without_parts(
        self, part: Int[Array, " n"], parts: int
    ) -> tuple[list[NormalSolution], list[NormalSolution]]:
        """Fits to all rows but one part, and to that part alone, for every part."""
        sums = self._sums(self.rows, parts, part)
        total = sums.pooled
        single = [sums.fold(k) for k in range(parts)]
        other_fits = [self._solve(self.rows, total - part_sums) for part_sums in single]
        return other_fits, [self._solve(self.rows, part_sums) for part_sums in single]

    def with_gain(self, gain: Float[Array, " j"] | None) -> HypothesisTest:
        """Test with drive gains of the user for each joint."""
        if gain is None:
            return self
        out = copy(self)
        out.rows = replace(self.rows, gain=gain)
        return out

    def with_robot(self, robot: Robot) -> HypothesisTest:
        """The same rows with another nominal robot; `unchanged_fit` stays that of this one."""
        out = copy(self)
        out.rows = replace(self.rows, robot=robot)
        return out

    def _cross_validate(self, rows: DiagnosisRows) -> tuple[HypothesisFit, Float[Array, "f j"]]:
        """Fit of the rows, and squared residuals of each fold by a fit to the others."""
        sums = self._sums(rows, FOLDS)
        total = sums.pooled
        out = np.zeros((FOLDS, rows.torque.shape[1]))
        for f in range(FOLDS):
            fold_sums = sums.fold(f)
            fitted = self._solve(rows, total - fold_sums)
            out[f] = (
                fold_sums.residual_squares(fitted.links, fitted.drive)
                + NRMSE_FLOOR**2 * total.torque_variation / FOLDS
            )
        return self._make_fit(rows, total, self._solve(rows, total)), out

    def _sums(
        self, rows: DiagnosisRows, folds: int, fold: Int[Array, " n"] | None = None
    ) -> NormalEquations:
        drive = _drive_columns(rows)
        if self._has_simple_friction:
            drive[..., 2:FRICTION_COLUMNS] = 0.0
        return normal_equations(
            self._rigid if self._has_recorded_motion(rows) else _rigid_columns(rows),
            drive,
            rows.torque,
            rows.velocity,
            rows.keep,
            self.fold if fold is None else fold,
            folds,
            rows.robot.layout,
        )

    def _has_recorded_motion(self, rows: DiagnosisRows) -> bool:
        """Whether a correction left the motion unchanged, so that rigid columns can be reused."""
        recorded = self.rows
        return (
            rows.robot is recorded.robot
            and rows.position is recorded.position
            and rows.velocity is recorded.velocity
            and rows.acceleration is recorded.acceleration
        )

    def _solve(self, rows: DiagnosisRows, sums: NormalEquations) -> NormalSolution:
        """Fit with the links as described, or with a load if its evidence exceeds the penalty."""
        priors, independent = self._prior(rows.robot), self._independent(rows)
        solutions = solve(sums, independent, (priors.described, priors.loaded), priors.centre)
        cost_described, cost_loaded = (_cost(independent, fit) for fit in solutions)
        has_load = (
            cost_loaded + LOAD_ODDS < cost_described
            and priors.load_distance(solutions[1].links) < _MAX_LOAD_DISTANCE
        )
        return replace(solutions[1], has_load=True) if has_load else solutions[0]

    def _independent(self, rows: DiagnosisRows) -> Float[Array, " j"]:
        """Effective number of independent samples per joint."""
        fraction = rows.keep.mean(axis=0) if len(rows.keep) else np.zeros(rows.keep.shape[1])
        return np.where(
            fraction > 0.0, np.maximum(_INDEPENDENT_PER_SECOND * self.seconds * fraction, 5.0), 0.0
        )

    def _scale_log_odds(self, rows: DiagnosisRows, correction: Correction) -> float:
        """Jacobian of a factor on torque, as twice the log odds."""
        return 2.0 * float(np.log(abs(correction.scale)) * self._independent(rows).sum())

    def _make_fit(
        self, rows: DiagnosisRows, sums: NormalEquations, fitted: NormalSolution
    ) -> HypothesisFit:
        has_rows = rows.keep.any(axis=0)
        cost = _cost(self._independent(rows), fitted) + fitted.has_load * LOAD_ODDS
        shares = np.where(has_rows, np.sqrt(fitted.squares / sums.torque_variation), np.nan)
        return HypothesisFit(
            shares, cost, fitted.distance, fitted.links, fitted.drive, fitted.has_load
        )

    def _prior(self, robot: Robot) -> Priors:
        priors = self._priors.get(id(robot.links))
        if priors is None:
            priors = self._priors[id(robot.links)] = link_priors(robot)
            self._links.append(robot.links)
        return priors


def residual(rows: DiagnosisRows, fitted: NormalSolution) -> Float[Array, "n j"]:
    """Residual torque of rows under a fit to other rows; zero where a row does not count."""
    engine = RegressorEngine(rows.robot, parameters=fitted.links.ravel())
    rigid = engine.inverse_dynamics(rows.position, rows.velocity, rows.acceleration)
    term_torque = np.einsum("njo,jo->nj", _drive_columns(rows), fitted.drive)
    return np.where(rows.keep, rows.torque - rigid - term_torque, 0.0)


def _cost(independent: Float[Array, " j"], fitted: NormalSolution) -> float:
    """Cost of a fit, over the joints that have rows."""
    has_rows = independent > 0.0
    return float(independent[has_rows] @ np.log(fitted.squares[has_rows])) + fitted.distance


def _ratio(over: Array, under: Array) -> Array:
    return np.where(under > 0.0, over / np.maximum(under, 1e-300), 1.0)


def _rigid_columns(rows: DiagnosisRows) -> Float[Array, "n j p"]:
    return regressor(rows.robot, rows.position, rows.velocity, rows.acceleration)


def _drive_columns(rows: DiagnosisRows) -> Float[Array, "n j o"]:
    """Columns of each joint's drive: friction, rotor and offset."""
    v = rows.velocity
    load = np.abs(rows.torque) * rows.slip
    drag = np.concatenate([np.stack([rows.slip, v, np.abs(v) * v, load], -1), rows.slow], -1)
    return np.concatenate([drag, np.stack([rows.acceleration, np.ones_like(v)], -1)], -1)


def _assign_folds(samples: Samples, indices: Array, seconds: float) -> Array:
    """Fold of each row: short segments in turn, run after run."""
    segment_length = max(1.0, min(_FOLD_SEGMENT_S, seconds / (2 * FOLDS)) * samples.rate_hz)
    runs = samples.run[indices] if len(indices) else np.zeros(0, int)
    out, offset = np.zeros(len(indices), int), 0
    for run in np.unique(runs):
        in_run = runs == run
        segment = ((indices[in_run] - indices[in_run][0]) // segment_length).astype(int)
        out[in_run] = segment + offset
        offset += int(segment[-1]) + 1
    return out % FOLDS


def _presliding_direction(samples: Samples, width: float) -> Float[Array, "n j"]:
    """Direction of motion with pre-sliding over a displacement after each reversal."""
    travel = samples.friction_velocity / samples.rate_hz
    out = np.empty_like(travel)
    for run in samples.run_slices():
        for j in range(travel.shape[1]):
            out[run, j] = dahl_state(travel[run, j], width)
    return lowpass(samples, out)
