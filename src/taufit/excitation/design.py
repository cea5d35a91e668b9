"""Plan a motion worth recording: feasible at every step of the search, certified at its end.

Free coefficients go through the gauge (limits hold whatever the search proposes), then through the
information matrix to a criterion; torque, tip speed and distances enter as penalties on a coarse
grid. At the end every constraint is checked on a fine grid; a motion that fails there is shrunk
towards its centre pose, where standing still breaks nothing, until it passes.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.dynamics.base_parameters import base_parameters
from taufit.errors import InfeasibleError
from taufit.excitation.basis import Basis, FourierBasis
from taufit.excitation.certificate import Certificate, Check, certify, predicted_torque
from taufit.excitation.criteria import (
    CRITERIA,
    AOptimal,
    Condition,
    ConditionAbove,
    Criterion,
    DOptimal,
    Product,
    WeightedBlocks,
    condition_number,
    log_determinant,
    scaled,
)
from taufit.excitation.gauge import Envelope, Gauge
from taufit.excitation.motion import Motion
from taufit.excitation.objective import InformationOf, smoothed
from taufit.excitation.scene import Clearances, Scene
from taufit.friction import Linear
from taufit.model.torque_model import TorqueModel
from taufit.robot import Limits, Robot

SAMPLES = 200
REPORT_SAMPLES = 2000
_DISTANCE_UNIT = 0.02
_POINTS_PER_HARMONIC = 10  # enough to see every extremum of a sum of sines


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A planned motion and what it is worth.

    Attributes:
        motion: What to play.
        criterion: What it was chosen for.
        certificate: Every constraint on a fine grid.
        names: Of the base parameters it is to show.
        condition_number: Of the weighted base regressor (true sign of velocity).
        condition_number_scaled: The same with unit columns.
        log_det: ln det of W'W/N.
        standard_deviation: Of each base parameter per unit of weighted noise, for `samples` rows
            per joint.
        samples: Grid on which those numbers were computed.
        cpu_seconds: Spent.
        starts: How many the search was started from.
        history: (CPU seconds, criterion) whenever a better motion was found.
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

    @property
    def feasible(self) -> bool:
        return self.certificate.feasible

    @property
    def worst(self) -> Check:
        return self.certificate.tightest


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Everything a search needs, fixed."""

    information: InformationOf
    basis: Float[Array, "4 n m"]
    gauge: Gauge
    centre: Float[Array, " j"]
    prior: Float[Array, "b b"] | None
    scene: Scene
    clearances: Clearances
    torque: Float[Array, " j"]
    coarse: Float[Array, "4 k m"]
    margin: float = 0.0
    share: float = 0.98
    projectors: Float[Array, "j m m"] | None = None
    others: tuple[InformationOf, ...] = ()

    def coefficients(self, free: Float[Array, " f"]) -> tuple[Float[Array, "j m"], Any]:
        """Feasible coefficients from free ones, and what the way back needs."""
        shaped = free.reshape(len(self.centre), -1)
        if self.projectors is not None:
            shaped = np.einsum("jmk,jk->jm", self.projectors, shaped)
        return self.gauge.apply(shaped)

    def back(self, gradient: Float[Array, "j m"], memory: Any) -> Float[Array, " f"]:
        """The gradient with respect to the free coefficients."""
        pulled = self.gauge.pull(gradient, memory)
        if self.projectors is not None:
            pulled = np.einsum("jmk,jk->jm", self.projectors, pulled)
        return pulled.ravel()

    def states(
        self, coefficients: Float[Array, "j m"], basis: Float[Array, "4 n m"]
    ) -> list[Float[Array, "n j"]]:
        moved = np.einsum("dnm,jm->dnj", basis[:3], coefficients)
        return [moved[0] + self.centre, moved[1], moved[2]]

    def matrix(self, states: list[Float[Array, "n j"]]) -> tuple[Array, Array]:
        matrix, rows = self.information.matrix(*states)
        return (matrix if self.prior is None else matrix + self.prior), rows

    def evaluate(
        self, free: Float[Array, " f"], criterion: Criterion, penalty: float
    ) -> tuple[float, Float[Array, " f"], Float[Array, "b b"], float]:
        """Criterion plus penalties, the gradient, and apart the matrix and how much is broken."""
        coefficients, memory = self.coefficients(free)
        states = self.states(coefficients, self.basis)
        matrix, rows = self.matrix(states)
        value, slope = criterion.evaluate(matrix)
        by = np.stack(self.information.pull(states, rows, slope))
        if self.others:
            value, by = self._worst(states, criterion, value, by)
        gradient = np.einsum("dnj,dnm->jm", by, self.basis[:3])
        extra = 0.0
        if penalty > 0:
            extra, by = self._penalty(self.states(coefficients, self.coarse))
            value += penalty * extra
            gradient += penalty * np.einsum("dnj,dnm->jm", by, self.coarse[:3])
        return value, self.back(gradient, memory), matrix, extra

    def _worst(
        self, states: list[Float[Array, "n j"]], criterion: Criterion, value: float, by: Array
    ) -> tuple[float, Array]:
        """A smooth largest over what else the arm may be: ln sum exp(8 value)/8."""
        values, pulls = [value], [by]
        for other in self.others:
            matrix, rows = other.matrix(*states)
            one, slope = criterion.evaluate(matrix if self.prior is None else matrix + self.prior)
            values.append(one)
            pulls.append(np.stack(other.pull(states, rows, slope)))
        scaled_up = 8.0 * (np.array(values) - max(values))
        share = np.exp(scaled_up)
        total = share.sum()
        worst = max(values) + float(np.log(total)) / 8.0
        return worst, np.tensordot(share / total, np.array(pulls), axes=1)

    @property
    def constrained(self) -> bool:
        return bool(
            self.clearances.names
            or np.any(np.isfinite(self.torque))
            or np.isfinite(self.scene.tip_speed)
        )

    def _penalty(self, states: list[Float[Array, "k j"]]) -> tuple[float, Float[Array, "3 k j"]]:
        q, v, a = states
        total, by = 0.0, np.zeros((3, *q.shape))
        if self.clearances.names:
            free, slope = self.clearances.evaluate(q)
            assert slope is not None
            short = np.maximum(self.margin - free, 0.0) / _DISTANCE_UNIT
            total += float(np.sum(short**2)) / len(q)
            pull = -2.0 * short / (_DISTANCE_UNIT * len(q))
            by[0] += np.einsum("nk,nkj->nj", pull, slope)
        if np.any(np.isfinite(self.torque)):
            # Limits of the links' torque; what the prior says of friction shifts the limit.
            model = self.information.model
            engine = self.information.engine
            torque = predicted_torque(model, q, v, a)
            over = np.maximum(np.abs(torque) / (self.share * self.torque) - 1.0, 0.0)
            if np.any(over):
                total += 100.0 * float(np.sum(over**2)) / len(q)
                pull = 200.0 * over * np.sign(torque) / (self.share * self.torque) / len(q)
                pull[:, ~np.isfinite(self.torque)] = 0.0
                into = pull[:, :, None] * model.robot.parameters
                by += np.stack(engine.regressor_adjoint(q, v, a, into))
        if np.isfinite(self.scene.tip_speed):
            excess, by_q, by_v = _tip_speed(
                self.information.model.robot, q, v, self.share * self.scene.tip_speed
            )
            total += 100.0 * excess
            by[0] += 100.0 * by_q
            by[1] += 100.0 * by_v
        return total, by


def _tip_speed(
    robot: Robot, q: Float[Array, "n j"], v: Float[Array, "n j"], limit: float
) -> tuple[float, Float[Array, "n j"], Float[Array, "n j"]]:
    """Mean squared excess of the tip's speed over its limit, with derivatives.

    The tip moves with J v; dJ_k/dq_i = w_i x J_k for i <= k and w_k x J_i for i > k.
    """
    from taufit.dynamics import jacobian

    full = jacobian(robot, q)
    w, j = np.swapaxes(full[:, :3], 1, 2), np.swapaxes(full[:, 3:], 1, 2)
    speed = np.einsum("nka,nk->na", j, v)
    size = np.maximum(np.linalg.norm(speed, axis=1), 1e-9)
    over = np.maximum(size / limit - 1.0, 0.0)
    n, joints = q.shape
    direction = speed / size[:, None]
    scale = 2.0 * over / limit / n
    by_v = scale[:, None] * np.einsum("nka,na->nk", j, direction)
    by_q = np.zeros_like(q)
    for i in range(joints):
        change = np.zeros((n, 3))
        for k in range(joints):
            turned = np.cross(w[:, i], j[:, k]) if i <= k else np.cross(w[:, k], j[:, i])
            change += turned * v[:, k, None]
        by_q[:, i] = scale * np.sum(change * direction, axis=1)
    return float(np.mean(over**2)), by_q, by_v


def default_limits(robot: Robot) -> Limits:
    """The robot's own limits; where it names none, half a turn about zero, 2 rad/s, 10 rad/s^2."""
    own = robot.limits
    return Limits(
        np.where(np.isfinite(own.lower), own.lower, -np.pi),
        np.where(np.isfinite(own.upper), own.upper, np.pi),
        np.where(np.isfinite(own.velocity), own.velocity, 2.0),
        np.where(np.isfinite(own.acceleration), own.acceleration, 10.0),
        own.torque,
    )


def free_centre(
    robot: Robot, limits: Limits, scene: Scene, seed: int = 0, tries: int = 400
) -> Float[Array, " j"]:
    """A pose well inside the limits from which the arm can move every way without touching.

    Of random poses in the middle of the ranges the one with most free space; the middle itself
    where there is nothing to touch.
    """
    middle = 0.5 * (limits.lower + limits.upper)
    clearances = Clearances(robot, scene)
    if not clearances.names:
        return middle
    rng = np.random.default_rng(seed)
    half = 0.5 * (limits.upper - limits.lower)
    # Half a turn either way is every pose of a revolute joint.
    reach = np.minimum(0.6 * half, np.pi)
    q = middle + rng.uniform(-1.0, 1.0, size=(tries, robot.joints)) * reach
    q[0] = middle
    free, _ = clearances.evaluate(q, slope=False)
    score = np.minimum(free.min(1), 0.15) - 0.05 * np.mean(((q - middle) / half) ** 2, axis=1)
    best = int(np.argmax(score))
    if free[best].min() < 0:
        name = clearances.names[int(np.argmin(free[best]))]
        raise InfeasibleError(
            f"no pose was found in which the arm keeps its clearance ({name} is short by "
            f"{-free[best].min() * 1000:.0f} mm at best). Loosen the cell, the clearance or the "
            "capsule radius."
        )
    return q[best]


def design(
    robot: Robot,
    *,
    model: TorqueModel | None = None,
    criterion: str = "a",
    basis: Basis | None = None,
    limits: Limits | None = None,
    jerk: float = np.inf,
    scene: Scene | None = None,
    start: Float[Array, " j"] | None = None,
    weights: Float[Array, " j"] | None = None,
    prior: Float[Array, "b b"] | None = None,
    columns: Int[Array, " b"] | None = None,
    focus: tuple[int, ...] | None = None,
    seconds: float = 3.0,
    seed: int = 0,
    target: float | None = None,
    progress: Callable[[float, float], Any] | None = None,
) -> Design:
    """Plan a motion that shows the model's base parameters.

    Args:
        robot: The arm.
        model: What is to be identified; by default the links with Coulomb, viscous and offset.
        criterion: One of CRITERIA.
        basis: Family of motions; five harmonics of 0.1 Hz by default.
        limits: Instead of the robot's own.
        jerk: Largest jerk.
        scene: What not to touch; nothing by default.
        start: Pose to start and end at; free by default.
        weights: 1/noise of each joint; equal by default.
        prior: Information the earlier recordings brought (W'W per sample of the new motion).
        columns: Base columns of the model; the leftmost independent ones by default.
        focus: Positions among `columns` that matter for criterion "a".
        seconds: CPU seconds to spend; the best motion so far is kept all along.
        seed: Of the starts.
        target: Stop when the criterion's number (condition number for "cond") is this low.
        progress: Called with (CPU seconds, best criterion).
    """
    if criterion not in CRITERIA:
        raise InfeasibleError(
            f"criterion {criterion!r} is not known: use one of {', '.join(CRITERIA)}."
        )
    if not seconds > 0:
        raise InfeasibleError(f"{seconds:g} CPU seconds are no time to search in.")
    began = clock.process_time()
    model = model or TorqueModel(robot, Linear(), rotor_inertia=False, offset=True)
    limits = limits or default_limits(robot)
    basis = basis or FourierBasis()
    scene = scene or Scene()
    if start is not None:
        centre = np.asarray(start, float)
        if centre.shape != (robot.joints,) or not np.all(np.isfinite(centre)):
            raise InfeasibleError(f"the start pose needs {robot.joints} finite angles.")
        basis = replace(basis, fixed_start=True)  # type: ignore[type-var]
    else:
        centre = free_centre(robot, limits, scene, seed)
    envelope = Envelope.of(limits, centre, jerk)
    if columns is None:
        columns = np.asarray(base_parameters(model, rule="leftmost").columns)
    weights = np.ones(robot.joints) if weights is None else np.asarray(weights, float)
    torque = limits.torque
    _require_rest_is_allowed(model, envelope, scene, torque)

    soft = InformationOf(smoothed(model), columns, weights)
    grid = (np.arange(SAMPLES) + 0.5) / SAMPLES * basis.period
    harmonics = getattr(basis, "harmonics", 8)
    fine = np.linspace(0.0, basis.period, max(120, 24 * harmonics))
    coarse = np.linspace(0.0, basis.period, max(60, _POINTS_PER_HARMONIC * harmonics))
    problem = _Problem(
        soft,
        basis.matrices(grid),
        Gauge(envelope, basis.matrices(fine)),
        centre,
        prior,
        scene,
        Clearances(robot, scene),
        torque,
        basis.matrices(coarse),
        margin=0.01,
        projectors=basis.projectors(robot.joints),
        others=_others(model, columns, weights, seed) if criterion == "worst_case" else (),
    )
    # The certificate and the report take their share of the budget.
    budget = max(0.5 * seconds, seconds - (0.6 if problem.constrained else 0.15))
    search = _Search(problem, criterion, model, columns, focus, seed, began, budget, progress)
    best, starts, history = search.run(target)
    for stricter in (30.0, 1000.0):
        if not problem.constrained:
            break
        motion = basis.motion(centre, best)
        if certify(motion, envelope, scene, model, torque, 1000).feasible:
            break
        best = search.repair(stricter)

    best = search.stretched(best, basis.matrices(np.linspace(0.0, basis.period, 2000)))
    motion, certificate = _certified(best, basis, envelope, scene, model, torque)

    hard = InformationOf(model, columns, weights)
    moments = (np.arange(REPORT_SAMPLES) + 0.5) / REPORT_SAMPLES * basis.period
    matrix, _ = hard.matrix(*motion.at(moments))
    known = matrix if prior is None else matrix + prior
    names = tuple(model.names[c] for c in columns)
    with np.errstate(all="ignore"):
        spread = np.sqrt(np.maximum(np.diag(np.linalg.pinv(known, hermitian=True)), 0.0))
    return Design(
        motion,
        criterion,
        certificate,
        names,
        condition_number(matrix),
        condition_number(scaled(matrix)),
        log_determinant(matrix),
        spread / np.sqrt(REPORT_SAMPLES),
        REPORT_SAMPLES,
        clock.process_time() - began,
        starts,
        tuple(history),
    )


def _others(
    model: TorqueModel, columns: Int[Array, " b"], weights: Float[Array, " j"], seed: int
) -> tuple[InformationOf, ...]:
    """The same arm as it may turn out to be: other noise, other friction shapes, other inertia.

    Noise of each joint within a factor 2, shapes within a factor 2, links' parameters (they matter
    where friction follows load) within 30 %; four draws.
    """
    rng = np.random.default_rng(seed + 104729)
    out = []
    for _ in range(4):
        robot = model.robot.with_parameters(
            model.robot.parameters * rng.uniform(0.7, 1.3, model.robot.parameters.shape)
        )
        shape = model.joint_shape * 2.0 ** rng.uniform(-1.0, 1.0, model.joint_shape.shape)
        other = replace(model, robot=robot, shape=shape)
        noise = 2.0 ** rng.uniform(-1.0, 1.0, weights.shape)
        out.append(InformationOf(smoothed(other), columns, weights * noise))
    return tuple(out)


def _require_rest_is_allowed(
    model: TorqueModel, envelope: Envelope, scene: Scene, torque: Float[Array, " j"]
) -> None:
    """Standing at the centre must break nothing: every motion is shrunk towards it if need be."""
    q = envelope.centre[None]
    free, _ = Clearances(model.robot, scene).evaluate(q, slope=False)
    if free.size and free.min() < 0:
        name = Clearances(model.robot, scene).names[int(np.argmin(free[0]))]
        raise InfeasibleError(
            f"the start pose itself breaks the clearance of {name} by {-free.min() * 1000:.0f} mm."
        )
    if np.any(np.isfinite(torque)):
        hold = np.abs(predicted_torque(model, q, 0 * q, 0 * q))[0]
        if np.any(hold > torque):
            joint = int(np.argmax(hold / torque))
            raise InfeasibleError(
                f"holding the start pose takes {hold[joint]:.3g} N m in joint {joint + 1}, above "
                f"its torque limit of {torque[joint]:.3g} N m."
            )
    if not scene.tip_speed > 0:
        raise InfeasibleError("the tip speed limit is not positive.")


def _certified(
    coefficients: Float[Array, "j m"],
    basis: Basis,
    envelope: Envelope,
    scene: Scene,
    model: TorqueModel,
    torque: Float[Array, " j"],
) -> tuple[Motion, Certificate]:
    """The motion, shrunk as far as the fine check asks.

    First about its own mean pose, which slows it and keeps it where it is; then towards the
    centre, where standing still breaks nothing.
    """
    mean = _mean_pose(coefficients, basis)
    ladder = (1.0, 0.99, 0.97, 0.94, 0.9, 0.85, 0.78, 0.7, 0.6, 0.5, 0.4)
    about_mean = [mean + scale * (coefficients - mean) for scale in ladder]
    to_centre = [scale * coefficients for scale in (*ladder[1:], 0.3, 0.2, 0.1, 0.05, 0.02)]
    first = None
    for candidate in (*about_mean, *to_centre):
        motion = basis.motion(envelope.centre, candidate)
        # A few moments tell most failures; only what passes them is looked at closely.
        certificate = certify(motion, envelope, scene, model, torque, 300)
        if certificate.feasible:
            certificate = certify(motion, envelope, scene, model, torque)
        if certificate.feasible:
            return motion, certificate
        first = first or certificate.tightest
    assert first is not None
    raise InfeasibleError(
        f"no motion about this pose keeps {first.name}: short by {-first.margin:.3g} "
        f"{'m' if first.unit == 'm' else 'of the limit'} at {first.time:.2f} s. Loosen that "
        "limit or choose another start pose."
    )


def _mean_pose(coefficients: Float[Array, "j m"], basis: Basis) -> Float[Array, "j m"]:
    """Coefficients of the constant motion at the mean of this one; zero where none is constant."""
    position = basis.matrices(np.linspace(0.0, basis.period, 200))[0]
    constant, *_ = np.linalg.lstsq(position, np.ones(len(position)), rcond=None)
    if np.max(np.abs(position @ constant - 1.0)) > 1e-6:
        return np.zeros_like(coefficients)
    return np.outer((coefficients @ position.T).mean(1), constant)


class _Search:
    """Multi-start quasi-Newton search that always has a best motion."""

    def __init__(
        self,
        problem: _Problem,
        criterion: str,
        model: TorqueModel,
        columns: Int[Array, " b"],
        focus: tuple[int, ...] | None,
        seed: int,
        began: float,
        seconds: float,
        progress: Callable[[float, float], Any] | None,
    ) -> None:
        self.problem, self.kind, self.model = problem, criterion, model
        self.basis = problem.basis
        self.columns, self.focus = columns, focus
        self.rng = np.random.default_rng(seed)
        self.began, self.seconds, self.progress = began, seconds, progress
        self.scale: Float[Array, " b"] | None = None
        self.history: list[tuple[float, float]] = []
        self.best: tuple[float, Any] = (np.inf, None)

    def spent(self) -> float:
        return clock.process_time() - self.began

    def run(
        self, target: float | None
    ) -> tuple[Float[Array, "j m"], int, list[tuple[float, float]]]:
        starts = 0
        self.target = target
        pool = self._starts(24)
        if self.kind in ("a", "worst_case"):
            # One unit of a parameter's standard deviation is what a typical random motion leaves.
            inverses = [np.diag(np.linalg.pinv(self._matrix(z), hermitian=True)) for z in pool[:8]]
            self.scale = np.sqrt(np.exp(np.mean(np.log(np.maximum(inverses, 1e-300)), axis=0)))
        ranked = sorted(pool, key=self._merit)
        while True:
            start = ranked[starts] if starts < min(4, len(ranked)) else self._starts(6, best=True)
            starts += 1
            self._descend(start)
            if self._done() or self.spent() > self.seconds:
                break
        return self._coefficients(self.best[1]), starts, self.history

    def repair(self, penalty: float) -> Float[Array, "j m"]:
        """The best motion again, with constraints weighing more, for a few steps."""
        from scipy.optimize import minimize

        self.problem = replace(
            self.problem,
            margin=self.problem.margin + 0.005,
            share=self.problem.share - 0.03,
            others=(),
        )
        stage = self._stages()[-1]
        if isinstance(stage, ConditionAbove):
            stage = Condition()
        result = minimize(
            lambda free: self.problem.evaluate(free, stage, penalty)[:2],
            self.best[1],
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 40, "maxcor": 20},
        )
        self.best = (self.best[0], result.x)
        return self._coefficients(result.x)

    def stretched(
        self, coefficients: Float[Array, "j m"], fine: Float[Array, "4 n m"]
    ) -> Float[Array, "j m"]:
        """Every joint at its limit exactly, where that is no worse; within it in any case."""
        moved = np.einsum("dnm,jm->dnj", fine, coefficients)
        used = np.abs(self.problem.gauge.envelope.ratios(moved)).max(axis=(0, 1))
        within = coefficients / np.maximum(used, 1.0)[:, None]
        if self.problem.constrained:
            return within
        full = coefficients * (0.9995 / np.maximum(used, 1e-9))[:, None]
        figures = [
            self.figure(self.problem.matrix(self.problem.states(x, self.problem.basis))[0])
            for x in (within, full)
        ]
        return full if figures[1] <= figures[0] else within

    def _starts(self, count: int, best: bool = False) -> Any:
        shape = (len(self.problem.centre), self.problem.basis.shape[2])
        options = [self.rng.normal(size=shape).ravel() * 1.5 for _ in range(count)]
        return min(options, key=self._merit) if best else options

    def _coefficients(self, free: Any) -> Float[Array, "j m"]:
        return self.problem.coefficients(free)[0]

    def _matrix(self, free: Any) -> Float[Array, "b b"]:
        p = self.problem
        return p.matrix(p.states(self._coefficients(free), p.basis))[0]

    def _stages(self) -> list[Criterion]:
        if self.kind == "cond":
            return [Condition(2.0), Condition(8.0), Condition(32.0)]
        if self.kind == "cond_scaled":
            return [Condition(p, columns_scaled=True) for p in (2.0, 8.0, 32.0)]
        if self.kind == "d":
            return [DOptimal(), DOptimal()]
        if self.kind == "product":
            return [Product(), Product()]
        if self.kind == "weighted_blocks":
            blocks = self._blocks()
            return [WeightedBlocks(blocks, 2.0), WeightedBlocks(blocks, 32.0)]
        if self.kind == "three_stage":
            return [Product(), DOptimal(), ConditionAbove(0.0)]
        # From the largest volume of information the way to small deviations is short.
        return [DOptimal(), AOptimal(self.scale, self.focus)]

    def _blocks(self) -> tuple[tuple[int, ...], ...]:
        layout = self.model.layout
        names = [layout.what[c] for c in self.columns]
        links = [layout.kind[c] == "link" for c in self.columns]
        inertia = [i for i, n in enumerate(names) if links[i] and n[0] == "I"]
        moment = [i for i, n in enumerate(names) if links[i] and n[0] != "I"]
        joint = [i for i in range(len(names)) if not links[i]]
        return tuple(inertia), tuple(moment), tuple(joint)

    def figure(self, matrix: Float[Array, "b b"]) -> float:
        """The criterion's own number, without smoothing: what motions are compared by."""
        if self.kind in ("cond", "three_stage"):
            return condition_number(matrix)
        if self.kind == "cond_scaled":
            return condition_number(scaled(matrix))
        return self._stages()[-1].evaluate(matrix)[0]

    def _merit(self, free: Any) -> float:
        """For ranking starts and results: the figure, and how far constraints are broken."""
        value = self.figure(self._matrix(free))
        if self.problem.constrained:
            value += 10.0 * self._broken(free)
        return value

    def _broken(self, free: Any) -> float:
        states = self.problem.states(self._coefficients(free), self.problem.coarse)
        return self.problem._penalty(states)[0]

    def _done(self) -> bool:
        return self.target is not None and self.best[0] <= self.target

    def _descend(self, free: Any) -> None:
        from scipy.optimize import minimize

        stages = self._stages()
        for i, stage in enumerate(stages):
            last = i + 1 == len(stages)
            if isinstance(stage, ConditionAbove):
                floor = log_determinant(self._matrix(free)) - 0.05 * len(self.columns)
                stage = replace(stage, floor=floor)
            penalty = (10.0 if last else 1.0) if self.problem.constrained else 0.0
            # On the way half the samples and a rounder gauge do.
            gauge = replace(self.problem.gauge, sharp=240.0 if last else 60.0)
            basis = self.basis if last else self.basis[:, ::2]
            self.problem = replace(self.problem, gauge=gauge, basis=basis)
            try:
                free = minimize(
                    self._evaluate,
                    free,
                    args=(stage, penalty),
                    jac=True,
                    method="L-BFGS-B",
                    options={"maxiter": 250 if last else 60, "maxcor": 20},
                ).x
            except _EnoughError:
                return

    def _evaluate(
        self, free: Any, stage: Criterion, penalty: float
    ) -> tuple[float, Float[Array, " f"]]:
        """Value and gradient for the search; the best motion met on the way is kept."""
        value, gradient, matrix, broken = self.problem.evaluate(free, stage, penalty)
        merit = self.figure(matrix) + 10.0 * broken
        # On half the samples a motion looks a little better than it is; good enough for a target.
        counts = self.problem.basis is self.basis or self.target is not None
        if (counts and merit < self.best[0]) or self.best[1] is None:
            self.best = (merit, np.array(free))
            self.history.append((self.spent(), merit))
        if self.progress is not None:
            self.progress(self.spent(), self.best[0])
        if self.spent() > self.seconds or self._done():
            raise _EnoughError
        return value, gradient


class _EnoughError(Exception):
    """The budget is used up or the target reached; the best motion is kept."""


__all__ = ["Design", "default_limits", "design", "free_centre"]
