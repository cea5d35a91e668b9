"""Friction curve of a joint from pairs of strokes.

Shape parameters are found by variable projection from many starts, terms are dropped by BIC. A term
whose value changes sign without the fastest speed is dropped too, and the viscous part is passive:
it never falls with speed, up to the maximum speed of the joint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from taufit.calibration.friction_curve import (
    bic,
    covariance,
    fit_from_grid,
    fit_jointly,
    linear_least_squares,
    refine_shape,
    weighted_columns,
)
from taufit.calibration.friction_pairs import FrictionPairs
from taufit.calibration.passivity import PassivityConstraints, passivity_constraints
from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, TaufitError
from taufit.core.threads import one_blas_thread
from taufit.terms import LEVEL, LOAD, TermInput, needs
from taufit.terms.friction import Friction

METHODS = ("variable_projection", "levenberg_marquardt")
# Largest relative uncertainty of extrapolated friction.
_EXTRAPOLATION_ERROR = 0.15
# Standard deviations from which a term is not dropped for a change of sign.
_CLEAR_TERM = 5.0
# Largest uncertainty of load friction, as a fraction of the friction.
_LOAD_UNCERTAINTY = 0.05


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
    tested_speeds: Float[Array, " n"] = field(default_factory=lambda: np.empty(0))
    score: float = np.nan

    def torque(
        self,
        velocity: Float[Array, " n"],
        load: Float[Array, " n"] | None = None,
        temperature: Float[Array, " n"] | None = None,
    ) -> Float[Array, " n"]:
        """Friction at given speeds and loads, extrapolated where not tested [N m]."""
        inputs = TermInput(velocity, load=load, temperature=temperature)
        return self.model.steady_state().columns(inputs, self.shape) @ self.coefficients

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
    _require_load(pairs, model)
    active = np.ones(len(terms), bool)
    if method == "levenberg_marquardt":
        shape, cost = fit_jointly(pairs, model, active)
    else:
        shape, cost = fit_from_grid(pairs, model, active)
    full = float(np.sqrt(cost / len(pairs.torque))) if pairs.weight is None else np.nan
    if drop:
        shape, active = _drop_unsupported(pairs, model, shape, active, cost)
    constraints = None
    if drop if passive is None else passive:
        fastest = float(pairs.velocity.max())
        constraints = passivity_constraints(model, max(top_speed or 0.0, 2.0 * fastest))
        shape = _fit_passive_shape(pairs, model, shape, active, constraints)

    def solve(rows: FrictionPairs) -> Float[Array, " m"]:
        columns = weighted_columns(rows, model, shape, active)
        return solve_passive(columns, rows.target, constraints, active)

    c = solve(pairs)
    columns = weighted_columns(pairs, model, shape, active)
    weighted_cost = float(np.sum((pairs.target - columns @ c) ** 2))
    parameter_covariance = covariance(pairs, model, shape, active, c)
    score = bic(weighted_cost, len(pairs.torque), pairs, model, shape, active)
    fit = assemble_fit(pairs, model, shape, active, solve, parameter_covariance)
    return replace(fit, full_rms=full, score=score)


def solve_passive(
    columns: Float[Array, "n m"],
    target: Float[Array, " n"],
    constraints: PassivityConstraints | None,
    active: Bool[Array, " k"],
) -> Float[Array, " m"]:
    """Least squares, with the constraints where the plain solution violates them."""
    c = linear_least_squares(columns, target)[0]
    if constraints is not None and not constraints.holds(c, active):
        c = constraints.solve(columns, target, active)
    return c


def minimum_rms(pairs: FrictionPairs, model: Friction) -> float:
    """Smallest RMS residual of this model with equal weights [N m].

    No term is dropped and there is no constraint.
    """
    unweighted = replace(pairs, weight=None)
    cost = fit_from_grid(unweighted, model, np.ones(len(model.parameters), bool))[1]
    return float(np.sqrt(cost / len(pairs.torque)))


def _drop_unsupported(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    active: Bool[Array, " k"],
    cost: float,
) -> tuple[Array, Bool[Array, " k"]]:
    """Shapes and active terms after dropping terms by BIC and without the fastest speed."""
    n = len(pairs.torque)
    slower_pairs = _without_fastest(pairs)
    while droppable_terms(model, active):
        score = bic(cost, n, pairs, model, shape, active)
        trials = []
        for i in droppable_terms(model, active):
            reduced = active.copy()
            reduced[i] = False
            trial_shape, trial_cost = refine_shape(pairs, model, shape, reduced)
            trial_score = bic(trial_cost, n, pairs, model, trial_shape, reduced)
            trials.append((trial_score, i, trial_shape, trial_cost))
        best, i, trial_shape, trial_cost = min(trials, key=lambda trial: trial[0])
        if best >= score:
            rejected = _sign_changing_power(pairs, slower_pairs, model, shape, active)
            if rejected is None:
                rejected = _weak_load_term(pairs, model, shape, active)
            if rejected is None:
                break
            active = active.copy()
            active[rejected] = False
            shape, cost = refine_shape(pairs, model, shape, active)
            continue
        active = active.copy()
        active[i] = False
        shape, cost = trial_shape, trial_cost
    return shape, active


def droppable_terms(model: Friction, active: Bool[Array, " k"]) -> list[int]:
    """Active terms that may be dropped: not Coulomb friction; of powers of speed the highest first.

    Temperature and load dependences of a term are dropped before the term.
    """
    parameters = model.parameters
    active_terms = [parameters[i] for i in np.flatnonzero(active)]
    highest = max(term.power for term in active_terms) if active_terms else 0
    modified = {term.modifies for term in active_terms}
    return [
        int(i)
        for i in np.flatnonzero(active)
        if parameters[i].group != LEVEL
        and parameters[i].power in (0, highest)
        and parameters[i].name not in modified
    ]


def _without_fastest(pairs: FrictionPairs) -> FrictionPairs | None:
    """Pairs without those of the fastest speed; None if too few speeds remain."""
    speeds = pairs.tested_speeds
    if len(speeds) < 4:
        return None
    slower = pairs.velocity < 0.5 * (speeds[-1] + speeds[-2])
    return pairs.select(slower) if slower.sum() > 10 else None


def _sign_changing_power(
    pairs: FrictionPairs,
    slower_pairs: FrictionPairs | None,
    model: Friction,
    shape: Array,
    active: Bool[Array, " k"],
) -> int | None:
    """Highest weak power of speed that changes sign without the fastest speed, or None."""
    if slower_pairs is None:
        return None
    powers = [term.power for term in model.parameters]
    all_speeds, *_ = linear_least_squares(
        weighted_columns(pairs, model, shape, active), pairs.target
    )
    slower, *_ = linear_least_squares(
        weighted_columns(slower_pairs, model, shape, active), slower_pairs.target
    )
    active_indices = np.flatnonzero(active)
    variance = np.diag(covariance(pairs, model, shape, active, all_speeds))[: len(all_speeds)]
    # With few speeds the dip of static friction turns the slope of the rest: a term that all
    # speeds show clearly stays.
    clear = np.abs(all_speeds) > _CLEAR_TERM * np.sqrt(np.maximum(variance, 0.0))
    sign_changes = [
        int(i)
        for i, a, b, is_clear in zip(active_indices, all_speeds, slower, clear, strict=True)
        if powers[i] and a * b < 0 and not is_clear
    ]
    return max(sign_changes, key=lambda i: powers[i]) if sign_changes else None


def _weak_load_term(
    pairs: FrictionPairs, model: Friction, shape: Array, active: Bool[Array, " k"]
) -> int | None:
    """Index of the load term if the tested loads do not identify it, else None.

    It is negative, or its torque at the largest load is uncertain by more than 5 % of the friction
    and less than twice its standard deviation.
    """
    active_terms = [model.parameters[i] for i in np.flatnonzero(active)]
    loads = [i for i, term in enumerate(active_terms) if term.group == LOAD]
    if not loads or any(active_terms[i].modifies for i in loads):
        return None
    c, *_ = linear_least_squares(weighted_columns(pairs, model, shape, active), pairs.target)
    i = loads[0]
    deviation = float(np.sqrt(max(covariance(pairs, model, shape, active, c)[i, i], 0.0)))
    torque_std = deviation * float(np.abs(pairs.load).max())
    is_uncertain = (
        torque_std > _LOAD_UNCERTAINTY * float(np.mean(np.abs(pairs.torque)))
        and c[i] < 2.0 * deviation
    )
    return int(np.flatnonzero(active)[i]) if c[i] <= 0.0 or is_uncertain else None


def _fit_passive_shape(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    active: Bool[Array, " k"],
    constraints: PassivityConstraints,
) -> Array:
    """Fit the shapes again with constraints if the unconstrained curve is not passive."""
    from scipy.optimize import least_squares

    unconstrained, *_ = linear_least_squares(
        weighted_columns(pairs, model, shape, active), pairs.target
    )
    if len(shape) == 0 or constraints.holds(unconstrained, active):
        return shape
    low = np.log([s.lower for s in model.shapes])
    high = np.log([s.upper for s in model.shapes])

    def residual(logs: Array) -> Array:
        columns = weighted_columns(pairs, model, np.exp(logs), active)
        return columns @ constraints.solve(columns, pairs.target, active) - pairs.target

    middle = np.array([s.start[len(s.start) // 2] for s in model.shapes])
    solutions = []
    for start in (shape, middle):
        inside = np.clip(np.log(start), low + 1e-9, high - 1e-9)
        solutions.append(least_squares(residual, inside, bounds=(low, high), max_nfev=40))
    return np.exp(min(solutions, key=lambda solution: solution.cost).x)


def assemble_fit(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    active: Bool[Array, " k"],
    solve: Callable[[FrictionPairs], Float[Array, " m"]],
    parameter_covariance: Float[Array, "p p"],
) -> FrictionFit:
    """Assemble a result: coefficients, their std, range of validity and warnings.

    Args:
        pairs: Friction pairs of one joint.
        model: Friction model.
        shape: Shape parameters.
        active: Terms that were not dropped.
        solve: Coefficients of the active terms from some of the pairs.
        parameter_covariance: Of the active coefficients and the shapes.
    """
    terms = tuple(term.name for term in model.parameters)
    c = solve(pairs)
    residual = (
        pairs.torque - weighted_columns(replace(pairs, weight=None), model, shape, active) @ c
    )
    cost = float(np.sum(residual**2))
    coefficients = np.zeros(len(terms))
    coefficients[active] = c
    std = np.sqrt(np.maximum(np.diag(parameter_covariance), 0.0))
    coefficient_std = np.zeros(len(terms))
    coefficient_std[active] = std[: active.sum()]
    fitted = pairs.torque - residual
    fastest = float(pairs.velocity.max())
    dropped = tuple(name for name, is_active in zip(terms, active, strict=True) if not is_active)
    valid = _validity_limit(
        pairs, model, shape, active, solve, parameter_covariance[: len(c), : len(c)]
    )
    warnings = []
    if dropped:
        warnings.append(f"the data do not support {', '.join(dropped)}; set to zero")
    if valid < 1.99 * fastest:
        warnings.append(
            f"tested up to {fastest:.3g} rad/s; above {valid:.3g} rad/s friction is not known"
        )
    has_variation = np.std(fitted) > 0 and np.std(pairs.torque) > 0
    return FrictionFit(
        model=model,
        coefficients=coefficients,
        coefficient_std=coefficient_std,
        shape=shape,
        shape_std=std[active.sum() :],
        cost=cost,
        rms=float(np.sqrt(cost / len(residual))),
        correlation=float(np.corrcoef(fitted, pairs.torque)[0, 1]) if has_variation else 0.0,
        dropped=dropped,
        fastest=fastest,
        warnings=tuple(warnings),
        valid_to=valid,
        tested_speeds=pairs.tested_speeds,
    )


def _validity_limit(
    pairs: FrictionPairs,
    model: Friction,
    shape: Array,
    active: Bool[Array, " k"],
    solve: Callable[[FrictionPairs], Float[Array, " m"]],
    parameter_covariance: Float[Array, "l l"],
) -> float:
    """Speed up to which the curve is certain within 15 %, by covariance and without the fastest.

    Between the fastest tested speed and twice that speed.
    """
    fastest = float(pairs.velocity.max())
    grid = np.linspace(fastest, 2.0 * fastest, 41)
    load = np.full_like(grid, float(np.median(np.abs(pairs.load))))
    temperature = None
    if pairs.temperature is not None:
        temperature = np.full_like(grid, float(np.median(pairs.temperature)))
    probe = FrictionPairs(grid, grid, load, pairs.joint, None, temperature)
    columns = weighted_columns(probe, model, shape, active)
    curve = columns @ solve(pairs)
    uncertainty = 2.0 * np.sqrt(
        np.maximum(np.einsum("nk,kl,nl->n", columns, parameter_covariance, columns), 0.0)
    )
    slower_pairs = _without_fastest(pairs)
    if slower_pairs is not None:
        difference = columns @ solve(slower_pairs) - curve
        uncertainty = np.maximum(uncertainty, np.abs(difference))
    is_uncertain = uncertainty > _EXTRAPOLATION_ERROR * np.maximum(np.abs(curve), 1e-12)
    return float(
        grid[max(0, int(np.argmax(is_uncertain)) - 1)] if np.any(is_uncertain) else grid[-1]
    )


def carries_load(pairs: FrictionPairs) -> bool:
    """Whether load-dependent terms matter: load above 5 % of the friction."""
    return bool(np.mean(pairs.load**2) >= 0.05**2 * np.mean(pairs.torque**2))


def _require_load(pairs: FrictionPairs, model: Friction) -> None:
    if not needs(model, "load") or carries_load(pairs):
        return
    level = np.sqrt(np.mean(pairs.torque**2))
    load = np.sqrt(np.mean(pairs.load**2))
    raise PoorExcitationError(
        f"joint {pairs.joint} carries no load here ({load:.2g} N m against {level:.2g} N m "
        f"of friction), as the first joint of a floor-mounted arm does: load-dependent terms "
        "have no effect. Use the model without load, e.g. stribeck, for this joint."
    )
