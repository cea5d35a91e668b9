"""Friction shapes (exponents, Stribeck velocities, widths) by variable projection.

Given shapes s, all coefficients follow by linear least squares; what is left is

    r(s) = (1 - P(s)) y,      P(s) the projection on the columns [W0, F(s)],

a function of the shapes alone. W0 (links, rotors, offsets) ties the joints together, so all joints'
shapes are found at once. Columns are analytic in the shapes: their derivatives come exactly from a
complex step, and Kaufman's approximation gives the Jacobian

    dr/ds_m = -(1 - P) (dF/ds_m) c.

Work is done on logarithms of the shapes, started from a grid that is searched joint by joint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.parameters import joint_parameter
from taufit.dynamics.base_parameters import base_parameters
from taufit.model.torque_model import TorqueModel
from taufit.regression.rows import Load, SampleRows
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples
from taufit.terms import ShapeParameter, Term, has_memory

STEP = 1e-30
MOST_SAMPLES = 3000
# How far to look beyond a fold: shares of the way to the twin, itself at most so far away.
FOLDS = np.array([0.7, 1.0, 1.4, 2.0])
FARTHEST = 2.0
# How close to a fold to start, in logarithms.
GAPS = (-0.3, 0.3)


def fit_shapes(
    model: TorqueModel,
    samples: Samples,
    *,
    load: Load = None,
    dropped: tuple[str, ...] = (),
    search: bool | None = None,
    rounds: int = 3,
) -> Float[Array, "j s"]:
    """Shapes that leave least torque unexplained, for every joint.

    Joint after joint, the best points of the grid are refined with the other joints as they are;
    then all joints together. Rows are weighted by what their joint's best fit leaves over.

    Args:
        model: Its shape is where the search begins; without one, in the middle of the grid.
        samples: Motion and torque.
        load: Torque of the gears for load-dependent friction.
        dropped: Parameters held at zero.
        search: Whether to search the grid; by default where the model has no shape.
        rounds: Most rounds of joint-wise and common refinement.
    """
    joints = model.robot.joints
    stride = max(1, -(-len(samples) // MOST_SAMPLES))
    carried = SampleRows(model, samples, load=load).gear_load
    scene = _ShapeProblem(model, samples, carried, dropped, np.arange(0, len(samples), stride))
    shape = model.joint_shape.astype(float)
    search = model.shape is None if search is None else search
    scene.weigh(np.ones(joints))
    scene.weigh(_State.at(scene, shape).std)
    everyone = tuple(range(joints))

    if search:
        for _ in range(2):
            shape = _joint_by_joint(scene, shape)
            scene.weigh(_State.at(scene, shape).std)
    best = np.inf
    for _ in range(rounds):
        state = _across_folds(_levenberg(_State.at(scene, shape), everyone))
        shape = state.shape
        if not search or state.cost > best * (1 - 1e-6) or state.cost < scene.rounding:
            break
        best = state.cost
        shape = _joint_by_joint(scene, shape)
    return shape


class _ShapeProblem:
    """What does not change while shapes are searched: samples, loads, fixed columns, weights.

    Attributes:
        factor: Weight of every picked sample and joint; 0 where it does not count.
        frame: Q0, an orthonormal basis of the weighted fixed columns, (sample, joint, column).
        target: Weighted torque without its part in Q0, (sample, joint).
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        load: Float[Array, "n j"] | None,
        dropped: tuple[str, ...],
        pick: Int[Array, " k"],
    ) -> None:
        self.model, self.samples, self.pick = model, samples, pick
        self.friction: Term = model.term_sum
        model.columns.require_at_motors(np.ones(model.layout.size))
        self.coupling = model.robot.drives.coupling
        joints, terms = model.robot.joints, self.friction.parameters
        self.gone: Bool[Array, "j k"] = np.array(
            [[joint_parameter(k, t.name) in dropped for t in terms] for k in range(joints)]
        ).reshape(joints, len(terms))
        inputs = model.columns.inputs_at(samples, load)
        self.inputs = inputs.require(self.friction.needs, self.friction).at_motors(self.coupling)
        self.runs = samples.run_slices() if has_memory(self.friction) else [slice(None)]
        plain = replace(model, friction=None, terms=(), shape=None)
        columns = base_parameters(
            plain, dropped=tuple(d for d in dropped if d in plain.names)
        ).columns
        rows = SampleRows(plain, samples.rows(pick), dropped=dropped)
        self._fixed = rows.block(0, len(pick))[..., columns]
        self._torque = rows.torque
        self.active = [np.flatnonzero(self.coupling[k]) for k in range(joints)]
        driven = self.coupling != 0.0
        self.shares: Bool[Array, "j j"] = (driven.astype(int) @ driven.T.astype(int)) > 0

    def weigh(self, std: Float[Array, " j"]) -> None:
        """Rows in units of each joint's noise; frame and target follow."""
        largest = np.abs(self._torque).max(axis=0)
        std = np.maximum(std, 1e-6 * np.maximum(largest, 1e-6 * largest.max()))
        self.factor = self.samples.keep[self.pick] / std
        weighted = self._fixed * self.factor[..., None]
        basis, _ = np.linalg.qr(weighted.reshape(-1, weighted.shape[-1]))
        self.frame = basis.reshape(weighted.shape)
        self.frames = [
            np.ascontiguousarray(self.frame[:, own].reshape(-1, basis.shape[1]).T)
            for own in self.active
        ]
        y = self._torque * self.factor
        self.target = y - self.frame @ np.tensordot(y, self.frame, 2)
        self.square = float(np.sum(self.target**2))
        self.rounding = 1e-24 * self.square

    def columns(self, k: int, shape: Float[Array, " s"]) -> Float[Array, "n a c"]:
        """Weighted filtered columns of one motor, in the rows of the joints it drives."""
        mine = self.inputs.joint(k)
        term, direct = self.friction.of_joint(k), list(self.friction.filtered_columns)
        made = np.concatenate([term.columns(mine.span(run), shape) for run in self.runs])
        own = lowpass(self.samples, made)[self.pick]
        own[:, direct] = made[self.pick][:, direct]
        own[:, self.gone[k]] = 0.0
        joints = self.active[k]
        return np.asarray(
            (self.factor[:, joints] * self.coupling[k, joints])[..., None] * own[:, None]
        )

    def cross(self, k: int, a: Array, l: int, b: Array) -> Array:
        """a' b over the rows two motors share."""
        if k == l:
            return np.asarray(a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1]))
        shared = np.intersect1d(self.active[k], self.active[l])
        first = np.searchsorted(self.active[k], shared)
        second = np.searchsorted(self.active[l], shared)
        return np.tensordot(a[:, first], b[:, second], ([0, 1], [0, 1]))

    def against(self, k: int, a: Float[Array, "n a c"], y: Float[Array, "n j"]) -> Array:
        """a' y."""
        return np.tensordot(a, y[:, self.active[k]], ([0, 1], [0, 1]))

    def inside(self, k: int, a: Float[Array, "n a c"]) -> Float[Array, "q c"]:
        """Q0' a."""
        return np.asarray(self.frames[k] @ a.reshape(-1, a.shape[-1]))


@dataclass(eq=False)
class _State:
    """Columns, coefficients and residual at some shapes.

    Attributes:
        shape: Per motor.
        own: Columns of each motor.
        inner: Q0' columns of each motor.
        outer: Columns' products with the target.
        coefficients: Per motor, of the inner least squares.
        residual: (sample, joint); empty in rough states.
        cost: Sum of its squares.
    """

    scene: _ShapeProblem
    shape: Float[Array, "j s"]
    own: list[Array]
    inner: list[Array]
    outer: list[Array]
    coefficients: Array = field(default_factory=lambda: np.empty(0))
    residual: Array = field(default_factory=lambda: np.empty(0))
    cost: float = np.inf
    _solve: Array = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def at(cls, scene: _ShapeProblem, shape: Float[Array, "j s"]) -> _State:
        own = [scene.columns(k, shape[k]) for k in range(len(shape))]
        inner = [scene.inside(k, part) for k, part in enumerate(own)]
        outer = [scene.against(k, part, scene.target) for k, part in enumerate(own)]
        return cls(scene, shape, own, inner, outer)._fitted()

    def moved(
        self, motors: tuple[int, ...], shape: Float[Array, "m s"], *, rough: bool = False
    ) -> _State:
        """The same with other shapes of some motors; `rough` states know their cost alone."""
        scene, every = self.scene, self.shape.copy()
        own, inner, outer = list(self.own), list(self.inner), list(self.outer)
        for k, new in zip(motors, shape, strict=True):
            every[k] = new
            own[k] = scene.columns(k, new)
            inner[k] = scene.inside(k, own[k])
            outer[k] = scene.against(k, own[k], scene.target)
        return _State(scene, every, own, inner, outer)._fitted(rough=rough)

    def _fitted(self, *, rough: bool = False) -> _State:
        """Inner least squares: directions from normal equations, digits from explicit residuals."""
        scene, count = self.scene, len(self.own)
        terms = self.own[0].shape[-1]
        together = np.concatenate(self.inner, -1)
        gram = -together.T @ together
        whole = np.empty(count * terms)
        for k in range(count):
            a = slice(k * terms, (k + 1) * terms)
            for l in np.flatnonzero(scene.shares[k]).tolist():
                gram[a, l * terms : (l + 1) * terms] += scene.cross(k, self.own[k], l, self.own[l])
            whole[a] = np.sqrt(np.maximum(np.diag(gram)[a] + np.sum(self.inner[k] ** 2, 0), 0.0))
        size = np.sqrt(np.maximum(np.diag(gram), 0.0))
        live = size > 1e-7 * np.maximum(whole, 1e-9 * whole.max(initial=1e-300))
        scaled = gram[np.ix_(live, live)] / np.outer(size[live], size[live])
        values, vectors = np.linalg.eigh(scaled)
        good = values > 1e-12
        half = np.zeros((len(size), int(good.sum())))
        half[live] = vectors[:, good] / np.sqrt(values[good]) / size[live][:, None]
        self._solve = half
        right = half.T @ np.concatenate(self.outer)
        self.coefficients = half @ right
        if rough:
            self.cost = scene.square - float(right @ right)
            return self
        self.residual = scene.target - self._explained(self.coefficients)
        for _ in range(1 if values[0] > 1e-6 else 2):
            rest = [scene.against(k, self.own[k], self.residual) for k in range(count)]
            step = half @ (half.T @ np.concatenate(rest))
            self.coefficients = self.coefficients + step
            self.residual = self.residual - self._explained(step)
        self.cost = float(np.sum(self.residual**2))
        return self

    def _explained(self, coefficients: Array) -> Array:
        """Columns times coefficients, without the part in Q0."""
        scene, terms = self.scene, self.own[0].shape[-1]
        out = np.zeros_like(scene.target)
        for k, part in enumerate(self.own):
            out[:, scene.active[k]] += part @ coefficients[k * terms : (k + 1) * terms]
        return np.asarray(out - scene.frame @ np.tensordot(out, scene.frame, 2))

    @property
    def std(self) -> Float[Array, " j"]:
        """Residual standard deviation of each joint, in torque."""
        factor = self.scene.factor
        counts = np.maximum((factor > 0).sum(axis=0), 1)
        largest = np.maximum(factor.max(axis=0), 1e-300)
        return np.asarray(np.sqrt(np.sum(self.residual**2, axis=0) / counts) / largest)

    def normal(self, motors: tuple[int, ...]) -> tuple[Array, Array]:
        """Kaufman's J'J and J'r for the logarithms of some motors' shapes."""
        scene = self.scene
        terms, count = self.own[0].shape[-1], self.shape.shape[1]
        changes: list[tuple[int, Array]] = []
        for k in motors:
            own = self.coefficients[k * terms : (k + 1) * terms]
            stack = []
            for m in range(count):
                stepped = self.shape[k].astype(complex)
                stepped[m] *= 1 + 1j * STEP
                stack.append(scene.columns(k, stepped).imag @ own / STEP)
            changes.append((k, np.stack(stack, -1)))
        inner = np.concatenate([scene.inside(k, d) for k, d in changes], -1)
        gram = -inner.T @ inner
        across = -np.concatenate(self.inner, -1).T @ inner
        for i, (k, d) in enumerate(changes):
            at = slice(i * count, (i + 1) * count)
            for j, (l, e) in enumerate(changes):
                if scene.shares[k, l]:
                    gram[at, j * count : (j + 1) * count] += scene.cross(k, d, l, e)
            for l in np.flatnonzero(scene.shares[k]).tolist():
                across[l * terms : (l + 1) * terms, at] += scene.cross(l, self.own[l], k, d)
        projected = self._solve.T @ across
        gram -= projected.T @ projected
        if not self.residual.size:
            target = np.concatenate([scene.against(k, d, scene.target) for k, d in changes])
            return gram, across.T @ self.coefficients - target
        return gram, -np.concatenate([scene.against(k, d, self.residual) for k, d in changes])


def _joint_by_joint(scene: _ShapeProblem, shape: Float[Array, "j s"]) -> Float[Array, "j s"]:
    """The best shapes of each motor in turn, from the best points of its grid."""
    grid = [np.array(point) for point in product(*(s.start for s in scene.friction.shapes))]
    state = _State.at(scene, shape)
    starts = max(4, len(grid) // 3)
    for k in range(len(shape)):
        tried = [state.moved((k,), point[None], rough=True) for point in [state.shape[k], *grid]]
        order = np.argsort([one.cost for one in tried])[:starts]
        found = [
            _levenberg(tried[i], (k,), most=20, rough=True)
            for i in dict.fromkeys([0, *order.tolist()])
        ]
        state = min(found, key=lambda one: one.cost)
    return state.shape


def _across_folds(state: _State) -> _State:
    """The same or better, from the far side of every fold of every motor's curve."""
    motors = tuple(range(len(state.shape)))
    moved = False
    for k in motors:
        if state.cost < state.scene.rounding:
            break
        gram, _ = state.normal((k,))
        for starts in beyond_folds(state.shape[k], gram, state.scene.friction.shapes):
            tried = [state.moved((k,), start[None], rough=True) for start in starts]
            best = min(tried, key=lambda one: one.cost)
            found = _levenberg(best, (k,), most=20, rough=True)
            if found.cost < state.cost * (1 - 1e-6):
                state = state.moved((k,), found.shape[k][None])
                moved = True
    return _levenberg(state, motors) if moved else state


def beyond_folds(
    shape: Float[Array, " s"], gram: Float[Array, "s s"], limits: tuple[ShapeParameter, ...]
) -> list[Float[Array, "t s"]]:
    """Starts on the other side of each fold, as one array for each pair of alike shapes.

    Two speeds a and b that are equal move a curve alike: with d = log b - log a, the Jacobian is
    singular on d = 0, curves on both sides of that fold look alike, and descent stays on its
    side. The twin of a curve keeps what the slopes say to first order while d changes its sign:

        slope_a da + slope_b db = 0,        db - da = -2 d.

    Args:
        shape: A minimum.
        gram: J'J there, in logarithms of the shapes.
        limits: What the shapes are.
    """
    low, high = np.log([s.lower for s in limits]), np.log([s.upper for s in limits])
    at = np.log(shape)
    out = []
    for a, b in combinations(range(len(limits)), 2):
        if limits[a].unit != limits[b].unit or not gram[a, a] * gram[b, b] > 0.0:
            continue
        ratio = gram[a, b] / gram[b, b]
        gap = at[b] - at[a]
        step = np.zeros_like(at)
        step[a] = 2.0 * gap / (1.0 + ratio) if abs(1.0 + ratio) > 1e-3 else np.sign(gap)
        step[b] = step[a] - 2.0 * gap
        step /= max(1.0, np.abs(step).max() / FARTHEST)
        out.append(np.exp(np.clip(at + FOLDS[:, None] * step, low, high)))
    return out


def near_folds(
    axes: list[Float[Array, " l"]], limits: tuple[ShapeParameter, ...]
) -> Float[Array, "g s"]:
    """Points close to each fold on both of its sides, where valleys are too thin for a grid.

    Each pair of alike shapes gets both values from the first one's axis, close together; the
    other shapes keep their axes.
    """
    points = []
    for a, b in combinations(range(len(limits)), 2):
        if limits[a].unit != limits[b].unit:
            continue
        for gap in GAPS:
            close = [axis if i != b else (np.nan,) for i, axis in enumerate(axes)]
            part = np.array(list(product(*close)))
            part[:, b] = part[:, a] * np.exp(gap)
            points.append(part)
    return np.concatenate(points) if points else np.empty((0, len(limits)))


def _levenberg(
    state: _State, motors: tuple[int, ...], most: int = 60, *, rough: bool = False
) -> _State:
    """Levenberg-Marquardt on the logarithms of some motors' shapes.

    `rough` stays with normal equations and stops at a per mille: enough to tell valleys apart.
    """
    enough = 1e-3 if rough else 1e-10
    limits = state.scene.friction.shapes
    low = np.tile(np.log([s.lower for s in limits]), len(motors))
    high = np.tile(np.log([s.upper for s in limits]), len(motors))
    chosen = list(motors)
    damping = 1e-3
    for _ in range(most):
        if state.cost < state.scene.rounding * (1e12 if rough else 1.0):
            break
        gram, gradient = state.normal(motors)
        flat = np.log(state.shape[chosen]).ravel()
        diagonal = np.maximum(np.diag(gram), 1e-12 * max(np.diag(gram).max(), 1e-300))
        free = ~(((flat <= low) & (gradient > 0)) | ((flat >= high) & (gradient < 0)))
        better = None
        while damping < 1e10 and np.any(free):
            step = np.zeros_like(flat)
            matrix = gram[np.ix_(free, free)] + damping * np.diag(diagonal[free])
            # A factor of e per step is far enough for a curve that is about to change its kind.
            step[free] = np.clip(-np.linalg.solve(matrix, gradient[free]), -1.0, 1.0)
            if np.abs(step).max() < 1e-13:
                break
            trial = np.clip(flat + step, low, high)
            tried = state.moved(motors, np.exp(trial).reshape(len(motors), -1), rough=rough)
            if tried.cost < state.cost:
                better = tried
                break
            damping *= 4.0
        if better is None:
            break
        gain, size = state.cost - better.cost, np.abs(trial - flat).max()
        state = better
        damping = max(damping / 9.0, 1e-12)
        if gain < enough * state.cost and (rough or size < 1e-5):
            break
    return state
