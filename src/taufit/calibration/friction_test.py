"""A joint's friction curve from pairs of strokes.

Nonlinear parameters by variable projection from many starts, terms dropped by BIC. A term whose
value changes sign when the fastest speed is left out has no support and is dropped too, and the
viscous part is passive: it never falls with speed, up to the speed the joint can reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from taufit.calibration.friction_curve import (
    bic,
    columns_of,
    covariance,
    fit_jointly,
    from_grid,
    projected,
    refine_shape,
)
from taufit.calibration.friction_pairs import FrictionPairs
from taufit.calibration.passivity import PassivityConstraints, passive_cone
from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import PoorExcitationError, TaufitError
from taufit.core.threads import one_blas_thread
from taufit.terms import LEVEL, LOAD, TermInput, needs
from taufit.terms.friction import Friction

METHODS = ("variable_projection", "levenberg_marquardt")
# How much extrapolated friction may differ between what the data allow.
_TRUSTED = 0.15
# Share of the friction to which what a load adds must be known.
_VAGUE = 0.05


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
        full_rms: Least there is with all terms, no constraint and all pairs alike [N m]; NaN
            where the pairs have weights (`least_rms` finds it then).
        valid_to: Speed up to which the curve is known within 15 % [rad/s]; `predict` refuses
            faster ones.
        tested_speeds: Of the pairs of strokes [rad/s].
        score: BIC, to compare models on the same pairs.
    """

    model: Friction
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
        inputs = TermInput(velocity, load=load, temperature=temperature)
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


@one_blas_thread
def fit_friction(
    pairs: FrictionPairs,
    model: Friction,
    *,
    method: str = "variable_projection",
    drop: bool = True,
    passive: bool | None = None,
    top_speed: float | None = None,
) -> FrictionFit:
    """The friction curve that explains the pairs best.

    Args:
        pairs: Friction samples of one joint, with their weights where they have some.
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
    terms = tuple(term.name for term in model.parameters)
    _refuse_unloaded(pairs, model)
    live = np.ones(len(terms), bool)
    if method == "levenberg_marquardt":
        shape, cost = fit_jointly(pairs, model, live)
    else:
        shape, cost = from_grid(pairs, model, live)
    full = float(np.sqrt(cost / len(pairs.torque))) if pairs.weight is None else np.nan
    if drop:
        shape, live = _supported(pairs, model, shape, live, cost)
    cone = None
    if drop if passive is None else passive:
        fastest = float(pairs.velocity.max())
        cone = passive_cone(model, max(top_speed or 0.0, 2.0 * fastest))
        shape = _within(pairs, model, shape, live, cone)
    return _result(pairs, model, shape, live, cone, full)


def least_rms(pairs: FrictionPairs, model: Friction) -> float:
    """RMS of the residuals of the best curve of this form, all pairs alike [N m].

    No term dropped, no constraint: what a plain least-squares fit of all parameters reaches at
    best.
    """
    plain = replace(pairs, weight=None)
    cost = from_grid(plain, model, np.ones(len(model.parameters), bool))[1]
    return float(np.sqrt(cost / len(pairs.torque)))


def _supported(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"], cost: float
) -> tuple[Array, Bool[Array, " k"]]:
    """Shape and terms left after BIC, and after the fastest speed was left out."""
    n = len(pairs.torque)
    rest = _without_fastest(pairs)
    while _droppable(model, live):
        score = bic(cost, n, pairs, model, shape, live)
        trials = []
        for i in _droppable(model, live):
            fewer = live.copy()
            fewer[i] = False
            again, less = refine_shape(pairs, model, shape, fewer)
            trials.append((bic(less, n, pairs, model, again, fewer), i, again, less))
        best, i, again, less = min(trials, key=lambda one: one[0])
        if best >= score:
            turned = _turned(pairs, rest, model, shape, live)
            if turned is None:
                turned = _unknown_load(pairs, model, shape, live)
            if turned is None:
                break
            live = live.copy()
            live[turned] = False
            shape, cost = refine_shape(pairs, model, shape, live)
            continue
        live = live.copy()
        live[i] = False
        shape, cost = again, less
    return shape, live


def _droppable(model: Friction, live: Bool[Array, " k"]) -> list[int]:
    """Live terms that may go: never Coulomb friction, of powers of speed the highest first.

    What a term adds per degree or per load goes before the term.
    """
    known = model.parameters
    kept = [known[i] for i in np.flatnonzero(live)]
    highest = max(one.power for one in kept) if kept else 0
    changed = {one.modifies for one in kept}
    return [
        int(i)
        for i in np.flatnonzero(live)
        if known[i].group != LEVEL
        and known[i].power in (0, highest)
        and known[i].name not in changed
    ]


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
    model: Friction,
    shape: Array,
    live: Bool[Array, " k"],
) -> int | None:
    """The highest power of speed whose coefficient changes sign without the fastest speed."""
    if rest is None:
        return None
    powers = [one.power for one in model.parameters]
    all_speeds, *_ = projected(columns_of(pairs, model, shape, live), pairs.target)
    slower, *_ = projected(columns_of(rest, model, shape, live), rest.target)
    kept = np.flatnonzero(live)
    turned = [
        int(i) for i, a, b in zip(kept, all_speeds, slower, strict=True) if powers[i] and a * b < 0
    ]
    return max(turned, key=lambda i: powers[i]) if turned else None


def _unknown_load(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"]
) -> int | None:
    """The load term where the loads tested do not show it.

    It is negative, or what it adds at the largest load is known no better than to a twentieth of
    the friction and is less than twice its standard deviation.
    """
    kept = [model.parameters[i] for i in np.flatnonzero(live)]
    loads = [i for i, one in enumerate(kept) if one.group == LOAD]
    if not loads or any(kept[i].modifies for i in loads):
        return None
    c, *_ = projected(columns_of(pairs, model, shape, live), pairs.target)
    i = loads[0]
    deviation = float(np.sqrt(max(covariance(pairs, model, shape, live, c)[i, i], 0.0)))
    reach = deviation * float(np.abs(pairs.load).max())
    vague = reach > _VAGUE * float(np.mean(np.abs(pairs.torque))) and c[i] < 2.0 * deviation
    return int(np.flatnonzero(live)[i]) if c[i] <= 0.0 or vague else None


def load_column(model: Friction) -> int:
    """Column of friction that grows with load; -1 where the model has none."""
    own = [k for k, one in enumerate(model.parameters) if one.group == LOAD and not one.modifies]
    return own[0] if own else -1


def load_factor(pairs: FrictionPairs, fit: FrictionFit) -> tuple[float, float]:
    """What these pairs say of the term `load` beside a curve's other terms, and its deviation.

    (0, infinite) where they carry no load.
    """
    if not carries_load(pairs):
        return 0.0, np.inf
    known = fit.model.parameters
    load = load_column(fit.model)
    live = np.array([k == load or one.name not in fit.dropped for k, one in enumerate(known)])
    c, *_ = projected(columns_of(pairs, fit.model, fit.shape, live), pairs.target)
    i = int(live[:load].sum())
    spread = covariance(pairs, fit.model, fit.shape, live, c)
    return float(c[i]), float(np.sqrt(max(spread[i, i], 0.0)))


def _within(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    live: Bool[Array, " k"],
    cone: PassivityConstraints,
) -> Array:
    """The shape again where the unconstrained curve is not passive."""
    from scipy.optimize import least_squares

    free, *_ = projected(columns_of(pairs, model, shape, live), pairs.target)
    if len(shape) == 0 or cone.holds(free, live):
        return shape
    low = np.log([s.lower for s in model.shapes])
    high = np.log([s.upper for s in model.shapes])

    def residual(logs: Array) -> Array:
        columns = columns_of(pairs, model, np.exp(logs), live)
        return columns @ cone.solve(columns, pairs.target, live) - pairs.target

    middle = np.array([s.start[len(s.start) // 2] for s in model.shapes])
    found = []
    for start in (shape, middle):
        inside = np.clip(np.log(start), low + 1e-9, high - 1e-9)
        found.append(least_squares(residual, inside, bounds=(low, high), max_nfev=40))
    return np.exp(min(found, key=lambda one: one.cost).x)


def _result(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    live: Bool[Array, " k"],
    cone: PassivityConstraints | None,
    full: float,
) -> FrictionFit:
    """Coefficients, their spread, how far they reach, and what to say about them."""
    terms = tuple(term.name for term in model.parameters)
    columns = columns_of(pairs, model, shape, live)
    c = projected(columns, pairs.target)[0]
    if cone is not None and not cone.holds(c, live):
        c = cone.solve(columns, pairs.target, live)
    weighed = float(np.sum((pairs.target - columns @ c) ** 2))
    residual = pairs.torque - columns_of(replace(pairs, weight=None), model, shape, live) @ c
    cost = float(np.sum(residual**2))
    coefficients = np.zeros(len(terms))
    coefficients[live] = c
    spread = covariance(pairs, model, shape, live, c)
    std = np.sqrt(np.maximum(np.diag(spread), 0.0))
    coefficient_std = np.zeros(len(terms))
    coefficient_std[live] = std[: live.sum()]
    fitted = pairs.torque - residual
    fastest = float(pairs.velocity.max())
    dropped = tuple(name for name, kept in zip(terms, live, strict=True) if not kept)
    valid = _valid_to(pairs, model, shape, live, cone, spread[: len(c), : len(c)], c)
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
        score=bic(weighed, len(residual), pairs, model, shape, live),
    )


def _valid_to(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    live: Bool[Array, " k"],
    cone: PassivityConstraints | None,
    known: Float[Array, "l l"],
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
    columns = columns_of(probe, model, shape, live)
    curve = columns @ c
    spread = 2.0 * np.sqrt(np.maximum(np.einsum("nk,kl,nl->n", columns, known, columns), 0.0))
    rest = _without_fastest(pairs)
    if rest is not None:
        other_columns = columns_of(rest, model, shape, live)
        other = projected(other_columns, rest.target)[0]
        if cone is not None and not cone.holds(other, live):
            other = cone.solve(other_columns, rest.target, live)
        spread = np.maximum(spread, np.abs(columns @ other - curve))
    unknown = spread > _TRUSTED * np.maximum(np.abs(curve), 1e-12)
    return float(grid[max(0, int(np.argmax(unknown)) - 1)] if np.any(unknown) else grid[-1])


def carries_load(pairs: FrictionPairs) -> bool:
    """Whether load-dependent terms could matter: load above a twentieth of the friction."""
    return bool(np.mean(pairs.load**2) >= 0.05**2 * np.mean(pairs.torque**2))


def _refuse_unloaded(pairs: FrictionPairs, model: Friction) -> None:
    if not needs(model, "load") or carries_load(pairs):
        return
    level = np.sqrt(np.mean(pairs.torque**2))
    carried = np.sqrt(np.mean(pairs.load**2))
    raise PoorExcitationError(
        f"joint {pairs.joint} carries no load here ({carried:.2g} N m against {level:.2g} N m "
        f"of friction), as the first joint of a floor-mounted arm does: load-dependent terms "
        "have no effect. Use the model without load, e.g. stribeck, for this joint."
    )
