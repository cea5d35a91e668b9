"""Selection of friction terms and of the weight of the nominal robot by cross-validation."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.friction_terms import (
    GUESSED_WEIGHT,
    MIN_PRIOR_FRACTION,
    NOMINAL_WEIGHT,
    PriorLeastSquares,
    correlation_samples,
    gaussian_prior,
    solve_normal,
)
from taufit.model.torque_model import TorqueModel
from taufit.regression.regression import Regression
from taufit.regression.rows import Load, RowBuilder
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import needs

# Largest ratio of prediction errors without and with a group of terms for it to be dropped.
_COST_TOLERANCE = 1.002
# Smaller prior weights are tried down to `MIN_PRIOR_FRACTION`: the largest one is used whose
# prediction error in cross-validation is within this ratio of the best.
_PRIOR_TOLERANCE = 1.02


@dataclass(frozen=True, slots=True, eq=False)
class TermSelection:
    """Result of the model selection.

    Attributes:
        dropped: Friction terms that do not improve the prediction of left-out data.
        prior_weight: Weight of the nominal links, in squared noise levels of a row.
        correlation_samples: Number of samples over which residuals are correlated.
        cost: RMSE of the torque predicted for left-out intervals, per joint [N m].
        load: Parameters of a first fit whose rigid-body torque is the load of friction, else None.
    """

    dropped: tuple[str, ...]
    prior_weight: float
    correlation_samples: float
    cost: Float[Array, " j"]
    load: Float[Array, " p"] | None = None


def _terms_to_drop(
    model: TorqueModel, costs: dict[tuple[str, ...], Float[Array, " j"]], tolerance: float
) -> tuple[list[str], Float[Array, " j"]]:
    """Parameters that each joint does not need, and its cost without them."""
    best = np.min(list(costs.values()), axis=0)
    dropped, selected_cost = list[str](), np.empty(len(best))
    owners = np.asarray(model.layout.owner)
    for k in range(len(best)):
        acceptable = [out for out, cost in costs.items() if cost[k] <= tolerance * best[k]]
        out = max(acceptable, key=lambda groups: (len(groups), -costs[groups][k]))
        selected_cost[k] = costs[out][k]
        dropped += [model.names[i] for i in np.flatnonzero(_members(model, out) & (owners == k))]
    return dropped, selected_cost


def select_friction_terms(
    model: TorqueModel,
    samples: Samples | SampleSource,
    *,
    select: bool = True,
    groups: tuple[str, ...] | None = None,
    dropped: tuple[str, ...] = (),
    tolerance: float = _COST_TOLERANCE,
) -> TermSelection:
    """Select friction terms and the weight of the nominal robot by cross-validation.

    Intervals of the recording (or its runs, if there are three or more) are left out in turn and
    predicted from the others by least squares with the nominal links as a Gaussian prior. The
    prior has the largest weight that does not increase the error; each joint keeps the smallest
    set of friction terms whose error is within 0.2 % of the best.

    Args:
        model: Torque model.
        samples: Conditioned motion and torque, in memory or part by part.
        select: Whether to select friction terms at all.
        groups: Term groups to decide on; by default all optional ones of the friction model.
        dropped: Parameters already dropped.
        tolerance: Largest ratio of the cost to the best cost at which terms are dropped.
    """
    is_dropped = np.isin(model.names, dropped)
    prior, centre, is_guessed = gaussian_prior(model)
    nominal_weight = GUESSED_WEIGHT if is_guessed else NOMINAL_WEIGHT
    source = as_source(samples)
    base = base_parameters(model)
    has_load = needs(model.term_sum, "load")
    load: Load = "measured" if has_load else None
    # The correlation of residuals is estimated with a weak prior.
    weak_weight = MIN_PRIOR_FRACTION * nominal_weight * source.filter_correlation_length
    theta: Float[Array, " p"] | None = None
    for _ in range(2 if has_load else 1):
        load = load if theta is None else theta
        regression = Regression(source, RowBuilder(model, load), base)
        folds = CrossValidation(regression)
        theta, scale = folds.weighted_fit(weak_weight * prior, centre, model.nonnegative)
    assert theta is not None

    rows = regression.excerpt
    residuals = rows.residuals(theta)
    correlation = float(np.mean(correlation_samples(residuals, rows.keep, rows.run)))
    included = ~is_dropped
    strengths = nominal_weight * correlation * np.array([1.0, 0.1, 0.01, MIN_PRIOR_FRACTION])
    holdout_costs = np.array(
        [
            folds.holdout_rmse(scale, w * prior, centre, model.nonnegative, included)
            for w in strengths
        ]
    )
    relative_cost = np.mean(holdout_costs / holdout_costs.min(axis=0), axis=1)
    weight = float(strengths[np.argmax(relative_cost <= _PRIOR_TOLERANCE * relative_cost.min())])
    costs: dict[tuple[str, ...], Float[Array, " j"]] = {}
    groups = (_groups(model) if groups is None else groups) if select else ()
    for size in range(len(groups) + 1):
        for out in combinations(groups, size):
            included_terms = ~(_members(model, out) | is_dropped)
            costs[out] = folds.holdout_rmse(
                scale, weight * prior, centre, model.nonnegative, included_terms
            )
    to_drop, cost = _terms_to_drop(model, costs, tolerance)
    to_drop = [*(name for name in model.names if name in dropped), *to_drop]
    load_parameters = theta if has_load else None
    return TermSelection(tuple(dict.fromkeys(to_drop)), weight, correlation, cost, load_parameters)


def _groups(model: TorqueModel) -> tuple[str, ...]:
    """Groups of optional parameters, the last of the model first."""
    sets = [
        parameter.optional
        for parameter in reversed(model.term_sum.parameters)
        if parameter.optional
    ]
    return tuple(dict.fromkeys(sets))


def _members(model: TorqueModel, groups: tuple[str, ...]) -> Bool[Array, " p"]:
    """Mask of the parameters in any of the groups."""
    return model.layout.select(
        lambda parameter: parameter.optional in groups or parameter.name in groups
    )


class CrossValidation(PriorLeastSquares):
    """Least squares with a Gaussian prior, with each fold left out in turn."""

    def __init__(self, regression: Regression) -> None:
        self.folds = regression.by_fold
        super().__init__(regression)

    def holdout_rmse(
        self,
        scale: Float[Array, " j"],
        prior: Float[Array, "p p"],
        centre: Float[Array, " p"],
        nonnegative: Bool[Array, " p"],
        included: Bool[Array, " p"],
    ) -> Float[Array, " j"]:
        """RMSE per joint over the folds, each predicted from the others."""
        parts = self._fold_equations(tuple(scale))
        square, right = sum(a for a, _ in parts), sum(b for _, b in parts)
        cost = np.zeros(len(scale))
        for fold, (fold_square, fold_right) in zip(self.folds, parts, strict=True):
            training_square = square - fold_square + prior
            theta = solve_normal(
                training_square, right - fold_right + prior @ centre, nonnegative, included
            )
            cost += self.costs(fold, theta)
        return np.sqrt(cost / self.count)

    def _fold_equations(self, scale: tuple[float, ...]) -> list[tuple[Array, Array]]:
        """Normal equations of each fold; cached for equal scales."""
        cached: tuple[tuple[float, ...], list[tuple[Array, Array]]] | None
        cached = getattr(self, "_cached_equations", None)
        if cached is None or cached[0] != scale:
            cached = scale, [self.weighted(fold, np.array(scale)) for fold in self.folds]
            self._cached_equations = cached
        return cached[1]
