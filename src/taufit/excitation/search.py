"""Multi-start quasi-Newton search for a motion; every result is certified before comparison.

A descent ends in a motion within the joint limits; torque and clearance are penalties, so they may
be violated slightly between grid points. The motion is then repaired: first locally, with heavier
penalties; if that fails, from the feasible side (shrunk towards the centre pose until feasible,
then descended again). If the fine check still fails, it is shrunk. The budget counts evaluations,
so a seed always gives the same motion.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.excitation.basis import Basis
from taufit.excitation.certificate import Certificate, certify
from taufit.excitation.criteria import (
    AOptimal,
    ColumnNormProduct,
    ConditionAbove,
    ConditionCriterion,
    ConditionLimited,
    Criterion,
    DOptimal,
    WeightedBlocks,
    condition_number,
    log_determinant,
    scale_to_unit_columns,
)
from taufit.excitation.limit_scaling import MotionLimits
from taufit.excitation.problem import DesignProblem
from taufit.model.torque_model import TorqueModel

Free = Float[Array, " f"]

# Number of times at which constraints are evaluated during a repair.
REPAIR_MOMENTS = 400
_SHRINK_FACTORS = (1.0, 0.997, 0.99, 0.98, 0.96, 0.94, 0.9, 0.85, 0.78, 0.7, 0.6, 0.5, 0.4)
_STRONG_SHRINK_FACTORS = (0.3, 0.2, 0.1, 0.05, 0.02)


@dataclass(slots=True)
class Budget:
    """Budget of evaluations; CPU time is only an upper limit.

    Attributes:
        iterations: Evaluations of value and gradient a search may take.
        ceiling_s: CPU seconds at which everything stops; results then depend on the machine.
        used: Evaluations so far, repairs included.
        began: CPU clock at the start [s].
    """

    iterations: int
    ceiling_s: float
    used: int = 0
    began: float = field(default_factory=clock.process_time)

    @property
    def spent(self) -> float:
        """CPU time so far [s]."""
        return clock.process_time() - self.began

    @property
    def out_of_time(self) -> bool:
        return self.spent > self.ceiling_s


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Coefficients, certificate and criterion of a motion.

    Attributes:
        coefficients: Coefficients of the motion, about `centre`.
        centre: Centre pose.
        certificate: Every constraint on a fine grid.
        shrunk_to: Fraction of the amplitude left by the certificate; 1 is all.
        criterion_value: Value of the criterion; smaller is better.
        condition_scaled: Condition number of the smoothed regressor with unit columns.
        information_loss: Loss of ln det per parameter caused by the constraints.
    """

    coefficients: Float[Array, "j m"]
    centre: Float[Array, " j"]
    certificate: Certificate
    shrunk_to: float
    criterion_value: float
    condition_scaled: float
    information_loss: float = 0.0


class _SearchEndError(Exception):
    """Raised inside a descent when the budget is used up or the target reached."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchGoal:
    """Goal of a search.

    Attributes:
        criterion: One of CRITERIA.
        model: Model to be identified, with the true sign of velocity.
        columns: Base columns of the model.
        focus: Positions among them that matter for criterion "a"; None: all.
        condition_limit: Maximum column-scaled condition number of a result.
        target: Value of the criterion at which the search may stop.
    """

    criterion: str
    model: TorqueModel
    columns: Int[Array, " b"]
    focus: tuple[int, ...] | None = None
    condition_limit: float = 30.0
    target: float | None = None


class MotionSearch:
    """Search about one centre pose; `run` returns its certified motions."""

    def __init__(
        self,
        problem: DesignProblem,
        goal: SearchGoal,
        basis: Basis,
        envelope: MotionLimits,
        seed: int,
        budget: Budget,
        progress: Callable[[float, float], object] | None = None,
    ) -> None:
        self.problem, self.goal, self.motion_basis, self.envelope = problem, goal, basis, envelope
        self.full_basis = problem.basis
        self.rng = np.random.default_rng(seed)
        self.budget, self.progress = budget, progress
        self.scale: Float[Array, " b"] | None = None
        self.history: list[tuple[float, float]] = []
        self.best: tuple[float, Free | None] = (np.inf, None)
        self.starts = 0

    def run(self, iterations: int) -> list[Candidate]:
        """Descend from ranked random starts until `iterations` evaluations are used."""
        self.last_evaluation = self.budget.used + iterations
        pool = self._random(24)
        if self.goal.criterion in ("a", "worst_case"):
            # Unit of each parameter's standard deviation: that of typical random motions.
            inverses = [np.diag(np.linalg.pinv(self._matrix(z), hermitian=True)) for z in pool[:8]]
            self.scale = np.sqrt(np.exp(np.mean(np.log(np.maximum(inverses, 1e-300)), axis=0)))
        ranked = sorted(pool, key=self._start_cost)[:4]
        candidates = []
        while True:
            start = ranked.pop(0) if ranked else min(self._random(6), key=self._start_cost)
            self.starts += 1
            self.best = (np.inf, None)
            self._descend(start)
            candidates.append(self._repair_and_certify())
            if (
                self._has_reached_target()
                or self.budget.used >= self.last_evaluation
                or self.budget.out_of_time
            ):
                return candidates

    def _random(self, count: int) -> list[Free]:
        size = len(self.problem.centre) * self.problem.basis.shape[2]
        return [self.rng.normal(size=size) * 1.5 for _ in range(count)]

    def _coefficients(self, free: Free) -> Float[Array, "j m"]:
        return self.problem.coefficients(free)[0]

    def _matrix(self, free: Free) -> Float[Array, "b b"]:
        return self._matrix_of(self._coefficients(free))

    def _matrix_of(self, coefficients: Float[Array, "j m"]) -> Float[Array, "b b"]:
        return self.problem.matrix(self.problem.states(coefficients, self.full_basis))[0]

    def information(self, candidate: Candidate) -> Float[Array, "b b"]:
        """W'W/N of a certified motion, with the smoothed model of the search."""
        states = self.problem.states(candidate.coefficients, self.full_basis)
        states[0] = states[0] - self.problem.centre + candidate.centre
        return self.problem.matrix(states)[0]

    def _stages(self) -> list[Criterion]:
        kind = self.goal.criterion
        if kind == "cond":
            return [ConditionCriterion(2.0), ConditionCriterion(8.0), ConditionCriterion(32.0)]
        if kind == "cond_scaled":
            return [ConditionCriterion(p, columns_scaled=True) for p in (2.0, 8.0, 32.0)]
        if kind == "d":
            return [DOptimal(), DOptimal()]
        if kind == "product":
            return [ColumnNormProduct(), ColumnNormProduct()]
        if kind == "weighted_blocks":
            blocks = self._blocks()
            return [WeightedBlocks(blocks, 2.0), WeightedBlocks(blocks, 32.0)]
        if kind == "three_stage":
            return [ColumnNormProduct(), DOptimal(), ConditionAbove(0.0)]
        # D-optimality first: A-optimality is then close.
        return [DOptimal(), AOptimal(self.scale, self.goal.focus)]

    def _with_condition_limit(self, stage: Criterion) -> Criterion:
        """Criterion with a penalty before the condition limit."""
        return ConditionLimited(stage, 0.6 * self.goal.condition_limit)

    def _blocks(self) -> tuple[tuple[int, ...], ...]:
        layout = self.goal.model.layout
        names = [layout.quantities[c] for c in self.goal.columns]
        links = [c < layout.links.stop for c in self.goal.columns]
        inertia = [i for i, n in enumerate(names) if links[i] and n[0] == "I"]
        moment = [i for i, n in enumerate(names) if links[i] and n[0] != "I"]
        joint = [i for i in range(len(names)) if not links[i]]
        return tuple(inertia), tuple(moment), tuple(joint)

    def figure(self, matrix: Float[Array, "b b"]) -> float:
        """Value of the criterion without smoothing, to compare motions."""
        if self.goal.criterion in ("cond", "three_stage"):
            return condition_number(matrix)
        if self.goal.criterion == "cond_scaled":
            return condition_number(scale_to_unit_columns(matrix))
        return self._stages()[-1].evaluate(matrix)[0]

    def _start_cost(self, free: Free) -> float:
        """Value for ranking starts: criterion plus penalty."""
        value = self.figure(self._matrix(free))
        if self.problem.has_penalties:
            value += 10.0 * self._penalty(free)
        return value

    def _penalty(self, free: Free) -> float:
        states = self.problem.states(self._coefficients(free), self.problem.penalty_basis)
        return self.problem.penalty(states)[0]

    def _has_reached_target(self) -> bool:
        return self.goal.target is not None and self.best[0] <= self.goal.target

    def _descend(self, free: Free) -> None:
        stages = self._stages()
        for i, stage in enumerate(stages):
            is_last = i + 1 == len(stages)
            if isinstance(stage, ConditionAbove):
                floor = log_determinant(self._matrix(free)) - 0.05 * len(self.goal.columns)
                stage = replace(stage, floor=floor)
            penalty = (10.0 if is_last else 1.0) if self.problem.has_penalties else 0.0
            # Half the samples and a smoother limit scaling suffice before the last stage.
            limit_scaling = replace(
                self.problem.limit_scaling, norm_order=240.0 if is_last else 60.0
            )
            basis = self.full_basis if is_last else self.full_basis[:, ::2]
            self.problem = replace(self.problem, limit_scaling=limit_scaling, basis=basis)
            stage = self._with_condition_limit(stage) if is_last else stage
            try:
                free = self._minimise(stage, free, penalty, 250 if is_last else 60, store_best=True)
            except _SearchEndError:
                return

    def _minimise(
        self,
        stage: Criterion,
        free: Free,
        penalty: float,
        maximum_iterations: int,
        *,
        store_best: bool = False,
    ) -> Free:
        from scipy.optimize import minimize

        def objective(x: Free) -> tuple[float, Free]:
            value, gradient, matrix, penalty_value = self.problem.evaluate(x, stage, penalty)
            self.budget.used += 1
            if store_best:
                self._store_best(x, matrix, penalty_value)
            return value, gradient

        options = {"maxiter": maximum_iterations, "maxcor": 20}
        result = minimize(objective, free, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(result.x)

    def _store_best(self, free: Free, matrix: Float[Array, "b b"], penalty: float) -> None:
        """Store the best motion so far; _EnoughError ends the descent."""
        merit = self.figure(matrix) + 10.0 * penalty
        # On half the samples a motion looks slightly better than it is; good enough for a target.
        is_comparable = self.problem.basis is self.full_basis or self.goal.target is not None
        if (is_comparable and merit < self.best[0]) or self.best[1] is None:
            self.best = (merit, np.array(free))
            if not self.history or merit < self.history[-1][1]:
                self.history.append((self.budget.spent, merit))
        if self.progress is not None:
            self.progress(self.budget.used, self.best[0])
        if (
            self.budget.used >= self.last_evaluation
            or self.budget.out_of_time
            or self._has_reached_target()
        ):
            raise _SearchEndError

    def _repair_and_certify(self) -> Candidate:
        """Repair the best motion of the descent if the fine check requires it, and certify it."""
        searched = self.best[1]
        assert searched is not None
        free = searched
        self.problem = replace(
            self.problem,
            limit_scaling=replace(self.problem.limit_scaling, norm_order=240.0),
            basis=self.full_basis,
        )
        certified = self._certify(self._coefficients(free))
        if certified.shrunk_to >= 0.99:
            return certified
        original = self.problem
        candidates = [certified]
        times = np.linspace(0.0, self.motion_basis.period, REPAIR_MOMENTS)
        self.problem = replace(
            original,
            penalty_basis=self.motion_basis.matrices(times),
            margin=0.006,
            limit_fraction=0.97,
            variations=(),
        )
        stage = self._stages()[-1]
        stage = self._with_condition_limit(
            ConditionCriterion() if isinstance(stage, ConditionAbove) else stage
        )
        for penalty in (30.0, 1000.0):
            free = self._minimise(stage, free, penalty, 40)
            candidates.append(self._certify(self._coefficients(free)))
            if candidates[-1].shrunk_to >= 0.99:
                break
        if candidates[-1].shrunk_to < 0.97:
            for start in (free, searched):
                feasible_start = self._minimise(stage, self._shrink_to_feasible(start), 1000.0, 100)
                candidates.append(self._certify(self._coefficients(feasible_start)))
                if candidates[-1].shrunk_to >= 0.9:
                    break
        self.problem = original
        best = min(candidates, key=self.rank)
        searched_matrix, repaired_matrix = (
            self._matrix(searched),
            self._matrix_of(best.coefficients),
        )
        information_loss = log_determinant(searched_matrix) - log_determinant(repaired_matrix)
        return replace(best, information_loss=information_loss / len(self.goal.columns))

    def rank(self, candidate: Candidate) -> tuple[bool, float]:
        """Sort key: acceptable candidates first, then the better criterion."""
        is_poor = candidate.condition_scaled > self.goal.condition_limit
        return (is_poor or candidate.shrunk_to < 0.9, candidate.criterion_value)

    def _shrink_to_feasible(self, free: Free) -> Free:
        """Shrink towards the centre pose until no constraint is violated on the fine grid."""
        for _ in range(60):
            if self._penalty(free) == 0.0:
                break
            free = 0.93 * free
        return free

    def _scale_to_limits(self, coefficients: Float[Array, "j m"]) -> Float[Array, "j m"]:
        """Scale every joint to its limits if that is no worse; within them in any case."""
        fine = self.motion_basis.matrices(np.linspace(0.0, self.motion_basis.period, 2000))
        states = np.einsum("dnm,jm->dnj", fine, coefficients)
        # A peak between two of these times is higher by less than this.
        peak_ratio = (1.0 + 1e-4) * np.abs(self.envelope.ratios(states)).max(axis=(0, 1))
        inside = coefficients / np.maximum(peak_ratio, 1.0)[:, None]
        if self.problem.has_penalties:
            return inside
        at_limits = coefficients * (0.9995 / np.maximum(peak_ratio, 1e-9))[:, None]
        figures = [self.figure(self._matrix_of(x)) for x in (inside, at_limits)]
        return at_limits if figures[1] <= figures[0] else inside

    def _certify(self, coefficients: Float[Array, "j m"]) -> Candidate:
        """Certify the motion, shrunk as far as the fine check requires.

        First about its mean pose, which slows it down in place; then towards the centre pose,
        which is feasible.
        """
        coefficients = self._scale_to_limits(coefficients)
        mean = _mean_pose(coefficients, self.motion_basis)
        about_mean = [(s, mean + s * (coefficients - mean)) for s in _SHRINK_FACTORS]
        to_centre = [(s, s * coefficients) for s in (*_SHRINK_FACTORS[1:], *_STRONG_SHRINK_FACTORS)]
        trials = (*about_mean, *to_centre)
        for scale, shrunk in trials:  # noqa: B007
            # A few times reveal most failures; only motions that pass are checked finely.
            certificate = self._check(shrunk, 300)
            if certificate.feasible:
                certificate = self._check(shrunk, None)
            if certificate.feasible:
                break
        else:
            scale, shrunk = 0.0, 0.0 * coefficients
            certificate = self._check(shrunk, None)
        matrix = self._matrix_of(shrunk)
        return Candidate(
            shrunk,
            self.envelope.centre,
            certificate,
            scale,
            self.figure(matrix) if scale > 0 else np.inf,
            condition_number(scale_to_unit_columns(matrix)) if scale > 0 else np.inf,
        )

    def _check(self, coefficients: Float[Array, "j m"], points: int | None) -> Certificate:
        motion = self.motion_basis.motion(self.envelope.centre, coefficients)
        problem = self.problem
        return certify(
            motion,
            self.envelope,
            problem.scene,
            self.goal.model,
            problem.torque,
            points,
            seconds=self.motion_basis.period,
        )


def _mean_pose(coefficients: Float[Array, "j m"], basis: Basis) -> Float[Array, "j m"]:
    """Coefficients of the constant motion at the mean pose; zero if the basis has no constant."""
    position = basis.matrices(np.linspace(0.0, basis.period, 200))[0]
    constant, *_ = np.linalg.lstsq(position, np.ones(len(position)), rcond=None)
    if np.max(np.abs(position @ constant - 1.0)) > 1e-6:
        return np.zeros_like(coefficients)
    return np.outer((coefficients @ position.T).mean(1), constant)
