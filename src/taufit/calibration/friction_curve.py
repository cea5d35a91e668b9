"""Least squares fit of a friction curve: linear coefficients inside, shape parameters outside.

min over shapes of min over coefficients |w (columns(shape) c - torque)|,    w: weight of a pair

(variable projection)
"""

from __future__ import annotations

from itertools import product
from operator import itemgetter

import numpy as np

from taufit.calibration.friction_pairs import FrictionPairs
from taufit.core.arrays import Array, Bool, Float
from taufit.fitting.selection.shapes import starting_points_across_folds, starting_points_near_folds
from taufit.terms import LOAD, TermInput
from taufit.terms.friction import Friction

# Pairs of shape parameters with a prior ratio: equal within a factor exp(+-0.5) in two of three
# gears.
_SIMILAR_SHAPES = (
    ("coulomb_velocity", "stribeck_velocity"),
    ("load_velocity", "stribeck_velocity"),
)
_LOG_RATIO_STD = 0.5
_RANDOM_STARTS = 24


def weighted_columns(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]
) -> Array:
    """Columns of the active terms, times the weights of the pairs."""
    inputs = TermInput(pairs.velocity, load=pairs.load, temperature=pairs.temperature)
    columns = model.steady_state().columns(inputs, shape)[:, active]
    return columns if pairs.weight is None else pairs.weight[:, None] * columns


def linear_least_squares(columns: Array, y: Array) -> tuple[Array, Array, Array]:
    """Linear least squares: coefficients, residual, orthonormal columns."""
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    orthonormal, values, right = np.linalg.svd(columns / size, full_matrices=False)
    nonzero = values > 1e-12 * values[0]
    orthonormal, values, right = orthonormal[:, nonzero], values[nonzero], right[nonzero]
    projection = orthonormal.T @ y
    return right.T @ (projection / values) / size, y - orthonormal @ projection, orthonormal


def shape_jacobian(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"], c: Array
) -> Array:
    """Derivative of the curve with respect to each shape parameter, by complex step."""
    derivatives = []
    for m in range(len(shape)):
        step = shape.astype(complex)
        tiny = 1e-30 * shape[m]
        step[m] += 1j * tiny
        derivatives.append(weighted_columns(pairs, model, step, active).imag @ c / tiny)
    return np.stack(derivatives, -1) if derivatives else np.empty((len(pairs.torque), 0))


def _jacobian(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]
) -> Float[Array, "n s"]:
    """Kaufman's derivative of the residual with respect to the logarithms of the shapes."""
    c, _, orthonormal = linear_least_squares(
        weighted_columns(pairs, model, shape, active), pairs.target
    )
    slope = -shape_jacobian(pairs, model, shape, active, c) * shape
    return slope - orthonormal @ (orthonormal.T @ slope)


def refine_shape(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]
) -> tuple[Array, float]:
    """Variable projection from one start: Levenberg-Marquardt on the logarithms of the shapes."""
    from scipy.optimize import least_squares

    y = pairs.target
    if len(shape) == 0:
        return shape, _cost(pairs, model, shape, active)
    low = np.log([s.lower for s in model.shapes])
    high = np.log([s.upper for s in model.shapes])

    prior = shape_prior(pairs, model)

    def residual(logs: Array) -> Array:
        residuals = linear_least_squares(weighted_columns(pairs, model, np.exp(logs), active), y)[1]
        return np.r_[residuals, prior @ logs]

    def jacobian(logs: Array) -> Array:
        return np.vstack([_jacobian(pairs, model, np.exp(logs), active), prior])

    start = np.clip(np.log(shape), low + 1e-9, high - 1e-9)
    solution = least_squares(
        residual, start, jac=jacobian, bounds=(low, high), xtol=1e-10, ftol=1e-12, max_nfev=80
    )
    return np.exp(solution.x), float(2.0 * solution.cost)


def shape_prior(pairs: FrictionPairs, model: Friction) -> Float[Array, "g s"]:
    """Prior rows on the logarithms of the shape parameters, in standard deviations.

    Static friction decays over about the speed at which Coulomb friction rises, with load and
    without; a curve with only one of both would have a dip that no gear has. Zero where the pairs
    have no weights, since residuals then have no standard deviation.
    """
    names = [shape.name for shape in model.shapes]
    rows = np.zeros((len(_SIMILAR_SHAPES), len(names)))
    for row, (first, second) in zip(rows, _SIMILAR_SHAPES, strict=True):
        if pairs.weight is not None and first in names and second in names:
            row[names.index(first)], row[names.index(second)] = (
                1.0 / _LOG_RATIO_STD,
                -1.0 / _LOG_RATIO_STD,
            )
    return rows


def fit_from_grid(
    pairs: FrictionPairs, model: Friction, active: Bool[Array, " k"], starts_per_grid: int = 24
) -> tuple[Array, float]:
    """Fit by variable projection from the best points of a dense grid of shape parameters."""
    if not model.shapes:
        return refine_shape(pairs, model, np.empty(0), active)
    axes = [np.geomspace(s.start[0] / 3, min(s.start[-1] * 3, s.upper), 9) for s in model.shapes]
    points = np.array(list(product(*axes)))
    # Minima near a fold are narrower than the grid.
    fine_axes = [np.geomspace(axis[0], axis[-1], 13) for axis in axes[:2]] + axes[2:]
    fold_points = starting_points_near_folds(fine_axes, model.shapes)
    random_starts: list[Float[Array, " s"]] = []
    if pairs.weight is None:
        # Minima outside the grid: points spread evenly over the allowed range.
        low, high = (np.log([getattr(s, end) for s in model.shapes]) for end in ("lower", "upper"))
        random_starts = list(
            np.exp(low + (high - low) * _quasi_random_points(_RANDOM_STARTS, len(low)))
        )
    else:
        starts_per_grid //= 2
    starts = [
        *_separate_starts(pairs, model, active, points, starts_per_grid, 1.1),
        *_separate_starts(pairs, model, active, fold_points, starts_per_grid // 2, 0.5),
        *random_starts,
    ]
    solutions = sorted(
        (refine_shape(pairs, model, start, active) for start in starts), key=itemgetter(1)
    )
    best = solutions[0]
    for shape, _ in solutions[:3]:
        for mirror_shapes in starting_points_across_folds(
            shape, _gram(pairs, model, shape, active), model.shapes
        ):
            nearest = min(
                mirror_shapes, key=lambda mirror_shape: _cost(pairs, model, mirror_shape, active)
            )
            best = min(best, refine_shape(pairs, model, nearest, active), key=itemgetter(1))
    # One shape parameter may be in a local minimum while the others are right.
    for m, axis in enumerate(axes):
        line = np.tile(best[0], (len(axis), 1))
        line[:, m] = axis
        for start in line:
            best = min(best, refine_shape(pairs, model, start, active), key=itemgetter(1))
    return best


def _quasi_random_points(count: int, axes: int) -> Float[Array, "n s"]:
    """Quasi-random points in the unit cube: each axis by multiples of an irrational step."""
    steps = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])[:axes]
    return (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0


def _separate_starts(
    pairs: FrictionPairs,
    model: Friction,
    active: Bool[Array, " k"],
    points: Float[Array, "g s"],
    maximum: int,
    distance: float,
) -> list[Float[Array, " s"]]:
    """Points of low cost, far enough apart in logarithms to lie in different minima."""
    subset = np.zeros(len(pairs.torque), bool)
    subset[:: max(1, len(subset) // 100)] = True
    pairs = pairs.select(subset)
    costs = [_cost(pairs, model, point, active) for point in points]
    starts: list[Float[Array, " s"]] = []
    for i in np.argsort(costs):
        gaps = [np.abs(np.log(points[i] / other)).max() for other in starts]
        if min(gaps, default=np.inf) > distance:
            starts.append(points[i])
        if len(starts) == maximum:
            break
    return starts


def _cost(pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]) -> float:
    return float(
        np.sum(
            linear_least_squares(weighted_columns(pairs, model, shape, active), pairs.target)[1]
            ** 2
        )
    )


def _gram(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]
) -> Float[Array, "s s"]:
    """Kaufman's J'J for the logarithms of the shapes."""
    jacobian = _jacobian(pairs, model, shape, active)
    return jacobian.T @ jacobian


def fit_jointly(
    pairs: FrictionPairs, model: Friction, active: Bool[Array, " k"]
) -> tuple[Array, float]:
    """Fit coefficients and logarithms of shapes together by Levenberg-Marquardt, from one start."""
    from scipy.optimize import least_squares

    start = np.array([s.start[len(s.start) // 2] for s in model.shapes])
    count = int(active.sum())
    level = float(np.mean(np.abs(pairs.target)))

    def residual(x: Array) -> Array:
        return weighted_columns(pairs, model, np.exp(x[count:]), active) @ x[:count] - pairs.target

    def jacobian(x: Array) -> Array:
        shape = np.exp(x[count:])
        slope = shape_jacobian(pairs, model, shape, active, x[:count]) * shape
        return np.column_stack([weighted_columns(pairs, model, shape, active), slope])

    initial = np.concatenate([np.full(count, 0.1 * level), np.log(start)])
    unbounded = np.full(count, np.inf)
    bounds = (
        np.concatenate([-unbounded, np.log([s.lower for s in model.shapes])]),
        np.concatenate([unbounded, np.log([s.upper for s in model.shapes])]),
    )
    solution = least_squares(
        residual, initial, jac=jacobian, bounds=bounds, x_scale="jac", max_nfev=500
    )
    shape = np.exp(solution.x[count:])
    residuals = linear_least_squares(weighted_columns(pairs, model, shape, active), pairs.target)[1]
    return shape, float(np.sum(residuals**2))


def count_parameters(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]
) -> int:
    """Coefficients and shapes that count in the choice of a model.

    Shapes without effect on an active term are not counted. Every gear has friction that grows with
    load: the term `load` is not counted.
    """
    counted = active & np.array(
        [term.group != LOAD or bool(term.modifies) for term in model.parameters]
    )
    derivative = shape_jacobian(pairs, model, shape, counted, np.ones(int(counted.sum())))
    return int(counted.sum()) + int(np.count_nonzero(np.any(np.abs(derivative) > 0, axis=0)))


def bic(
    cost: float,
    n: int,
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    active: Array,
) -> float:
    """n ln(cost/n) + k ln n (1 + k/(2 (n - k))); infinite for as many parameters as strokes.

    The last factor corrects for few strokes, which many parameters fit by chance.
    """
    floor = 1e-24 * float(np.sum(pairs.target**2))
    # Bins of one pair of strokes share the gear's position: a stroke counts once.
    count = n if pairs.stroke is None else len(np.unique(pairs.stroke))
    k = count_parameters(pairs, model, shape, active)
    if k >= count:
        return np.inf
    small_sample_factor = 1.0 + 0.5 * k / (count - k)
    return count * np.log(max(cost, floor) / n) + small_sample_factor * k * np.log(count)


def covariance(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"], c: Array
) -> Float[Array, "m m"]:
    """Covariance of the active coefficients and the shapes; strokes are independent."""
    columns = weighted_columns(pairs, model, shape, active)
    jacobian = np.column_stack([columns, shape_jacobian(pairs, model, shape, active, c)])
    size = np.linalg.norm(jacobian, axis=0)
    # A column without effect has no scale; products of two must not underflow.
    size[size < 1e-100] = 1.0
    n, used = jacobian.shape
    # Bins of one pair of strokes share the gear's position and are not independent.
    count = n if pairs.stroke is None else max(int(pairs.stroke.max()) + 1, used + 1)
    cost = float(np.sum((pairs.target - columns @ c) ** 2))
    variance = cost / n * count / max(count - used, 1)
    gram = (jacobian / size).T @ (jacobian / size) * (count / n)
    return np.linalg.pinv(gram, rcond=1e-14) * variance / np.outer(size, size)
