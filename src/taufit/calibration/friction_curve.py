"""Least squares of a friction curve: linear terms inside, shapes outside (variable projection).

min over shapes of min over coefficients |w (columns(shape) c - torque)|,    w: of a pair
"""

from __future__ import annotations

from itertools import product
from operator import itemgetter

import numpy as np

from taufit.calibration.friction_pairs import FrictionPairs
from taufit.core.arrays import Array, Bool, Float
from taufit.fitting.selection.shapes import starts_across_folds, starts_near_folds
from taufit.terms import LOAD, TermInput
from taufit.terms.friction import Friction

# Shapes that differ by a factor exp(+-0.5) in about two of three gears.
_ALIKE = (("coulomb_velocity", "stribeck_velocity"), ("load_velocity", "stribeck_velocity"))
_RATIO = 0.5
_FAR = 24


def columns_of(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"]
) -> Array:
    """Columns of the terms in use, weighted as the pairs are."""
    inputs = TermInput(pairs.velocity, load=pairs.load, temperature=pairs.temperature)
    columns = model.steady().columns(inputs, shape)[:, live]
    return columns if pairs.weight is None else pairs.weight[:, None] * columns


def projected(columns: Array, y: Array) -> tuple[Array, Array, Array]:
    """Linear least squares: coefficients, residual, orthonormal columns."""
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    left, values, right = np.linalg.svd(columns / size, full_matrices=False)
    good = values > 1e-12 * values[0]
    left, values, right = left[:, good], values[good], right[good]
    inside = left.T @ y
    return right.T @ (inside / values) / size, y - left @ inside, left


def shape_jacobian(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"], c: Array
) -> Array:
    """Derivative of the curve with respect to every shape, exactly."""
    out = []
    for m in range(len(shape)):
        step = shape.astype(complex)
        tiny = 1e-30 * shape[m]
        step[m] += 1j * tiny
        out.append(columns_of(pairs, model, step, live).imag @ c / tiny)
    return np.stack(out, -1) if out else np.empty((len(pairs.torque), 0))


def _jacobian(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"]
) -> Float[Array, "n s"]:
    """Kaufman's derivative of the residual with respect to the logarithms of the shapes."""
    c, _, left = projected(columns_of(pairs, model, shape, live), pairs.target)
    slope = -shape_jacobian(pairs, model, shape, live, c) * shape
    return slope - left @ (left.T @ slope)


def refine_shape(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"]
) -> tuple[Array, float]:
    """Variable projection from one start: Levenberg-Marquardt on the logarithms of the shapes."""
    from scipy.optimize import least_squares

    y = pairs.target
    if len(shape) == 0:
        return shape, _cost(pairs, model, shape, live)
    low = np.log([s.lower for s in model.shapes])
    high = np.log([s.upper for s in model.shapes])

    expected = _expected(pairs, model)

    def residual(logs: Array) -> Array:
        left = projected(columns_of(pairs, model, np.exp(logs), live), y)[1]
        return np.r_[left, expected @ logs]

    def jacobian(logs: Array) -> Array:
        return np.vstack([_jacobian(pairs, model, np.exp(logs), live), expected])

    inside = np.clip(np.log(shape), low + 1e-9, high - 1e-9)
    found = least_squares(
        residual, inside, jac=jacobian, bounds=(low, high), xtol=1e-10, ftol=1e-12, max_nfev=80
    )
    return np.exp(found.x), float(2.0 * found.cost)


def _expected(pairs: FrictionPairs, model: Friction) -> Float[Array, "g s"]:
    """Rows on the logarithms of the shapes: what is believed of them, in standard deviations.

    Static friction fades over about the speed at which Coulomb friction comes up, with load and
    without; a curve with one and not yet the other has a dip no gear has. Only where the pairs have
    weights, so that a standard deviation means something.
    """
    names = [shape.name for shape in model.shapes]
    out = np.zeros((len(_ALIKE), len(names)))
    for row, (one, other) in zip(out, _ALIKE, strict=True):
        if pairs.weight is not None and one in names and other in names:
            row[names.index(one)], row[names.index(other)] = 1.0 / _RATIO, -1.0 / _RATIO
    return out


def from_grid(
    pairs: FrictionPairs, model: Friction, live: Bool[Array, " k"], most: int = 24
) -> tuple[Array, float]:
    """Variable projection from good points all over a dense grid."""
    if not model.shapes:
        return refine_shape(pairs, model, np.empty(0), live)
    axes = [np.geomspace(s.start[0] / 3, min(s.start[-1] * 3, s.upper), 9) for s in model.shapes]
    points = np.array(list(product(*axes)))
    # Valleys beside a fold are thinner than the grid.
    finer = [np.geomspace(axis[0], axis[-1], 13) for axis in axes[:2]] + axes[2:]
    thin = starts_near_folds(finer, model.shapes)
    far: list[Float[Array, " s"]] = []
    if pairs.weight is None:
        # Valleys outside the grid: points spread evenly over all that is allowed.
        low, high = (np.log([getattr(s, end) for s in model.shapes]) for end in ("lower", "upper"))
        far = list(np.exp(low + (high - low) * _evenly(_FAR, len(low))))
    else:
        most //= 2
    starts = [
        *_apart(pairs, model, live, points, most, 1.1),
        *_apart(pairs, model, live, thin, most // 2, 0.5),
        *far,
    ]
    found = sorted((refine_shape(pairs, model, start, live) for start in starts), key=itemgetter(1))
    best = found[0]
    for shape, _ in found[:3]:
        for twins in starts_across_folds(shape, _gram(pairs, model, shape, live), model.shapes):
            nearest = min(twins, key=lambda twin: _cost(pairs, model, twin, live))
            best = min(best, refine_shape(pairs, model, nearest, live), key=itemgetter(1))
    # A shape may sit in a valley of its own while the others are where they belong.
    for m, axis in enumerate(axes):
        line = np.tile(best[0], (len(axis), 1))
        line[:, m] = axis
        for start in line:
            best = min(best, refine_shape(pairs, model, start, live), key=itemgetter(1))
    return best


def _evenly(count: int, axes: int) -> Float[Array, "n s"]:
    """Points in the unit cube, each axis by multiples of an irrational step."""
    steps = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])[:axes]
    return (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0


def _apart(
    pairs: FrictionPairs,
    model: Friction,
    live: Bool[Array, " k"],
    points: Float[Array, "g s"],
    most: int,
    distance: float,
) -> list[Float[Array, " s"]]:
    """Good points, far enough apart in logarithms to lie in different valleys."""
    few = np.zeros(len(pairs.torque), bool)
    few[:: max(1, len(few) // 100)] = True
    pairs = pairs.chosen(few)
    costs = [_cost(pairs, model, point, live) for point in points]
    chosen: list[Float[Array, " s"]] = []
    for i in np.argsort(costs):
        gaps = [np.abs(np.log(points[i] / other)).max() for other in chosen]
        if min(gaps, default=np.inf) > distance:
            chosen.append(points[i])
        if len(chosen) == most:
            break
    return chosen


def _cost(pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"]) -> float:
    return float(np.sum(projected(columns_of(pairs, model, shape, live), pairs.target)[1] ** 2))


def _gram(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"]
) -> Float[Array, "s s"]:
    """Kaufman's J'J for the logarithms of the shapes."""
    jacobian = _jacobian(pairs, model, shape, live)
    return jacobian.T @ jacobian


def fit_jointly(
    pairs: FrictionPairs, model: Friction, live: Bool[Array, " k"]
) -> tuple[Array, float]:
    """Levenberg-Marquardt on coefficients and logarithms of shapes together, from one start."""
    from scipy.optimize import least_squares

    start = np.array([s.start[len(s.start) // 2] for s in model.shapes])
    count = int(live.sum())
    level = float(np.mean(np.abs(pairs.target)))

    def residual(x: Array) -> Array:
        return columns_of(pairs, model, np.exp(x[count:]), live) @ x[:count] - pairs.target

    def jacobian(x: Array) -> Array:
        shape = np.exp(x[count:])
        slope = shape_jacobian(pairs, model, shape, live, x[:count]) * shape
        return np.column_stack([columns_of(pairs, model, shape, live), slope])

    first = np.concatenate([np.full(count, 0.1 * level), np.log(start)])
    free = np.full(count, np.inf)
    bounds = (
        np.concatenate([-free, np.log([s.lower for s in model.shapes])]),
        np.concatenate([free, np.log([s.upper for s in model.shapes])]),
    )
    found = least_squares(residual, first, jac=jacobian, bounds=bounds, x_scale="jac", max_nfev=500)
    shape = np.exp(found.x[count:])
    left = projected(columns_of(pairs, model, shape, live), pairs.target)[1]
    return shape, float(np.sum(left**2))


def bic(
    cost: float, n: int, pairs: FrictionPairs, model: Friction, shape: Array, live: Array
) -> float:
    """n ln(cost/n) + k ln n (1 + k/(2 (n - k))); infinite for as many parameters as strokes.

    The last factor matters for a handful of strokes, which many parameters fit by chance.
    Shapes that move no remaining term are not counted.
    Friction that grows with load is expected of every gear: the term `load` is not counted.
    """
    counted = live & np.array([one.group != LOAD or bool(one.modifies) for one in model.parameters])
    moved = shape_jacobian(pairs, model, shape, counted, np.ones(int(counted.sum())))
    shapes = int(np.count_nonzero(np.any(np.abs(moved) > 0, axis=0)))
    floor = 1e-24 * float(np.sum(pairs.target**2))
    # Bins of one pair of strokes share the gear's position: a stroke counts once.
    count = n if pairs.stroke is None else len(np.unique(pairs.stroke))
    k = int(counted.sum()) + shapes
    if k >= count:
        return np.inf
    few = 1.0 + 0.5 * k / (count - k)
    return count * np.log(max(cost, floor) / n) + few * k * np.log(count)


def covariance(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"], c: Array
) -> Float[Array, "m m"]:
    """Of the live coefficients, then the shapes, from the residuals; strokes are independent."""
    columns = columns_of(pairs, model, shape, live)
    jacobian = np.column_stack([columns, shape_jacobian(pairs, model, shape, live, c)])
    size = np.linalg.norm(jacobian, axis=0)
    size[size == 0.0] = 1.0
    n, used = jacobian.shape
    # Bins of one pair of strokes share the gear's position and are not independent.
    count = n if pairs.stroke is None else max(int(pairs.stroke.max()) + 1, used + 1)
    cost = float(np.sum((pairs.target - columns @ c) ** 2))
    variance = cost / n * count / max(count - used, 1)
    gram = (jacobian / size).T @ (jacobian / size) * (count / n)
    return np.linalg.pinv(gram, rcond=1e-14) * variance / np.outer(size, size)
