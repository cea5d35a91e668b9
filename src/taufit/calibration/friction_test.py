"""Friction curve of a joint from pairs of strokes.

Shape parameters are found by variable projection from many starts, terms are dropped by BIC. A term
whose value changes sign without the fastest speed is dropped too, and the viscous part is passive:
it never falls with speed, up to the maximum speed of the joint.
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
# Largest relative uncertainty of extrapolated friction.
_TRUSTED = 0.15
# Largest uncertainty of load friction, as a fraction of the friction.
_VAGUE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class FrictionFit:
    """Friction curve of a joint.

    Attributes:
        model: Friction model of the coefficients and shapes.
        coefficients, coefficient_std: Linear coefficients; dropped ones are 0.
        shape, shape_std: Nonlinear parameters.
        cost: Sum of squared residuals [N m squared].
        rms: RMS residual [N m].
        correlation: Correlation of measured and fitted friction.
        dropped: Terms without support, by BIC or by leaving out the fastest speed.
        fastest: Highest speed tested [rad/s].
        warnings: Messages for the user.
        full_rms: Smallest RMS residual with all terms, no constraint and equal weights [N m]; NaN
            if the pairs have weights (see `least_rms`).
        valid_to: Speed up to which the curve is certain within 15 % [rad/s]; `predict` raises an
            error above it.
        tested_speeds: Speeds of the pairs of strokes [rad/s].
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
        """Friction at given speeds and loads, extrapolated where not tested [N m]."""
        inputs = TermInput(velocity, load=load, temperature=temperature)
        return self.model.steady().columns(inputs, self.shape) @ self.coefficients

    def predict(
        self, velocity: Float[Array, " n"], load: Float[Array, " n"] | None = None
    ) -> Float[Array, " n"]:
        """Friction at speeds up to `valid_to` [N m]; PoorExcitationError above it."""
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
    """Fit a friction curve to pairs of strokes.

    Args:
        pairs: Friction pairs of one joint, with weights if they have some.
        model: Any friction model; of one with memory, the steady-state curve is fitted.
        method: "variable_projection" from the minima of a grid, or "levenberg_marquardt" on all
            parameters at once from the middle of the grid, as in the literature.
        drop: Drop terms without support (BIC; sign change without the fastest speed).
        passive: Constrain the viscous part not to fall with speed; None: as `drop`.
        top_speed: Speed up to which it must not fall [rad/s]; default: twice the fastest.
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
    """Smallest RMS residual of this model with equal weights [N m].

    No term is dropped and there is no constraint.
    """
    plain = replace(pairs, weight=None)
    cost = from_grid(plain, model, np.ones(len(model.parameters), bool))[1]
    return float(np.sqrt(cost / len(pairs.torque)))


def _supported(
    pairs: FrictionPairs, model: Friction, shape: Array, live: Bool[Array, " k"], cost: float
) -> tuple[Array, Bool[Array, " k"]]:
    """Shapes and active terms after dropping terms by BIC and without the fastest speed."""
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
    """Active terms that may be dropped: not Coulomb friction; of powers of speed the highest first.

    Temperature and load dependences of a term are dropped before the term.
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
    """Pairs without those of the fastest speed; None if too few speeds remain."""
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
    """Highest power of speed whose coefficient changes sign without the fastest speed, or None."""
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
    """Index of the load term if the tested loads do not identify it, else None.

    It is negative, or its torque at the largest load is uncertain by more than 5 % of the friction
    and less than twice its standard deviation.
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
    """Column of load friction; -1 if the model has none."""
    own = [k for k, one in enumerate(model.parameters) if one.group == LOAD and not one.modifies]
    return own[0] if own else -1


def load_factor(pairs: FrictionPairs, fit: FrictionFit) -> tuple[float, float]:
    """Load coefficient from these pairs, next to the other terms of a curve, and its std.

    (0, infinite) if the pairs carry no load.
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
    """Fit the shapes again with constraints if the unconstrained curve is not passive."""
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
    """Assemble the result: coefficients, their std, range of validity and warnings."""
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
    """Speed up to which the curve is certain within 15 %, by covariance and without the fastest.

    Between the fastest tested speed and twice that speed.
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
    """Whether load-dependent terms matter: load above 5 % of the friction."""
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
