"""Estimation with iterated weights, loads and shapes, and the uncertainty of the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import PoorExcitationError, RecordingError, TaufitError
from taufit.core.threads import one_blas_thread
from taufit.dynamics.base_parameters import BaseParameters, base_parameters, random_regressor
from taufit.estimators.estimator import EstimationProblem, Estimator, EstimatorSolution
from taufit.estimators.irls import Irls
from taufit.estimators.ols import Ols, base_least_squares
from taufit.estimators.wls import Wls
from taufit.model.torque_model import TorqueModel
from taufit.regression.covariance import covariance_of_scores, score_covariance
from taufit.regression.estimate import Estimate, base_factor
from taufit.regression.information import Information
from taufit.regression.regression import Regression, expand_to_standard_parameters
from taufit.regression.rows import Load, RowBuilder, SampleRows, sum_expression
from taufit.regression.run_variability import estimate_run_variability
from taufit.regression.weights import WEIGHTINGS, NoiseFloorWeights, Weighting, Weights
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import Term, needs

# Singular values of scaled columns below this fraction of the largest are unidentifiable.
WEAK_SINGULAR_VALUE = 1e-7


@one_blas_thread
def fit_samples(
    model: TorqueModel,
    samples: Samples | SampleSource,
    estimator: Estimator | None = None,
    *,
    dropped: tuple[str, ...] = (),
    shapes: bool | None = None,
    require_excitation: bool = True,
    load_rounds: int = 12,
    load: Load = None,
) -> Estimate:
    """Estimate the parameters of a model from samples with a given estimator.

    Args:
        model: Torque model; its friction shape is the initial value, else a grid is searched.
        samples: Conditioned motion and torque, in memory or part by part.
        estimator: Estimator; weighted least squares by default.
        dropped: Parameters fixed at zero.
        shapes: Whether to fit friction shapes; by default if the model has none yet.
        require_excitation: Whether unidentifiable base parameters raise an error.
        load_rounds: Largest number of iterations for load-dependent friction; 0 to keep the given
            load.
        load: Parameters whose rigid-body torque is the initial load; by default the measured
            torque.
    """
    estimator = estimator or Wls()
    term = model.term_sum
    source = as_source(samples)
    _require_signs(source)
    has_shapes = bool(term.shapes)
    fit_needed = has_shapes and (model.shape is None if shapes is None else shapes)
    load = _initial_load(term, load)
    base = base_parameters(model, dropped=dropped)

    start, iteration = model, 0
    for stage in _stages(estimator, load, load_converged=load_rounds == 0):
        change = np.inf
        for _ in range(max(load_rounds, 1)):
            if fit_needed:
                from taufit.fitting.selection.shapes import fit_shapes

                # The first load is the measured torque: repeat the search with a fitted one.
                search = iteration < 2 and start.shape is None
                shape = fit_shapes(model, source.excerpt, load=load, dropped=dropped, search=search)
                model = replace(model, shape=shape)
            regression = Regression(source, RowBuilder(model, load, dropped), base)
            if stage is estimator:
                regression.accumulate_by_fold()
            _require_torque(regression)
            solution, weights, information = solve_rows(regression, model, stage)
            iteration += 1
            if load is None:
                break
            previous_change, change = change, _load_change(regression, load, solution.values)
            load = solution.values
            if _has_converged(change, previous_change, iteration):
                break

    # Each joint in units of its torque, so that a noise-free joint does not dominate.
    joint_weights = WEIGHTINGS["joint"].initial_weights(regression.torque).joint
    weighted = sum_expression(regression.by_joint, joint_weights)
    condition = check_excitation(
        expand_to_standard_parameters(weighted, base),
        base,
        start,
        dropped,
        strict=require_excitation,
    )
    count = regression.torque.count
    squares = regression.residual_squares(solution.values)
    scores = score_covariance(
        regression, weights, information, solution.values, estimator.weighting
    )
    variability = estimate_run_variability(
        regression,
        weights,
        solution.values,
        model.layout,
        has_temperature=needs(model.term_sum, "temperature"),
    )
    scores = scores + variability.scores
    return Estimate(
        names=model.names,
        values=solution.values,
        base=base,
        base_covariance=covariance_of_scores(information, base.columns, scores),
        score_covariance=scores,
        torque_rms=np.sqrt(squares / np.maximum(count, 1)),
        information=information,
        count=int(count.sum()),
        condition_number=condition,
        shape=model.joint_shape if has_shapes else None,
        load=load,
        joint_weights=weights.joint,
        friction_scatter=variability.scatter,
        dropped=dropped,
        settings=solution.settings,
        warnings=solution.warnings,
    )


def _initial_load(term: Term, load: Load) -> Load:
    """Initial load; None if no term depends on it."""
    if not needs(term, "load"):
        return None
    return "measured" if load is None else load


def _has_converged(change: float, previous_change: float, iteration: int) -> bool:
    """Whether the load has converged or stopped improving."""
    return change < 1e-7 or (iteration > 3 and change > 0.9 * previous_change)


def _require_signs(source: SampleSource) -> None:
    signed = source.head.signed
    if signed is not None and not np.all(signed):
        joint = int(np.flatnonzero(~signed)[0]) + 1
        raise TaufitError(
            f"the torque of joint {joint} was recorded without its sign. "
            "Find the signs first (--torque-signs unknown)."
        )


def _stages(estimator: Estimator, load: Load, *, load_converged: bool) -> tuple[Estimator, ...]:
    """Stages of the estimation: loads converge with cheap unconstrained fits first.

    Without load, or with a converged one, there is a single stage.
    """
    if load is None or load_converged or isinstance(estimator, Ols | Wls | Irls):
        return (estimator,)
    return Wls(estimator.weighting), estimator


def _load_change(regression: Regression, load: Load, values: Float[Array, " p"]) -> float:
    """Largest change of the gear torque relative to its maximum, on the excerpt."""
    rows = regression.excerpt
    assert isinstance(rows, SampleRows) and rows.gear_load is not None
    rigid_torque = rows.rigid_torque(values)
    return float(
        np.abs(rigid_torque - rows.gear_load).max() / max(np.abs(rigid_torque).max(), 1e-12)
    )


def _require_torque(regression: Regression) -> None:
    if not np.any(regression.torque.largest > 0.0):
        raise RecordingError(
            "the torque of every joint is zero throughout: there is nothing to fit. Name the "
            "torque columns in the column map, or record torque or motor current."
        )


def solve_rows(
    regression: Regression, model: TorqueModel, estimator: Estimator
) -> tuple[EstimatorSolution, Weights, Information]:
    """Solution of an estimator, with weights iterated on least-squares residuals.

    Weights converge with unconstrained fits, which cost a few operations on p x p factors; the
    estimator itself runs once, with the final weights.
    """
    if estimator.weighting not in WEIGHTINGS:
        raise TaufitError(
            f"weighting {estimator.weighting!r} is not known: use {', '.join(WEIGHTINGS)}."
        )
    rule: Weighting = WEIGHTINGS[estimator.weighting]
    base = regression.base
    minimum_noise = np.asarray(getattr(estimator, "least_noise", ()), float)
    has_floor = bool(np.any(minimum_noise > 0.0))
    if has_floor:
        rule = NoiseFloorWeights(rule, minimum_noise)
    problem = EstimationProblem(model, base, least_noise=1.0 if has_floor else 0.0)
    weights = rule.initial_weights(regression.torque)
    information = regression.information(weights)
    last = None
    for _ in range(50):
        values = np.zeros(len(base.parameter_names))
        values[base.columns] = base_least_squares(information, problem)
        if last is not None:
            change = np.linalg.norm(information.factor @ (values - last))
            if change <= 1e-7 * np.linalg.norm(information.factor @ values):
                break
        last = values
        new_weights = rule.reweight(regression.residuals(values))
        if new_weights is None:
            break
        weights, information = new_weights, regression.information(new_weights)

    def folds() -> tuple[Information, ...]:
        return regression.folds(weights)

    return estimator.solve(information, replace(problem, folds=folds)), weights, information


def check_excitation(
    information: Information,
    base: BaseParameters,
    model: TorqueModel,
    dropped: tuple[str, ...] = (),
    *,
    strict: bool = True,
) -> float:
    """Condition number of the base columns, each scaled to unit length.

    Raises PoorExcitationError with the names of unidentifiable base parameters.
    """
    upper = base_factor(base, information.factor)
    norms = np.linalg.norm(upper, axis=0)
    # Relative to random motion, so that a joint with tiny motion counts as not moving.
    typical = np.linalg.norm(random_regressor(model, dropped=dropped)[:, base.columns], axis=0)
    scaled = upper / np.where(typical > 0, typical, 1.0)
    _, values, directions = np.linalg.svd(scaled)
    weak = values < WEAK_SINGULAR_VALUE * values[0]
    if strict and np.any(weak):
        names = _weak_parameter_names(base.names, directions[weak])
        raise PoorExcitationError(
            f"the motion shows {int(np.sum(~weak))} of {len(norms)} base parameters; it does not "
            f"show {', '.join(names[:12])}{' and others' if len(names) > 12 else ''}.\n"
            "Add a recording in which those joints accelerate and reverse, or plan one with "
            "`taufit design`."
        )
    singular_values = np.linalg.svd(upper / np.where(norms > 0, norms, 1.0), compute_uv=False)
    return float(singular_values[0] / max(singular_values[-1], 1e-300))


def _weak_parameter_names(names: tuple[str, ...], directions: Float[Array, "d b"]) -> list[str]:
    contribution = np.sqrt(np.sum(directions**2, axis=0))
    return [names[i] for i in np.argsort(-contribution) if contribution[i] > 0.3]
