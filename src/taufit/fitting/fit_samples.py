"""From a torque model and samples to an estimate: weights, loads, shapes and uncertainty."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from taufit.arrays import Array, Float
from taufit.dynamics import BaseParameters
from taufit.errors import PoorExcitationError, TaufitError
from taufit.estimators.estimator import Estimator, Problem, Solution
from taufit.estimators.irls import Irls
from taufit.estimators.ols import Ols, base_least_squares
from taufit.estimators.wls import Wls
from taufit.model.torque_model import TorqueModel
from taufit.regression.base import base_factor, base_of, typical_rows
from taufit.regression.covariance import base_covariance
from taufit.regression.estimate import Estimate
from taufit.regression.information import Information
from taufit.regression.rows import Rows, SampleRows, weighted_sum
from taufit.regression.weights import WEIGHTINGS, Residuals, Weights
from taufit.selection.shapes import fit_shapes
from taufit.signals.samples import Samples

# Weighted column-scaled singular values below this share of the largest show nothing.
UNSEEN = 1e-7


def fit_samples(
    model: TorqueModel,
    samples: Samples,
    estimator: Estimator | None = None,
    *,
    dropped: tuple[str, ...] = (),
    shapes: bool | None = None,
    require_excitation: bool = True,
    load_rounds: int = 12,
    load: Float[Array, "n j"] | None = None,
) -> Estimate:
    """The parameters of `model` that explain `samples`.

    Args:
        model: Its friction shape is a start; with none, a grid is searched.
        samples: Conditioned motion and torque.
        estimator: By default weighted least squares.
        dropped: Parameters held at zero.
        shapes: Whether friction shapes are fitted; by default where the model has none yet.
        require_excitation: Refuse motion that does not show every base parameter.
        load_rounds: Most rounds for load-dependent friction, which needs the torque being fitted.
        load: Rigid-body torque to begin those rounds with; by default the measured torque [N m].
    """
    estimator = estimator or Wls()
    friction = model.friction
    if samples.signed is not None and not np.all(samples.signed):
        joint = int(np.flatnonzero(~samples.signed)[0]) + 1
        raise TaufitError(
            f"the torque of joint {joint} was recorded without its sign. "
            "Find the signs first (--torque-signs unknown)."
        )
    has_shapes = friction is not None and bool(friction.shapes)
    wanted = has_shapes and (model.shape is None if shapes is None else shapes)
    if friction is None or not friction.uses_load:
        load = None
    elif load is None:
        load = np.where(np.isfinite(samples.torque), samples.torque, 0.0)
    base = base_of(model, dropped=dropped)

    start, turn = model, 0
    for stage in _stages(estimator, load):
        change = np.inf
        for _ in range(load_rounds):
            if wanted:
                # The first load is only the measured torque: search again with a fitted one.
                search = turn < 2 and start.shape is None
                shape = fit_shapes(model, samples, load=load, dropped=dropped, search=search)
                model = replace(model, shape=shape)
            rows = SampleRows(model, samples, load=load, dropped=dropped)
            solution, weights, information = solve_rows(rows, model, base, stage)
            turn += 1
            if load is None:
                break
            carried = rows.rigid(solution.values)
            before, change = change, _largest(carried - load) / max(_largest(carried), 1e-12)
            load = carried
            if change < 1e-7 or (turn > 3 and change > 0.9 * before):
                break

    # Each joint in units of its own torque: a noise-free joint must not outshine the others.
    seen = weighted_sum(rows.by_joint, WEIGHTINGS["joint"].first(rows.torque, rows.keep).joint)
    condition = check_excitation(seen, base, start, dropped, strict=require_excitation)
    residuals = rows.residuals(solution.values)
    keep = rows.keep
    rms = np.sqrt(
        np.sum(np.where(keep, residuals, 0.0) ** 2, axis=0) / np.maximum(keep.sum(axis=0), 1)
    )
    return Estimate(
        names=model.names,
        values=solution.values,
        base=base,
        base_covariance=base_covariance(
            rows, base, weights, information, residuals, estimator.weighting
        ),
        torque_rms=rms,
        information=information,
        count=int(keep.sum()),
        condition_number=condition,
        shape=model.joint_shape if has_shapes else None,
        load=load,
        joint_weights=weights.joint,
        dropped=dropped,
        settings=solution.settings,
        warnings=solution.warnings,
    )


def _stages(estimator: Estimator, load: Float[Array, "n j"] | None) -> tuple[Estimator, ...]:
    """Loads settle on unconstrained fits: cheap, and not shaken by a solver's tolerances."""
    if load is None or isinstance(estimator, Ols | Wls | Irls):
        return (estimator,)
    return Wls(estimator.weighting), estimator


def _largest(values: Float[Array, "n j"]) -> float:
    return float(np.abs(values).max())


def solve_rows(
    rows: Rows, model: TorqueModel, base: BaseParameters, estimator: Estimator
) -> tuple[Solution, Weights, Information]:
    """An estimator's solution, with weights iterated on plain least-squares residuals.

    Weights settle on unconstrained fits, which cost a few operations on p x p triangles; the
    estimator itself runs once, on the information the settled weights give.
    """
    if estimator.weighting not in WEIGHTINGS:
        raise TaufitError(
            f"weighting {estimator.weighting!r} is not known: use {', '.join(WEIGHTINGS)}."
        )
    rule = WEIGHTINGS[estimator.weighting]
    problem = Problem(model, base)
    weights = rule.first(rows.torque, rows.keep)
    information = rows.information(weights)
    last = None
    for _ in range(50):
        values = np.zeros(len(base.parameter_names))
        values[base.columns] = base_least_squares(information, problem)
        if last is not None:
            change = np.linalg.norm(information.factor @ (values - last))
            if change <= 1e-7 * np.linalg.norm(information.factor @ values):
                break
        last = values
        squares = np.array([part.cost(values) for part in rows.by_joint])
        fit = Residuals(
            partial(rows.residuals, values),
            squares,
            rows.keep,
            len(base.columns) / rows.joints,
        )
        again = rule.after(fit)
        if again is None:
            break
        weights, information = again, rows.information(again)

    def folds() -> tuple[Information, ...]:
        return tuple(weighted_sum(parts, weights.joint) for parts in rows.folds())

    return estimator.solve(information, Problem(model, base, folds)), weights, information


def check_excitation(
    information: Information,
    base: BaseParameters,
    model: TorqueModel,
    dropped: tuple[str, ...] = (),
    *,
    strict: bool = True,
) -> float:
    """Condition number of the base columns, each scaled to unit length.

    Raises PoorExcitationError where the motion leaves base parameters unseen: it says which.
    """
    upper = base_factor(base, information.factor)
    norms = np.linalg.norm(upper, axis=0)
    # Against a lively motion, so that a joint that only trembles counts as not moving.
    typical = np.linalg.norm(typical_rows(model, dropped=dropped)[:, base.columns], axis=0)
    seen = upper / np.where(typical > 0, typical, 1.0)
    _, values, right = np.linalg.svd(seen)
    weak = values < UNSEEN * values[0]
    if strict and np.any(weak):
        names = _unseen(base.names, right[weak])
        raise PoorExcitationError(
            f"the motion shows {int(np.sum(~weak))} of {len(norms)} base parameters; it does not "
            f"show {', '.join(names[:12])}{' and others' if len(names) > 12 else ''}.\n"
            "Add a recording in which those joints accelerate and reverse, or plan one with "
            "`taufit design`."
        )
    own = np.linalg.svd(upper / np.where(norms > 0, norms, 1.0), compute_uv=False)
    return float(own[0] / max(own[-1], 1e-300))


def _unseen(names: tuple[str, ...], directions: Float[Array, "d b"]) -> list[str]:
    share = np.sqrt(np.sum(directions**2, axis=0))
    return [names[i] for i in np.argsort(-share) if share[i] > 0.3]
