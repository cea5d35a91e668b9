"""Excitation design: search a trajectory from several starts, and certify it or raise an error.

Every constraint of the result is checked on a fine grid. A motion with too little excitation (its
column-scaled condition number is above the limit) is searched again about other poses; after that
InfeasibleError names the limiting constraint and the parameters that are not identifiable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.compute.engines import Engine
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.core.threads import one_blas_thread
from taufit.dynamics.base_parameters import base_parameters
from taufit.excitation.basis import Basis, FourierBasis
from taufit.excitation.certificate import Certificate, ConstraintCheck, require_feasible_pose
from taufit.excitation.criteria import (
    CRITERIA,
    condition_number,
    log_determinant,
    scale_to_unit_columns,
)
from taufit.excitation.limit_scaling import LimitScaling, MotionLimits
from taufit.excitation.motion import Motion
from taufit.excitation.objective import MotionInformation, with_smoothed_friction
from taufit.excitation.problem import DesignProblem
from taufit.excitation.scene import Clearances, Scene, find_free_pose
from taufit.excitation.search import Budget, Candidate, MotionSearch, SearchGoal
from taufit.model.torque_model import TorqueModel
from taufit.robot import JointLimits, Robot
from taufit.terms import friction_model

SAMPLES = 200
REPORT_SAMPLES = 2000
# Evaluations per second of budget, on any machine.
PER_SECOND = 170
# Column-scaled condition number above which a motion with linear friction is refused.
CONDITION_LIMIT = 30.0
# Condition number that the three-stage design of [Luo2024] has to reach.
DELTA1 = 100.0
_ATTEMPTS = 5
# Loss of ln det per parameter by a repair, above which the search restarts about another pose; and
# the maximum number of such restarts.
_ACCEPTED_LOSS = 0.6
_MAXIMUM_RESTARTS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Planned motion with its excitation and certificate.

    Attributes:
        motion: Motion to play.
        criterion: Optimality criterion.
        certificate: Every constraint on a fine grid.
        names: Names of the base parameters to identify.
        condition_number: Condition number of the weighted base regressor (true sign of velocity).
        condition_number_scaled: Condition number with unit columns.
        log_det: ln det of W'W/N.
        standard_deviation: Standard deviation of each base parameter per unit of weighted noise,
            for `samples` rows per joint.
        samples: Number of samples behind those numbers.
        cpu_seconds: CPU time spent [s].
        starts: Number of starts of the search.
        history: (CPU seconds, criterion) at each improvement.
        shrunk_to: Fraction of the amplitude left by the certificate; 1 is all of it.
        iterations: Evaluations of value and gradient.
        warnings: Messages for the user.
        figure: Value of the criterion; smaller is better.
        reached: Whether "three_stage" has reached its limits; None for other criteria.
    """

    motion: Motion
    criterion: str
    certificate: Certificate
    names: tuple[str, ...]
    condition_number: float
    condition_number_scaled: float
    log_det: float
    standard_deviation: Float[Array, " b"]
    samples: int
    cpu_seconds: float
    starts: int
    history: tuple[tuple[float, float], ...] = ()
    shrunk_to: float = 1.0
    iterations: int = 0
    warnings: tuple[str, ...] = ()
    figure: float = np.inf
    reached: bool | None = None

    def __repr__(self) -> str:
        from taufit.core.number_text import count_text

        feasibility = "feasible" if self.feasible else "not feasible"
        return (
            f"Design({feasibility}, {self.criterion}, condition {self.condition_number:.3g})\n"
            f"  {len(self.names)} base parameters, {self.starts} starts, {self.cpu_seconds:.1f} s\n"
            f"  {count_text(len(self.warnings), 'warning')}; see .motion, .certificate, .warnings"
        )

    @property
    def feasible(self) -> bool:
        return self.certificate.feasible

    @property
    def worst(self) -> ConstraintCheck:
        return self.certificate.tightest_constraint


def default_limits(robot: Robot) -> JointLimits:
    """Limits of the robot; where missing, half a turn about zero, 2 rad/s, 10 rad/s^2.

    Prismatic joints without limits get half a metre either way, 1 m/s and 10 m/s^2.
    """
    limits = robot.limits
    is_prismatic = robot.is_prismatic
    travel, speed = np.where(is_prismatic, 0.5, np.pi), np.where(is_prismatic, 1.0, 2.0)
    return JointLimits(
        np.where(np.isfinite(limits.lower), limits.lower, -travel),
        np.where(np.isfinite(limits.upper), limits.upper, travel),
        np.where(np.isfinite(limits.velocity), limits.velocity, speed),
        np.where(np.isfinite(limits.acceleration), limits.acceleration, 10.0),
        limits.torque,
    )


@one_blas_thread
def design(  # noqa: PLR0913 - the public call has one keyword per choice
    robot: Robot,
    *,
    model: TorqueModel | None = None,
    criterion: str = "a",
    basis: Basis | None = None,
    limits: JointLimits | None = None,
    jerk: float = np.inf,
    scene: Scene | None = None,
    start: Float[Array, " j"] | None = None,
    weights: Float[Array, " j"] | None = None,
    prior: Float[Array, "b b"] | None = None,
    columns: Int[Array, " b"] | None = None,
    focus: tuple[int, ...] | None = None,
    seconds: float = 3.0,
    iterations: int | None = None,
    seed: int = 0,
    target: float | None = None,
    condition_limit: float | None = None,
    delta1: float = DELTA1,
    delta2: float = np.inf,
    progress: Callable[[float, float], object] | None = None,
) -> Design:
    """Plan a motion that excites the base parameters of a model.

    Equal arguments give equal motions: the budget counts evaluations. Time is only an upper limit,
    ten times `seconds` and at least a minute.

    Args:
        robot: The robot.
        model: Model to be identified; default: links with Coulomb and viscous friction and offset.
        criterion: One of CRITERIA.
        basis: Family of motions; default: five harmonics of 0.1 Hz.
        limits: Joint limits; default: those of the robot.
        jerk: Maximum jerk [rad/s^3].
        scene: Obstacles and bodies; default: none.
        start: Pose to start and end at; default: free.
        weights: 1/noise of each joint; default: equal.
        prior: Information of earlier recordings (W'W per sample of the new motion).
        columns: Base columns of the model; default: the leftmost independent ones.
        focus: Positions among `columns` that matter for criterion "a".
        seconds: Budget in CPU seconds of a usual machine, 170 evaluations each. More gives a
            better motion.
        iterations: Budget in evaluations, instead of `seconds`. Repairs may take more.
        seed: Seed of the random starts.
        target: Value of the criterion (condition number for "cond") at which the search stops.
        condition_limit: Column-scaled condition number above which InfeasibleError is raised;
            default: 30 for linear friction, more for friction with similar columns.
        delta1: Condition number that "three_stage" has to reach; it starts again until then or
            until the budget is used up.
        delta2: Largest -ln det of W'W/N that "three_stage" accepts.
        progress: Called with (fraction of the budget, best criterion).

    Example:
        >>> import taufit
        >>> found = taufit.design(taufit.read_robot("ur3e"), seconds=0.2)
        >>> bool(found.feasible)
        True
        >>> taufit.write_motion(found.motion, "motion.json")
    """
    if criterion not in CRITERIA:
        raise InfeasibleError(
            f"criterion {criterion!r} is not known: use one of {', '.join(CRITERIA)}."
        )
    if not seconds > 0 or (iterations is not None and iterations < 1):
        raise InfeasibleError("the budget of the search must be positive.")
    model = model or TorqueModel(robot, friction_model("linear"), rotor_inertia=False, offset=True)
    limits = limits or default_limits(robot)
    basis = basis or FourierBasis()
    scene = scene or Scene()
    if start is not None:
        start = np.asarray(start, float)
        if start.shape != (robot.joints,) or not np.all(np.isfinite(start)):
            raise InfeasibleError(f"the start pose needs {robot.joints} finite angles.")
        basis = replace(basis, fixed_start=True)  # type: ignore[type-var]
    if columns is None:
        columns = np.asarray(base_parameters(model).columns)
    weights = np.ones(robot.joints) if weights is None else np.asarray(weights, float)
    limit = default_condition_limit(model) if condition_limit is None else condition_limit
    if prior is not None:
        # Parameters identified by earlier recordings need no excitation.
        limit = np.inf
    goal = SearchGoal(
        criterion, model, columns, focus, limit, _stop_value(criterion, target, delta1)
    )
    evaluations = max(1, round(PER_SECOND * seconds)) if iterations is None else iterations
    budget = Budget(evaluations, max(10.0 * seconds, 60.0))

    def search_at(centre: Float[Array, " j"], number: int) -> MotionSearch:
        envelope = MotionLimits.of(limits, centre, jerk)
        require_feasible_pose(model, envelope, scene, limits.torque)
        problem = _problem(goal, basis, envelope, scene, limits.torque, weights, prior, seed)
        report_progress = (
            None if progress is None else lambda used, best: progress(used / evaluations, best)
        )
        return MotionSearch(
            problem, goal, basis, envelope, seed + 7919 * number, budget, report_progress
        )

    candidates: list[Candidate] = []
    history: list[tuple[float, float]] = []
    starts = 0
    for number in range(_ATTEMPTS):
        centre = (
            find_free_pose(robot, limits, scene, seed + 101 * number) if start is None else start
        )
        search = search_at(centre, number)
        candidates += search.run(evaluations if number == 0 else max(evaluations, 300))
        starts += search.starts
        history += search.history
        best = min(candidates, key=search.rank)
        is_acceptable = best.information_loss < _ACCEPTED_LOSS or number >= _MAXIMUM_RESTARTS
        if (is_acceptable and not search.rank(best)[0]) or budget.out_of_time:
            break
    if target is None:
        _require_excitation(best, goal, search, limit)
    planned = _report(best, goal, basis, weights, prior, budget, starts, tuple(history))
    return _judge_three_stage(planned, delta1, delta2)


def _stop_value(criterion: str, target: float | None, delta1: float) -> float | None:
    """Value of the criterion at which the search stops: the target, or that of three stages."""
    return delta1 if criterion == "three_stage" and target is None else target


def _judge_three_stage(planned: Design, delta1: float, delta2: float) -> Design:
    """Add whether the limits of [Luo2024] were reached, and what ended the search if not."""
    if planned.criterion != "three_stage":
        return planned
    reached = planned.condition_number <= delta1 and -planned.log_det <= delta2
    if reached:
        return replace(planned, reached=True)
    information = "" if np.isinf(delta2) else f" and -ln det {-planned.log_det:.4g} of {delta2:g}"
    text = (
        f"three_stage did not reach its limits: condition number {planned.condition_number:.4g} of "
        f"{delta1:g}{information} after {planned.starts} starts; the budget of "
        f"{planned.iterations} evaluations ended it. Give more --seconds, a larger --delta1, or "
        "criterion cond"
    )
    return replace(planned, reached=False, warnings=(*planned.warnings, text))


def default_condition_limit(model: TorqueModel) -> float:
    """Column-scaled condition number that a good motion stays below, for this friction model.

    30 with linear friction. Friction columns that are similar for any motion (v, v|v|, v^3) raise
    it in proportion to the condition number of one joint's columns over a swing of 2 rad/s.
    """

    def joint_condition_number(torque_model: TorqueModel) -> float:
        phase = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)[:, None]
        joints = torque_model.robot.joints
        swing = np.tile(2.0 * np.sin(phase), (1, joints))
        load = np.tile(10.0 + 10.0 * np.sin(3.0 * phase + 1.0), (1, joints))
        columns = torque_model.joint_columns(
            swing,
            np.tile(4.0 * np.cos(phase), (1, joints)),
            position=np.tile(-np.cos(phase), (1, joints)),
            load=load,
            temperature=np.full_like(swing, 25.0) + np.sin(0.5 * phase),
        )[:, 0]
        columns = columns[:, np.linalg.norm(columns, axis=0) > 0]
        if columns.shape[1] < 2:
            return 1.0
        return condition_number(scale_to_unit_columns(columns.T @ columns))

    linear_model = TorqueModel(
        model.robot, friction_model("linear"), rotor_inertia=False, offset=model.has("offset")
    )
    ratio = joint_condition_number(model) / joint_condition_number(linear_model)
    return CONDITION_LIMIT * (max(1.0, ratio) if np.isfinite(ratio) else np.inf)


def _problem(
    goal: SearchGoal,
    basis: Basis,
    envelope: MotionLimits,
    scene: Scene,
    torque: Float[Array, " j"],
    weights: Float[Array, " j"],
    prior: Float[Array, "b b"] | None,
    seed: int,
) -> DesignProblem:
    """Grids, limit scaling and information of one search."""
    model, columns = goal.model, goal.columns
    grid = (np.arange(SAMPLES) + 0.5) / SAMPLES * basis.period
    harmonics = getattr(basis, "harmonics", 8)
    fine = np.linspace(0.0, basis.period, max(120, 24 * harmonics))
    coarse = np.linspace(0.0, basis.period, max(120, 24 * harmonics))
    is_worst_case = goal.criterion == "worst_case"
    return DesignProblem(
        MotionInformation(with_smoothed_friction(model), columns, weights),
        basis.matrices(grid),
        LimitScaling(envelope, basis.matrices(fine)),
        envelope.centre,
        prior,
        scene,
        Clearances(model.robot, scene),
        torque,
        basis.matrices(coarse),
        margin=0.01,
        projectors=basis.projectors(model.robot.joints),
        variations=_robot_variations(model, columns, weights, seed) if is_worst_case else (),
    )


def _require_excitation(
    best: Candidate, goal: SearchGoal, search: MotionSearch, limit: float
) -> None:
    """InfeasibleError for insufficient excitation, with the limiting constraint and parameters."""
    if best.shrunk_to > 0 and best.condition_scaled <= limit:
        return
    tightest = best.certificate.tightest_constraint
    reason = f"The tightest constraint is {tightest.name}"
    if best.shrunk_to < 0.9:
        reason += f", which left {100 * best.shrunk_to:.0f} % of the motion searched"
    if best.shrunk_to == 0:
        raise InfeasibleError(
            f"no motion about this pose keeps all constraints. {reason}. Loosen it or choose "
            "another start pose."
        )
    matrix = scale_to_unit_columns(search.information(best))
    vector = np.linalg.eigh(matrix)[1][:, 0]
    names = [goal.model.names[goal.columns[i]] for i in np.argsort(-np.abs(vector))[:3]]
    raise InfeasibleError(
        f"the best motion found has a column-scaled condition number of "
        f"{best.condition_scaled:.3g}; {limit:.3g} or less is needed. It cannot separate "
        f"{', '.join(names)}. {reason}. Loosen the limits or the cell, raise the frequency, or "
        "identify fewer terms (--no-offset, a simpler friction model)."
    )


def _report(
    best: Candidate,
    goal: SearchGoal,
    basis: Basis,
    weights: Float[Array, " j"],
    prior: Float[Array, "b b"] | None,
    budget: Budget,
    starts: int,
    history: tuple[tuple[float, float], ...],
) -> Design:
    """Design with its numbers, for the true sign of velocity."""
    motion = basis.motion(best.centre, best.coefficients)
    information = MotionInformation(goal.model, goal.columns, weights)
    times = (np.arange(REPORT_SAMPLES) + 0.5) / REPORT_SAMPLES * basis.period
    matrix, _ = information.matrix(*motion.at(times))
    total = matrix if prior is None else matrix + prior
    with np.errstate(all="ignore"):
        standard_deviation = np.sqrt(
            np.maximum(np.diag(np.linalg.pinv(total, hermitian=True)), 0.0)
        )
    warnings = []
    if best.shrunk_to < 0.9:
        warnings.append(
            f"the motion was shrunk to {100 * best.shrunk_to:.0f} % to keep "
            f"{best.certificate.tightest_constraint.name}"
        )
    if budget.out_of_time:
        warnings.append(
            f"stopped after {budget.spent:.0f} CPU seconds; another run may give another motion"
        )
    return Design(
        motion,
        goal.criterion,
        best.certificate,
        tuple(goal.model.names[c] for c in goal.columns),
        condition_number(matrix),
        condition_number(scale_to_unit_columns(matrix)),
        log_determinant(matrix),
        standard_deviation / np.sqrt(REPORT_SAMPLES),
        REPORT_SAMPLES,
        budget.spent,
        starts,
        history,
        best.shrunk_to,
        budget.used,
        tuple(warnings),
        best.criterion_value,
    )


def _robot_variations(
    model: TorqueModel, columns: Int[Array, " b"], weights: Float[Array, " j"], seed: int
) -> tuple[MotionInformation, ...]:
    """Information for random variations of the robot: other noise, friction shapes and inertia.

    Noise of each joint within a factor 2, shapes within a factor 2, link parameters (they matter
    for load-dependent friction) within 30 %; four draws.
    """
    rng = np.random.default_rng(seed + 104729)
    variations = []
    for _ in range(4):
        robot = model.robot.with_parameters(
            model.robot.parameters * rng.uniform(0.7, 1.3, model.robot.parameters.shape)
        )
        shape = model.joint_shape * 2.0 ** rng.uniform(-1.0, 1.0, model.joint_shape.shape)
        variation = replace(model, robot=robot, shape=shape)
        noise = 2.0 ** rng.uniform(-1.0, 1.0, weights.shape)
        variations.append(
            MotionInformation(with_smoothed_friction(variation), columns, weights * noise)
        )
    return tuple(variations)


def design_in_parallel(
    robot: Robot,
    *,
    workers: int = 1,
    seed: int = 0,
    progress: Callable[[float, float], object] | None = None,
    engine: Engine | None = None,
    **settings: Any,
) -> Design:
    """Run `workers` searches and return the best; cpu_seconds and starts are totals.

    Args:
        robot: The robot.
        workers: Number of searches, each from other starts.
        seed: Seed of the first search.
        progress: Callback of the search in this process.
        engine: Engine to run them on; default: processes on this computer.
        **settings: Arguments of `design`.
    """
    if workers <= 1:
        return design(robot, seed=seed, progress=progress, **settings)
    if engine is not None:
        jobs = ((robot, seed + 1009 * k, settings) for k in range(workers))
        designs = [result for result in engine.map(_run_design, jobs) if isinstance(result, Design)]
        if not designs:
            raise TaufitError("no worker could finish a search. Look at the workers' logs.")
        return _best(designs)
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(workers) as pool:
        futures = [
            pool.submit(design, robot, seed=seed + 1009 * k, **settings) for k in range(1, workers)
        ]
        results = [design(robot, seed=seed, progress=progress, **settings)]
        results += [job.result() for job in futures]
    return _best(results)


def _run_design(robot: Robot, seed: int, settings: dict[str, Any]) -> Design:
    return design(robot, seed=seed, **settings)


def _best(results: list[Design]) -> Design:
    best = min(results, key=lambda result: result.figure)
    return replace(
        best,
        cpu_seconds=sum(result.cpu_seconds for result in results),
        starts=sum(result.starts for result in results),
    )


__all__ = [
    "Design",
    "default_condition_limit",
    "default_limits",
    "design",
    "design_in_parallel",
    "find_free_pose",
]
