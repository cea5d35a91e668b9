"""Friction shapes (exponents, Stribeck velocities, widths) by variable projection.

Given shapes s, all coefficients follow by linear least squares; the residual is

    r(s) = (1 - P(s)) y,      P(s) the projection on the columns [W0, F(s)],

a function of the shapes only. W0 (links, rotors, offsets) couples the joints, so all joints' shapes
are estimated jointly. Columns are analytic in the shapes: complex steps give exact derivatives, and
Kaufman's approximation the Jacobian

    dr/ds_m = -(1 - P) (dF/ds_m) c.

The search uses logarithms of the shapes and starts from a grid, joint by joint.
"""

from __future__ import annotations

from dataclasses import field, replace
from itertools import combinations, product

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import joint_parameter
from taufit.dynamics.base_parameters import base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.regression.rows import Load, SampleRows
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples
from taufit.terms import ShapeParameter, Term, has_memory

COMPLEX_STEP = 1e-30
MAX_SAMPLES = 3000
# Starts across a fold, as fractions of the distance to the twin, and the largest such distance.
FOLD_STEPS = np.array([0.7, 1.0, 1.4, 2.0])
MAX_FOLD_STEP = 2.0
# Distances from a fold of additional starts, in logarithms.
FOLD_GAPS = (-0.3, 0.3)


def fit_shapes(
    model: TorqueModel,
    samples: Samples,
    *,
    load: Load = None,
    dropped: tuple[str, ...] = (),
    search: bool | None = None,
    rounds: int = 3,
) -> Float[Array, "j s"]:
    """Shape parameters of least squared residuals, for every joint.

    Joint after joint, the best points of the grid are refined with the other joints fixed, then all
    joints together. Rows are weighted by the residual of their joint's best fit.

    Args:
        model: Torque model; its shape is the initial value, else the middle of the grid.
        samples: Motion and torque.
        load: Gear torque for load-dependent friction.
        dropped: Parameters fixed at zero.
        search: Whether to search the grid; by default if the model has no shape.
        rounds: Largest number of iterations of joint-wise and common refinement.
    """
    joints = model.robot.joints
    stride = max(1, -(-len(samples) // MAX_SAMPLES))
    gear_load = SampleRows(model, samples, load=load).gear_load
    problem = _ShapeProblem(model, samples, gear_load, dropped, np.arange(0, len(samples), stride))
    shape = model.joint_shape.astype(float)
    search = model.shape is None if search is None else search
    problem.set_weights(np.ones(joints))
    problem.set_weights(_ShapeState.evaluate(problem, shape).std)
    all_motors = tuple(range(joints))

    if search:
        for _ in range(2):
            shape = _optimise_joints(problem, shape)
            problem.set_weights(_ShapeState.evaluate(problem, shape).std)
    best = np.inf
    for _ in range(rounds):
        state = _search_across_folds(_levenberg(_ShapeState.evaluate(problem, shape), all_motors))
        shape = state.shape
        if not search or state.cost > best * (1 - 1e-6) or state.cost < problem.rounding:
            break
        best = state.cost
        shape = _optimise_joints(problem, shape)
    return shape


class _ShapeProblem:
    """Constants of the shape search: samples, loads, fixed columns, weights.

    Attributes:
        factor: Weight of every selected sample and joint; 0 where it does not count.
        fixed_basis: Q0, an orthonormal basis of the weighted fixed columns, (sample, joint,
            column).
        target: Weighted torque without its part in Q0, (sample, joint).
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        load: Float[Array, "n j"] | None,
        dropped: tuple[str, ...],
        indices: Int[Array, " k"],
    ) -> None:
        self.model, self.samples, self.indices = model, samples, indices
        self.friction: Term = model.term_sum
        model.columns.require_at_motors(np.ones(model.layout.size))
        self.coupling = model.robot.drives.coupling
        joints, terms = model.robot.joints, self.friction.parameters
        self.is_dropped: Bool[Array, "j k"] = np.array(
            [[joint_parameter(k, t.name) in dropped for t in terms] for k in range(joints)]
        ).reshape(joints, len(terms))
        inputs = model.columns.inputs_at(samples, load)
        self.inputs = inputs.require(self.friction.needs, self.friction).at_motors(self.coupling)
        self.runs = samples.run_slices() if has_memory(self.friction) else [slice(None)]
        fixed_model = replace(model, friction=None, terms=(), shape=None)
        columns = base_parameters(
            fixed_model, dropped=tuple(d for d in dropped if d in fixed_model.names)
        ).columns
        rows = SampleRows(fixed_model, samples.rows(indices), dropped=dropped)
        self._fixed = rows.block(0, len(indices))[..., columns]
        self._torque = rows.torque
        self.active = [np.flatnonzero(self.coupling[k]) for k in range(joints)]
        is_driven = self.coupling != 0.0
        self.shares_joints: Bool[Array, "j j"] = (
            is_driven.astype(int) @ is_driven.T.astype(int)
        ) > 0

    def set_weights(self, std: Float[Array, " j"]) -> None:
        """Weight rows by each joint's noise and update basis and target."""
        largest = np.abs(self._torque).max(axis=0)
        std = np.maximum(std, 1e-6 * np.maximum(largest, 1e-6 * largest.max()))
        self.factor = self.samples.keep[self.indices] / std
        weighted = self._fixed * self.factor[..., None]
        basis, _ = np.linalg.qr(weighted.reshape(-1, weighted.shape[-1]))
        self.fixed_basis = basis.reshape(weighted.shape)
        self.fixed_basis_by_motor = [
            np.ascontiguousarray(self.fixed_basis[:, joints].reshape(-1, basis.shape[1]).T)
            for joints in self.active
        ]
        y = self._torque * self.factor
        self.target = y - self.fixed_basis @ np.tensordot(y, self.fixed_basis, 2)
        self.square = float(np.sum(self.target**2))
        self.rounding = 1e-24 * self.square

    def columns(self, k: int, shape: Float[Array, " s"]) -> Float[Array, "n a c"]:
        """Weighted filtered columns of one motor, in the rows of the joints it drives."""
        inputs = self.inputs.joint(k)
        term, direct = self.friction.of_joint(k), list(self.friction.filtered_columns)
        unfiltered = np.concatenate(
            [term.columns(inputs.select_rows(run), shape) for run in self.runs]
        )
        filtered = lowpass(self.samples, unfiltered)[self.indices]
        filtered[:, direct] = unfiltered[self.indices][:, direct]
        filtered[:, self.is_dropped[k]] = 0.0
        joints = self.active[k]
        return np.asarray(
            (self.factor[:, joints] * self.coupling[k, joints])[..., None] * filtered[:, None]
        )

    def cross_products(self, k: int, a: Array, l: int, b: Array) -> Array:
        """Products a' b over the joints that two motors share."""
        if k == l:
            return np.asarray(a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1]))
        shared = np.intersect1d(self.active[k], self.active[l])
        first = np.searchsorted(self.active[k], shared)
        second = np.searchsorted(self.active[l], shared)
        return np.tensordot(a[:, first], b[:, second], ([0, 1], [0, 1]))

    def project(self, k: int, a: Float[Array, "n a c"], y: Float[Array, "n j"]) -> Array:
        """Product a' y."""
        return np.tensordot(a, y[:, self.active[k]], ([0, 1], [0, 1]))

    def project_on_fixed(self, k: int, a: Float[Array, "n a c"]) -> Float[Array, "q c"]:
        """Product Q0' a."""
        return np.asarray(self.fixed_basis_by_motor[k] @ a.reshape(-1, a.shape[-1]))


@dataclass(eq=False)
class _ShapeState:
    """Columns, coefficients and residual at given shapes.

    Attributes:
        shape: Shape parameters per motor.
        columns: Columns of each motor.
        inner: Q0' columns of each motor.
        outer: Products of the columns with the target.
        coefficients: Coefficients of the inner least squares, per motor.
        residual: Residual (sample, joint); empty in approximate states.
        cost: Sum of squared residuals.
    """

    problem: _ShapeProblem
    shape: Float[Array, "j s"]
    columns: list[Array]
    inner: list[Array]
    outer: list[Array]
    coefficients: Array = field(default_factory=lambda: np.empty(0))
    residual: Array = field(default_factory=lambda: np.empty(0))
    cost: float = np.inf
    _inverse_root: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def evaluate(cls, problem: _ShapeProblem, shape: Float[Array, "j s"]) -> _ShapeState:
        columns = [problem.columns(k, shape[k]) for k in range(len(shape))]
        inner = [problem.project_on_fixed(k, part) for k, part in enumerate(columns)]
        outer = [problem.project(k, part, problem.target) for k, part in enumerate(columns)]
        return cls(problem, shape, columns, inner, outer)._fit_coefficients()

    def with_shape(
        self, motors: tuple[int, ...], shape: Float[Array, "m s"], *, approximate: bool = False
    ) -> _ShapeState:
        """State with other shapes of some motors; `approximate` states have a cost only."""
        problem, shapes = self.problem, self.shape.copy()
        columns, inner, outer = list(self.columns), list(self.inner), list(self.outer)
        for k, motor_shape in zip(motors, shape, strict=True):
            shapes[k] = motor_shape
            columns[k] = problem.columns(k, motor_shape)
            inner[k] = problem.project_on_fixed(k, columns[k])
            outer[k] = problem.project(k, columns[k], problem.target)
        return _ShapeState(problem, shapes, columns, inner, outer)._fit_coefficients(
            approximate=approximate
        )

    def _fit_coefficients(self, *, approximate: bool = False) -> _ShapeState:
        """Inner least squares: normal equations, refined with explicit residuals."""
        problem, count = self.problem, len(self.columns)
        terms = self.columns[0].shape[-1]
        inner = np.concatenate(self.inner, -1)
        gram = -inner.T @ inner
        norms = np.empty(count * terms)
        for k in range(count):
            a = slice(k * terms, (k + 1) * terms)
            for l in np.flatnonzero(problem.shares_joints[k]).tolist():
                gram[a, l * terms : (l + 1) * terms] += problem.cross_products(
                    k, self.columns[k], l, self.columns[l]
                )
            norms[a] = np.sqrt(np.maximum(np.diag(gram)[a] + np.sum(self.inner[k] ** 2, 0), 0.0))
        size = np.sqrt(np.maximum(np.diag(gram), 0.0))
        active = size > 1e-7 * np.maximum(norms, 1e-9 * norms.max(initial=1e-300))
        scaled = gram[np.ix_(active, active)] / np.outer(size[active], size[active])
        values, vectors = np.linalg.eigh(scaled)
        positive = values > 1e-12
        inverse_root = np.zeros((len(size), int(positive.sum())))
        inverse_root[active] = (
            vectors[:, positive] / np.sqrt(values[positive]) / size[active][:, None]
        )
        self._inverse_root = inverse_root
        projected = inverse_root.T @ np.concatenate(self.outer)
        self.coefficients = inverse_root @ projected
        if approximate:
            self.cost = problem.square - float(projected @ projected)
            return self
        self.residual = problem.target - self._predict(self.coefficients)
        for _ in range(1 if values[0] > 1e-6 else 2):
            gradients = [problem.project(k, self.columns[k], self.residual) for k in range(count)]
            step = inverse_root @ (inverse_root.T @ np.concatenate(gradients))
            self.coefficients = self.coefficients + step
            self.residual = self.residual - self._predict(step)
        self.cost = float(np.sum(self.residual**2))
        return self

    def _predict(self, coefficients: Array) -> Array:
        """Columns times coefficients, without the part in Q0."""
        problem, terms = self.problem, self.columns[0].shape[-1]
        out = np.zeros_like(problem.target)
        for k, part in enumerate(self.columns):
            out[:, problem.active[k]] += part @ coefficients[k * terms : (k + 1) * terms]
        return np.asarray(out - problem.fixed_basis @ np.tensordot(out, problem.fixed_basis, 2))

    @property
    def std(self) -> Float[Array, " j"]:
        """Residual standard deviation of each joint, in torque."""
        factor = self.problem.factor
        counts = np.maximum((factor > 0).sum(axis=0), 1)
        largest = np.maximum(factor.max(axis=0), 1e-300)
        return np.asarray(np.sqrt(np.sum(self.residual**2, axis=0) / counts) / largest)

    def normal_equations(self, motors: tuple[int, ...]) -> tuple[Array, Array]:
        """Kaufman's J'J and J'r for the logarithms of some motors' shapes."""
        problem = self.problem
        terms, count = self.columns[0].shape[-1], self.shape.shape[1]
        changes: list[tuple[int, Array]] = []
        for k in motors:
            motor_coefficients = self.coefficients[k * terms : (k + 1) * terms]
            stack = []
            for m in range(count):
                perturbed = self.shape[k].astype(complex)
                perturbed[m] *= 1 + 1j * COMPLEX_STEP
                stack.append(problem.columns(k, perturbed).imag @ motor_coefficients / COMPLEX_STEP)
            changes.append((k, np.stack(stack, -1)))
        inner = np.concatenate([problem.project_on_fixed(k, d) for k, d in changes], -1)
        gram = -inner.T @ inner
        coupling = -np.concatenate(self.inner, -1).T @ inner
        for i, (k, d) in enumerate(changes):
            rows = slice(i * count, (i + 1) * count)
            for j, (l, e) in enumerate(changes):
                if problem.shares_joints[k, l]:
                    gram[rows, j * count : (j + 1) * count] += problem.cross_products(k, d, l, e)
            for l in np.flatnonzero(problem.shares_joints[k]).tolist():
                coupling[l * terms : (l + 1) * terms, rows] += problem.cross_products(
                    l, self.columns[l], k, d
                )
        projected = self._inverse_root.T @ coupling
        gram -= projected.T @ projected
        if not self.residual.size:
            target = np.concatenate([problem.project(k, d, problem.target) for k, d in changes])
            return gram, coupling.T @ self.coefficients - target
        return gram, -np.concatenate([problem.project(k, d, self.residual) for k, d in changes])


def _optimise_joints(problem: _ShapeProblem, shape: Float[Array, "j s"]) -> Float[Array, "j s"]:
    """Best shapes of each motor in turn, from the best points of its grid."""
    grid = [np.array(point) for point in product(*(s.start for s in problem.friction.shapes))]
    state = _ShapeState.evaluate(problem, shape)
    starts = max(4, len(grid) // 3)
    for k in range(len(shape)):
        candidates = [
            state.with_shape((k,), point[None], approximate=True)
            for point in [state.shape[k], *grid]
        ]
        order = np.argsort([candidate.cost for candidate in candidates])[:starts]
        refined = [
            _levenberg(candidates[i], (k,), iterations=20, approximate=True)
            for i in dict.fromkeys([0, *order.tolist()])
        ]
        state = min(refined, key=lambda candidate: candidate.cost)
    return state.shape


def _search_across_folds(state: _ShapeState) -> _ShapeState:
    """Equal or better state, from starts across every fold of every motor's curve."""
    motors = tuple(range(len(state.shape)))
    improved = False
    for k in motors:
        if state.cost < state.problem.rounding:
            break
        gram, _ = state.normal_equations((k,))
        for starts in starting_points_across_folds(
            state.shape[k], gram, state.problem.friction.shapes
        ):
            candidates = [state.with_shape((k,), start[None], approximate=True) for start in starts]
            best = min(candidates, key=lambda candidate: candidate.cost)
            refined = _levenberg(best, (k,), iterations=20, approximate=True)
            if refined.cost < state.cost * (1 - 1e-6):
                state = state.with_shape((k,), refined.shape[k][None])
                improved = True
    return _levenberg(state, motors) if improved else state


def starting_points_across_folds(
    shape: Float[Array, " s"], gram: Float[Array, "s s"], limits: tuple[ShapeParameter, ...]
) -> list[Float[Array, "t s"]]:
    """Starts on the other side of each fold, one array per pair of shapes of equal kind.

    Two equal speeds a and b have equal effect on a curve: with d = log b - log a, the Jacobian is
    singular at d = 0, curves on both sides of that fold are similar, and descent stays on its side.
    The twin of a curve has equal first-order effect and the opposite sign of d:

        slope_a da + slope_b db = 0,        db - da = -2 d.

    Args:
        shape: Shape at a minimum.
        gram: J'J at the minimum, in logarithms of the shapes.
        limits: Definitions of the shape parameters.
    """
    low, high = np.log([s.lower for s in limits]), np.log([s.upper for s in limits])
    log_shape = np.log(shape)
    out = []
    for a, b in combinations(range(len(limits)), 2):
        if limits[a].unit != limits[b].unit or not gram[a, a] * gram[b, b] > 0.0:
            continue
        ratio = gram[a, b] / gram[b, b]
        gap = log_shape[b] - log_shape[a]
        step = np.zeros_like(log_shape)
        step[a] = 2.0 * gap / (1.0 + ratio) if abs(1.0 + ratio) > 1e-3 else np.sign(gap)
        step[b] = step[a] - 2.0 * gap
        step /= max(1.0, np.abs(step).max() / MAX_FOLD_STEP)
        out.append(np.exp(np.clip(log_shape + FOLD_STEPS[:, None] * step, low, high)))
    return out


def starting_points_near_folds(
    axes: list[Float[Array, " _"]], limits: tuple[ShapeParameter, ...]
) -> Float[Array, "g s"]:
    """Points close to each fold on both sides, where minima are too narrow for a grid.

    Each pair of shapes of equal kind gets both values from the first one's axis, close together;
    the other shapes keep their axes.
    """
    points = []
    for a, b in combinations(range(len(limits)), 2):
        if limits[a].unit != limits[b].unit:
            continue
        for gap in FOLD_GAPS:
            fold_axes = [axis if i != b else (np.nan,) for i, axis in enumerate(axes)]
            part = np.array(list(product(*fold_axes)))
            part[:, b] = part[:, a] * np.exp(gap)
            points.append(part)
    return np.concatenate(points) if points else np.empty((0, len(limits)))


def _levenberg(
    state: _ShapeState, motors: tuple[int, ...], iterations: int = 60, *, approximate: bool = False
) -> _ShapeState:
    """Levenberg-Marquardt on the logarithms of some motors' shapes.

    `approximate` uses normal equations only and stops at 0.1 %: enough to compare minima.
    """
    tolerance = 1e-3 if approximate else 1e-10
    limits = state.problem.friction.shapes
    low = np.tile(np.log([s.lower for s in limits]), len(motors))
    high = np.tile(np.log([s.upper for s in limits]), len(motors))
    indices = list(motors)
    damping = 1e-3
    for _ in range(iterations):
        if state.cost < state.problem.rounding * (1e12 if approximate else 1.0):
            break
        gram, gradient = state.normal_equations(motors)
        flat = np.log(state.shape[indices]).ravel()
        diagonal = np.maximum(np.diag(gram), 1e-12 * max(np.diag(gram).max(), 1e-300))
        free = ~(((flat <= low) & (gradient > 0)) | ((flat >= high) & (gradient < 0)))
        better = None
        while damping < 1e10 and np.any(free):
            step = np.zeros_like(flat)
            matrix = gram[np.ix_(free, free)] + damping * np.diag(diagonal[free])
            # At most a factor of e per step, so that the curve does not change its character.
            step[free] = np.clip(-np.linalg.solve(matrix, gradient[free]), -1.0, 1.0)
            if np.abs(step).max() < 1e-13:
                break
            trial = np.clip(flat + step, low, high)
            candidate = state.with_shape(
                motors, np.exp(trial).reshape(len(motors), -1), approximate=approximate
            )
            if candidate.cost < state.cost:
                better = candidate
                break
            damping *= 4.0
        if better is None:
            break
        gain, size = state.cost - better.cost, np.abs(trial - flat).max()
        state = better
        damping = max(damping / 9.0, 1e-12)
        if gain < tolerance * state.cost and (approximate or size < 1e-5):
            break
    return state
