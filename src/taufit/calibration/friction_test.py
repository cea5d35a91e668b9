"""Friction of one joint from runs at constant velocity, forwards and backwards.

At equal position and opposite velocity the links' torque is the same and friction is opposite:

    friction = (tau_forward - tau_backward) / 2,        load = (tau_forward + tau_backward) / 2.

Any offset cancels in the first and stays in the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np
from scipy.optimize import least_squares

from taufit.arrays import Array, Bool, Float
from taufit.errors import PoorExcitationError, TaufitError
from taufit.friction import FrictionInput, FrictionModel, needs
from taufit.selection.shapes import beyond_folds, near_folds
from taufit.signals.samples import Samples

METHODS = ("variable_projection", "levenberg_marquardt")


@dataclass(frozen=True, slots=True, eq=False)
class FrictionPairs:
    """Friction of one joint at positive speeds, and the load it was measured under.

    Attributes:
        velocity: Speed of each pair [rad/s].
        torque: Friction [N m].
        load: Torque of the links [N m].
        joint: Number of the joint, from 1, for messages.
    """

    velocity: Float[Array, " n"]
    torque: Float[Array, " n"]
    load: Float[Array, " n"]
    joint: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class FrictionFit:
    """A joint's friction curve.

    Attributes:
        model: Whose terms and shapes these are.
        coefficients, coefficient_std: Of the terms; dropped ones are 0.
        shape, shape_std: Nonlinear parameters.
        cost: Sum of squares left [N m squared].
        rms: Of what is left [N m].
        correlation: Between friction measured and fitted.
        dropped: Terms the data do not support, by BIC.
        fastest: Highest speed tested [rad/s]; beyond it the curve is a guess.
        warnings: What the user should know.
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

    def torque(
        self, velocity: Float[Array, " n"], load: Float[Array, " n"] | None = None
    ) -> Float[Array, " n"]:
        """Friction at other speeds and loads."""
        inputs = FrictionInput(velocity, load=load)
        return self.model.steady().columns(inputs, self.shape) @ self.coefficients


def pairs_of(
    forward: tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]],
    backward: tuple[Float[Array, " m"], Float[Array, " m"], Float[Array, " m"]],
    *,
    points: int = 40,
    joint: int = 1,
) -> FrictionPairs:
    """Pairs from one run each way: (position, velocity, torque) of the joint that moved.

    Both runs are read at the same positions, evenly over the range they share.
    """
    (qf, vf, tf), (qb, vb, tb) = (_by_position(run) for run in (forward, backward))
    low, high = max(qf[0], qb[0]), min(qf[-1], qb[-1])
    if not low < high:
        raise PoorExcitationError(
            f"the forward and backward runs of joint {joint} share no positions. "
            "Drive the same stretch both ways."
        )
    if np.median(vf) < 0 or np.median(vb) > 0:
        raise TaufitError("the first run goes forwards (v > 0), the second backwards.")
    at = np.linspace(low, high, points + 2)[1:-1]
    f, b = np.interp(at, qf, tf), np.interp(at, qb, tb)
    speed = 0.5 * (np.interp(at, qf, vf) - np.interp(at, qb, vb))
    return FrictionPairs(speed, 0.5 * (f - b), 0.5 * (f + b), joint)


def pairs_in(samples: Samples, joint: int, *, points: int = 40) -> FrictionPairs:
    """Pairs of one joint (from 1) in samples that hold its constant-velocity runs both ways.

    Stretches where the joint keeps its velocity and the others rest are matched by speed within
    5 per cent.
    """
    i = joint - 1
    v = samples.velocity[:, i]
    others = np.abs(np.delete(samples.velocity, i, axis=1)).max(axis=1, initial=0.0)
    top = np.abs(v).max()
    steady = (np.abs(v) > 1e-4) & (others < 0.02 * np.maximum(np.abs(v), 1e-3))
    steady &= np.abs(samples.acceleration[:, i]) < 0.05 * np.maximum(np.abs(v), 1e-3) + 1e-3 * top
    stretches: dict[bool, list[tuple[float, Array]]] = {True: [], False: []}
    for rows in _stretches(steady, samples.run):
        if len(rows) >= 5:
            stretches[v[rows[0]] > 0].append((float(np.median(np.abs(v[rows]))), rows))
    found = []
    for speed, rows in stretches[True]:
        match = [(abs(other / speed - 1.0), k) for k, (other, _) in enumerate(stretches[False])]
        if not match or min(match)[0] > 0.05:
            continue
        back = stretches[False][min(match)[1]][1]
        runs = [(samples.position[r, i], v[r], samples.torque[r, i]) for r in (rows, back)]
        found.append(pairs_of(*runs, points=points, joint=joint))
    if not found:
        raise PoorExcitationError(
            f"joint {joint} has no constant-velocity stretches both ways at one speed. "
            "Drive it alone, forwards and backwards, at several speeds."
        )
    return FrictionPairs(
        np.concatenate([one.velocity for one in found]),
        np.concatenate([one.torque for one in found]),
        np.concatenate([one.load for one in found]),
        joint,
    )


def fit_friction(
    pairs: FrictionPairs,
    model: FrictionModel,
    *,
    method: str = "variable_projection",
    drop: bool = True,
) -> FrictionFit:
    """The friction curve that explains the pairs best.

    Args:
        pairs: Friction samples of one joint.
        model: Any friction model without memory or temperature.
        method: "variable_projection" from the valleys of a grid, or "levenberg_marquardt" on
            all parameters at once from its middle, as the literature does.
        drop: Leave out terms that BIC does not support.
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
    n = len(pairs.torque)
    while drop and live.sum() > 1:
        score = _bic(cost, n, pairs, model, shape, live)
        trials = []
        for i in np.flatnonzero(live):
            fewer = live.copy()
            fewer[i] = False
            again, less = _refined(pairs, model, shape, fewer)
            trials.append((_bic(less, n, pairs, model, again, fewer), i, again, less))
        best, i, again, less = min(trials, key=lambda one: one[0])
        if best >= score:
            break
        live[i] = False
        shape, cost = again, less
    return _told(pairs, model, shape, live, cost)


def _told(
    pairs: FrictionPairs, model: FrictionModel, shape: Array, live: Bool[Array, " k"], cost: float
) -> FrictionFit:
    """Coefficients, their spread, and what to say about them."""
    terms = tuple(term.name for term in model.terms)
    columns = _columns(pairs, model, shape, live)
    c, residual, _ = _inner(columns, pairs.torque)
    coefficients = np.zeros(len(terms))
    coefficients[live] = c
    jacobian = np.column_stack([columns, _slopes(pairs, model, shape, live, c)])
    size = np.linalg.norm(jacobian, axis=0)
    size[size == 0.0] = 1.0
    used = jacobian.shape[1]
    variance = cost / max(len(residual) - used, 1)
    spread = np.linalg.pinv((jacobian / size).T @ (jacobian / size), rcond=1e-14) * variance
    std = np.sqrt(np.maximum(np.diag(spread), 0.0)) / size
    coefficient_std = np.zeros(len(terms))
    coefficient_std[live] = std[: live.sum()]
    fitted = pairs.torque - residual
    fastest = float(pairs.velocity.max())
    dropped = tuple(name for name, kept in zip(terms, live, strict=True) if not kept)
    warnings = []
    if dropped:
        warnings.append(f"the data do not support {', '.join(dropped)}; set to zero")
    high = [i for i, name in enumerate(terms) if live[i] and name in ("viscous2", "viscous3")]
    if high:
        warnings.append(
            f"tested up to {np.degrees(fastest):.0f} deg/s; beyond it the polynomial is a guess"
        )
    elif any(name.startswith("viscous") for name in dropped):
        warnings.append(f"nothing is known of friction above {np.degrees(fastest):.0f} deg/s")
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
    )


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
    return model.steady().columns(FrictionInput(pairs.velocity, load=pairs.load), shape)[:, live]


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
    return n * np.log(max(cost, floor) / n) + (int(live.sum()) + shapes) * np.log(n)


def _by_position(run: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    q, v, t = (np.asarray(x, float) for x in run)
    order = np.argsort(q, kind="stable")
    return q[order], v[order], t[order]


def _stretches(mask: Bool[Array, " n"], run: Array) -> list[Array]:
    edges = np.flatnonzero(np.diff(mask.astype(int)) | np.diff(run)) + 1
    return [part for part in np.split(np.arange(len(mask)), edges) if mask[part[0]]]
