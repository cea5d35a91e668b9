"""A joint's friction curve from pairs of strokes.

Nonlinear parameters by variable projection from many starts, terms dropped by BIC. A term whose
value changes sign when the fastest speed is left out has no support and is dropped too, and the
viscous part is passive: it never falls with speed, up to the speed the joint can reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from operator import itemgetter

import numpy as np
from scipy.optimize import least_squares

from taufit.arrays import Array, Bool, Float
from taufit.calibration.friction_pairs import FrictionPairs
from taufit.calibration.passive import Cone, passive_cone
from taufit.errors import PoorExcitationError, TaufitError
from taufit.friction import FrictionInput, FrictionModel, needs
from taufit.selection.shapes import beyond_folds, near_folds

METHODS = ("variable_projection", "levenberg_marquardt")
# How much extrapolated friction may differ between what the data allow.
_TRUSTED = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class FrictionFit:
    """A joint's friction curve.

    Attributes:
        model: Whose terms and shapes these are.
        coefficients, coefficient_std: Of the terms; dropped ones are 0.
        shape, shape_std: Nonlinear parameters.
        cost: Sum of squared residuals [N m squared].
        rms: Of the residuals [N m].
        correlation: Between friction measured and fitted.
        dropped: Terms the data do not support, by BIC or by leaving the fastest speed out.
        fastest: Highest speed tested [rad/s].
        warnings: What the user should know.
        full_rms: Of the residuals with all terms and no constraint [N m].
        valid_to: Speed up to which the curve is known within 15 % [rad/s]; `predict` refuses
            faster ones.
        tested_speeds: Of the pairs of strokes [rad/s].
        score: BIC, to compare models on the same pairs.
    """

    model: FrictionModel
    coefficients: Float[Array, " k"]
    coefficient_std: Float[Array, " k"]
    shape: Float[Array, " s"]
    shape_std: Float[Array, " s"]
    cost: float
    rms: float
    correlation: float
    dropped: tuple[str, ...]
    fastest: float
    warnings: tuple[str, ...]
    full_rms: float = np.nan
    valid_to: float = np.inf
    tested_speeds: Float[Array, " s"] = field(default_factory=lambda: np.empty(0))
    score: float = np.nan

    def torque(
        self,
        velocity: Float[Array, " n"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
    ) -> Float[Array, " n"]:
        """Friction at other speeds and loads, whether or not they were tested."""
        inputs = FrictionInput(velocity, load=load, temperature=temperature)
        return self.model.steady().columns(inputs, self.shape) @ self.coefficients

    def predict(
        self, velocity: Float[Array, " n"], load: Float[Array, " n"] | None = None
    ) -> Float[Array, " n"]:
        """Friction at speeds up to `valid_to`; faster ones are refused."""
        top = float(np.abs(velocity).max(initial=0.0))
        if top > self.valid_to * (1 + 1e-9):
            raise PoorExcitationError(
                f"friction at {top:.3g} rad/s is not known: tested up to {self.fastest:.3g} rad/s, "
                f"known within 15 % up to {self.valid_to:.3g} rad/s. Test faster strokes."
            )
        return self.torque(velocity, load)


def fit_friction(
    pairs: FrictionPairs,
    model: FrictionModel,
    *,
    method: str = "variable_projection",
    drop: bool = True,
    passive: bool | None = None,
    top_speed: float | None = None,
) -> FrictionFit:
    """The friction curve that explains the pairs best.

    Args:
        pairs: Friction samples of one joint.
        model: Any friction model; with memory its steady curve is fitted.
        method: "variable_projection" from the valleys of a grid, or "levenberg_marquardt" on
            all parameters at once from its middle, as the literature does.
        drop: Leave out terms without support (BIC; change of sign without the fastest speed).
        passive: Keep the viscous part from falling with speed; as `drop` where None.
        top_speed: Speed up to which it must not fall [rad/s]; twice the fastest by default.
    """
    if method not in METHODS:
        raise TaufitError(f"method {method!r} is not known: use {' or '.join(METHODS)}.")
    for name in ("velocity", "torque", "load"):
        bad = np.flatnonzero(~np.isfinite(getattr(pairs, name)))
        if len(bad):
            raise TaufitError(f"{name} of friction pair {bad[0]} is not finite. Leave it out.")
    terms = tuple(term.name for term in model.terms)
    _refuse_unloaded(pairs, model)
    live = np.ones(len(terms), bool)
    if method == "levenberg_marquardt":
        shape, cost = _all_at_once(pairs, model, live)
    else:
        shape, cost = _from_grid(pairs, model, live)
    full = float(np.sqrt(cost / len(pairs.torque)))
    if drop:
        shape, live = _supported(pairs, model, shape, live, cost)
    cone = None
    if drop if passive is None else passive:
        fastest = float(pairs.velocity.max())
        cone = passive_cone(model, max(top_speed or 0.0, 2.0 * fastest))
        shape = _within(pairs, model, shape, live, cone)
    return _result(pairs, model, shape, live, cone, full)


def _supported(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"], cost: float
) -> tuple[Array, Bool[Array, " k"]]:
    """Shape and terms left after BIC, and after the fastest speed was left out."""
    n = len(pairs.torque)
    rest = _without_fastest(pairs)
    while live.sum() > 1:
        score = _bic(cost, n, pairs, model, shape, live)
        trials = []
        for i in np.flatnonzero(live):
            fewer = live.copy()
            fewer[i] = False
            again, less = _refined(pairs, model, shape, fewer)
            trials.append((_bic(less, n, pairs, model, again, fewer), i, again, less))
        best, i, again, less = min(trials, key=lambda one: one[0])
        if best >= score:
            turned = _turned(pairs, rest, model, shape, live)
            if turned is None:
                break
            live = live.copy()
            live[turned] = False
            shape, cost = _refined(pairs, model, shape, live)
            continue
        live = live.copy()
        live[i] = False
        shape, cost = again, less
    return shape, live


def _without_fastest(pairs: FrictionPairs) -> FrictionPairs | None:
    """The pairs but those of the fastest speed; None where too few speeds are left."""
    speeds = pairs.tested_speeds
    if len(speeds) < 4:
        return None
    slower = pairs.velocity < 0.5 * (speeds[-1] + speeds[-2])
    return pairs.chosen(slower) if slower.sum() > 10 else None


def _turned(
    pairs: FrictionPairs,
    rest: FrictionPairs | None,
    model: FrictionModel,
    shape: Array,
    live: Bool[Array, " k"],
) -> int | None:
    """The highest power of speed whose coefficient changes sign without the fastest speed."""
    if rest is None:
        return None
    names = [term.name for term in model.terms]
    all_speeds, *_ = _inner(_columns(pairs, model, shape, live), pairs.torque)
    slower, *_ = _inner(_columns(rest, model, shape, live), rest.torque)
    kept = np.flatnonzero(live)
    turned = [
        int(i)
        for i, a, b in zip(kept, all_speeds, slower, strict=True)
        if names[i].startswith("viscous") and a * b < 0
    ]
    return max(turned, key=lambda i: names[i]) if turned else None


def _within(
    pairs: FrictionPairs,
    model: FrictionModel,
    shape: Array,
    live: Bool[Array, " k"],
    cone: Cone,
) -> Array:
    """The shape again where the unconstrained curve is not passive."""
    free, *_ = _inner(_columns(pairs, model, shape, live), pairs.torque)
    if len(shape) == 0 or cone.holds(free, live):
        return shape
    low = np.log([s.lower for s in model.shapes])
    high = np.log([s.upper for s in model.shapes])

    def residual(logs: Array) -> Array:
        columns = _columns(pairs, model, np.exp(logs), live)
        return columns @ cone.solve(columns, pairs.torque, live) - pairs.torque

    middle = np.array([s.start[len(s.start) // 2] for s in model.shapes])
    found = []
    for start in (shape, middle):
        inside = np.clip(np.log(start), low + 1e-9, high - 1e-9)
        found.append(least_squares(residual, inside, bounds=(low, high), max_nfev=40))
    return np.exp(min(found, key=lambda one: one.cost).x)


def _result(
    pairs: FrictionPairs,
    model: FrictionModel,
    shape: Array,
    live: Bool[Array, " k"],
    cone: Cone | None,
    full: float,
) -> FrictionFit:
    """Coefficients, their spread, how far they reach, and what to say about them."""
    terms = tuple(term.name for term in model.terms)
    columns = _columns(pairs, model, shape, live)
    c = _inner(columns, pairs.torque)[0]
    if cone is not None and not cone.holds(c, live):
        c = cone.solve(columns, pairs.torque, live)
    residual = pairs.torque - columns @ c
    cost = float(np.sum(residual**2))
    coefficients = np.zeros(len(terms))
    coefficients[live] = c
    jacobian = np.column_stack([columns, _slopes(pairs, model, shape, live, c)])
    size = np.linalg.norm(jacobian, axis=0)
    size[size == 0.0] = 1.0
    used = jacobian.shape[1]
    # Bins of one pair of strokes share the gear's position and are not independent.
    groups = used + 1 if pairs.stroke is None else int(pairs.stroke.max()) + 1
    count = len(residual) if pairs.stroke is None else max(groups, used + 1)
    variance = cost / len(residual) * count / max(count - used, 1)
    gram = (jacobian / size).T @ (jacobian / size) * (count / len(residual))
    covariance = np.linalg.pinv(gram, rcond=1e-14) * variance / np.outer(size, size)
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    coefficient_std = np.zeros(len(terms))
    coefficient_std[live] = std[: live.sum()]
    fitted = pairs.torque - residual
    fastest = float(pairs.velocity.max())
    dropped = tuple(name for name, kept in zip(terms, live, strict=True) if not kept)
    valid = _valid_to(pairs, model, shape, live, cone, covariance[: len(c), : len(c)], c)
    warnings = []
    if dropped:
        warnings.append(f"the data do not support {', '.join(dropped)}; set to zero")
    if valid < 1.99 * fastest:
        warnings.append(
            f"tested up to {fastest:.3g} rad/s; above {valid:.3g} rad/s friction is not known"
        )
    both = np.std(fitted) > 0 and np.std(pairs.torque) > 0
    return FrictionFit(
        model=model,
        coefficients=coefficients,
        coefficient_std=coefficient_std,
        shape=shape,
        shape_std=std[live.sum() :],
        cost=cost,
        rms=float(np.sqrt(cost / len(residual))),
        correlation=float(np.corrcoef(fitted, pairs.torque)[0, 1]) if both else 0.0,
        dropped=dropped,
        fastest=fastest,
        warnings=tuple(warnings),
        full_rms=full,
        valid_to=valid,
        tested_speeds=pairs.tested_speeds,
        score=_bic(cost, len(residual), pairs, model, shape, live),
    )


def _valid_to(
    pairs: FrictionPairs,
    model: FrictionModel,
    shape: Array,
    live: Bool[Array, " k"],
    cone: Cone | None,
    covariance: Float[Array, "k k"],
    c: Array,
) -> float:
    """Speed up to which the curve is known within 15 %: by its covariance and without the fastest.

    At most twice the fastest speed tested, at least that speed.
    """
    fastest = float(pairs.velocity.max())
    grid = np.linspace(fastest, 2.0 * fastest, 41)
    load = np.full_like(grid, float(np.median(np.abs(pairs.load))))
    warm = None
    if pairs.temperature is not None:
        warm = np.full_like(grid, float(np.median(pairs.temperature)))
    probe = FrictionPairs(grid, grid, load, pairs.joint, None, warm)
    columns = _columns(probe, model, shape, live)
    curve = columns @ c
    spread = 2.0 * np.sqrt(np.maximum(np.einsum("nk,kl,nl->n", columns, covariance, columns), 0.0))
    rest = _without_fastest(pairs)
    if rest is not None:
        other_columns = _columns(rest, model, shape, live)
        other = _inner(other_columns, rest.torque)[0]
        if cone is not None and not cone.holds(other, live):
            other = cone.solve(other_columns, rest.torque, live)
        spread = np.maximum(spread, np.abs(columns @ other - curve))
    unknown = spread > _TRUSTED * np.maximum(np.abs(curve), 1e-12)
    return float(grid[max(0, int(np.argmax(unknown)) - 1)] if np.any(unknown) else grid[-1])


def _refuse_unloaded(pairs: FrictionPairs, model: FrictionModel) -> None:
    if not needs(model, "load"):
        return
    level = np.sqrt(np.mean(pairs.torque**2))
    carried = np.sqrt(np.mean(pairs.load**2))
    if carried < 0.05 * level:
        raise PoorExcitationError(
            f"joint {pairs.joint} carries no load here ({carried:.2g} N m against {level:.2g} N m "
            f"of friction), as the first joint of a floor-mounted arm does: load-dependent terms "
            "have no effect. Use the model without load, e.g. stribeck, for this joint."
        )


def _columns(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"]
) -> Array:
    inputs = FrictionInput(pairs.velocity, load=pairs.load, temperature=pairs.temperature)
    return model.steady().columns(inputs, shape)[:, live]


def _inner(columns: Array, y: Array) -> tuple[Array, Array, Array]:
    """Linear least squares: coefficients, residual, orthonormal columns."""
    size = np.linalg.norm(columns, axis=0)
    size[size == 0.0] = 1.0
    left, values, right = np.linalg.svd(columns / size, full_matrices=False)
    good = values > 1e-12 * values[0]
    left, values, right = left[:, good], values[good], right[good]
    inside = left.T @ y
    return right.T @ (inside / values) / size, y - left @ inside, left


def _slopes(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"], c: Array
) -> Array:
    """Derivative of the curve with respect to every shape, exactly."""
    out = []
    for m in range(len(shape)):
        step = shape.astype(complex)
        tiny = 1e-30 * shape[m]
        step[m] += 1j * tiny
        out.append(_columns(pairs, model, step, live).imag @ c / tiny)
    return np.stack(out, -1) if out else np.empty((len(pairs.torque), 0))


def _jacobian(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"]
) -> Float[Array, "n s"]:
    """Kaufman's derivative of the residual with respect to the logarithms of the shapes."""
    c, _, left = _inner(_columns(pairs, model, shape, live), pairs.torque)
    slope = -_slopes(pairs, model, shape, live, c) * shape
    return slope - left @ (left.T @ slope)


def _refined(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"]
) -> tuple[Array, float]:
    """Variable projection from one start: Levenberg-Marquardt on the logarithms of the shapes."""
    y = pairs.torque
    if len(shape) == 0:
        return shape, _cost(pairs, model, shape, live)
    low = np.log([s.lower for s in model.shapes])
    high = np.log([s.upper for s in model.shapes])

    def residual(logs: Array) -> Array:
        return _inner(_columns(pairs, model, np.exp(logs), live), y)[1]

    def jacobian(logs: Array) -> Array:
        return _jacobian(pairs, model, np.exp(logs), live)

    inside = np.clip(np.log(shape), low + 1e-9, high - 1e-9)
    found = least_squares(
        residual, inside, jac=jacobian, bounds=(low, high), xtol=1e-10, ftol=1e-12, max_nfev=80
    )
    return np.exp(found.x), float(2.0 * found.cost)


def _from_grid(
    pairs: FrictionPairs, model: FrictionModel, live: Bool[Array, " k"], most: int = 24
) -> tuple[Array, float]:
    """Variable projection from good points all over a dense grid."""
    if not model.shapes:
        return _refined(pairs, model, np.empty(0), live)
    axes = [np.geomspace(s.start[0] / 3, min(s.start[-1] * 3, s.upper), 9) for s in model.shapes]
    points = np.array(list(product(*axes)))
    # Valleys beside a fold are thinner than the grid.
    finer = [np.geomspace(axis[0], axis[-1], 13) for axis in axes[:2]] + axes[2:]
    thin = near_folds(finer, model.shapes)
    starts = [
        *_apart(pairs, model, live, points, most, 1.1),
        *_apart(pairs, model, live, thin, most // 2, 0.5),
    ]
    found = sorted((_refined(pairs, model, start, live) for start in starts), key=itemgetter(1))
    best = found[0]
    for shape, _ in found[:3]:
        for twins in beyond_folds(shape, _gram(pairs, model, shape, live), model.shapes):
            nearest = min(twins, key=lambda twin: _cost(pairs, model, twin, live))
            best = min(best, _refined(pairs, model, nearest, live), key=itemgetter(1))
    # A shape may sit in a valley of its own while the others are where they belong.
    for m, axis in enumerate(axes):
        line = np.tile(best[0], (len(axis), 1))
        line[:, m] = axis
        for start in line:
            best = min(best, _refined(pairs, model, start, live), key=itemgetter(1))
    return best


def _apart(
    pairs: FrictionPairs,
    model: FrictionModel,
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


def _cost(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"]
) -> float:
    return float(np.sum(_inner(_columns(pairs, model, shape, live), pairs.torque)[1] ** 2))


def _gram(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"]
) -> Float[Array, "s s"]:
    """Kaufman's J'J for the logarithms of the shapes."""
    jacobian = _jacobian(pairs, model, shape, live)
    return jacobian.T @ jacobian


def _all_at_once(
    pairs: FrictionPairs, model: FrictionModel, live: Bool[Array, " k"]
) -> tuple[Array, float]:
    """Levenberg-Marquardt on coefficients and logarithms of shapes together, from one start."""
    start = np.array([s.start[len(s.start) // 2] for s in model.shapes])
    count = int(live.sum())
    level = float(np.mean(np.abs(pairs.torque)))

    def residual(x: Array) -> Array:
        return _columns(pairs, model, np.exp(x[count:]), live) @ x[:count] - pairs.torque

    def jacobian(x: Array) -> Array:
        shape = np.exp(x[count:])
        slope = _slopes(pairs, model, shape, live, x[:count]) * shape
        return np.column_stack([_columns(pairs, model, shape, live), slope])

    first = np.concatenate([np.full(count, 0.1 * level), np.log(start)])
    free = np.full(count, np.inf)
    bounds = (
        np.concatenate([-free, np.log([s.lower for s in model.shapes])]),
        np.concatenate([free, np.log([s.upper for s in model.shapes])]),
    )
    found = least_squares(residual, first, jac=jacobian, bounds=bounds, x_scale="jac", max_nfev=500)
    shape = np.exp(found.x[count:])
    left = _inner(_columns(pairs, model, shape, live), pairs.torque)[1]
    return shape, float(np.sum(left**2))


def _bic(
    cost: float, n: int, pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Array
) -> float:
    """n ln(cost/n) + k ln n, shapes that move no remaining term not counted."""
    columns = _columns(pairs, model, shape, live)
    c, *_ = _inner(columns, pairs.torque)
    slopes = _slopes(pairs, model, shape, live, np.ones(len(c)))
    shapes = int(np.count_nonzero(np.any(np.abs(slopes) > 0, axis=0)))
    floor = 1e-24 * float(np.sum(pairs.torque**2))
    # Bins of one pair of strokes share the gear's position: a stroke counts once.
    count = n if pairs.stroke is None else len(np.unique(pairs.stroke))
    return count * np.log(max(cost, floor) / n) + (int(live.sum()) + shapes) * np.log(count)
