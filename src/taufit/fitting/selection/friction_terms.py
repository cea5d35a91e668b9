"""Selection of friction terms, and weight of the nominal robot, before a fit.

Both are based on cross-validation within the data or on the correlation of residuals over time,
never on the type of robot.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.linalg

from taufit.core.arrays import Array, Bool, Float
from taufit.dynamics.base_parameters import base_parameters
from taufit.estimators.constraints import UNIT
from taufit.estimators.entropic import prior_links
from taufit.estimators.estimator import EstimationProblem
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.regression.regression import Regression
from taufit.regression.rows import Load, RowBuilder
from taufit.robot.inertia import pseudo_inertia
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import needs

# Largest ratio of prediction errors without and with a group of terms for it to be dropped.
_COST_TOLERANCE = 1.002

# Prior weight of nominal links, known to about 30 %: an entropic divergence D is half the square of
# the relative change, so D = 1 weighs 1/0.3^2 squared noise levels of independent samples.
NOMINAL_WEIGHT = 11.0
# Prior weight of links without description, for regularisation only.
GUESSED_WEIGHT = 0.005

# Smaller prior weights are tried down to this fraction: the largest one is used whose prediction
# error in cross-validation is within the tolerance below of the best.
MIN_PRIOR_FRACTION = 1e-3
# Ridge for undetermined directions, in columns of unit length.
_RIDGE = 1e-9
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
        folds = _CrossValidation(regression)
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


def gaussian_prior(
    model: TorqueModel,
) -> tuple[Float[Array, "p p"], Float[Array, " p"], bool]:
    """Prior precision (Hessian of the entropic divergence at the nominal links) and mean.

    The last value is True if the robot has no nominal values of any link.
    """
    problem = EstimationProblem.from_model(model)
    links, guessed = prior_links(problem)
    p, joints = len(model.names), model.robot.joints
    square, centre = np.zeros((p, p)), model.nominal.copy()
    centre[model.layout.links] = links.ravel()
    for k, link in enumerate(links):
        step = np.linalg.inv(pseudo_inertia(link)) @ UNIT
        link_slice = model.layout.link(k)
        square[link_slice, link_slice] = np.einsum("imn,jnm->ij", step, step)
    return square, centre, len(guessed) == joints


def correlation_samples(
    residuals: Float[Array, "n j"], keep: Bool[Array, "n j"], run: Array
) -> Float[Array, " j"]:
    """Correlation length of residuals in samples: 1 + 2 sum of their autocorrelation.

    The sum ends where the autocorrelation first falls below 0.05. The effective number of
    independent samples is N over this value.
    """
    out = np.ones(residuals.shape[1])
    for j in range(residuals.shape[1]):
        power, total = np.zeros(0), 0.0
        for r in np.unique(run):
            x = residuals[(run == r) & keep[:, j], j]
            if len(x) < 8:
                continue
            x = x - x.mean()
            autocovariance = np.fft.irfft(np.abs(np.fft.rfft(x, 2 * len(x))) ** 2)[: len(x)]
            longer = max(len(power), len(autocovariance))
            power = np.pad(power, (0, longer - len(power))) + np.pad(
                autocovariance, (0, longer - len(autocovariance))
            )
            total += autocovariance[0]
        if total <= 0.0:
            continue
        shape = power / total
        low = np.flatnonzero(shape < 0.05)
        end = int(low[0]) if len(low) else len(shape)
        out[j] = 1.0 + 2.0 * float(shape[1:end].sum())
    return out


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


def normal_equations(
    regression: Regression, scale: Float[Array, " j"]
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """Normal equations W'W and W'y of all rows, with joint weights."""
    return _CrossValidation(regression, by_fold=False).normal_equations(scale)


def fit_with_prior(
    regression: Regression,
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    minimum_noise: Float[Array, " j"] | None = None,
) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
    """Parameters from all rows and a Gaussian prior, and the inverse variance of each joint."""
    return _CrossValidation(regression, by_fold=False).weighted_fit(
        prior, centre, nonnegative, minimum_noise
    )


class _CrossValidation:
    """Least squares with a Gaussian prior, on all data and with each fold left out in turn."""

    def __init__(self, regression: Regression, *, by_fold: bool = True) -> None:
        self.mapping = regression.base.mapping
        self.folds = regression.by_fold if by_fold else ()
        self.total = regression.by_joint
        self.count = np.maximum([part.count for part in self.total], 1)

    def weighted_fit(
        self,
        prior: Float[Array, "p p"],
        centre: Float[Array, " p"],
        nonnegative: Bool[Array, " p"],
        least_noise: Float[Array, " j"] | None = None,
    ) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
        """Parameters from all data, and the inverse residual variance of each joint."""
        power = self._costs(self.total, np.zeros(len(centre)))
        floor = 1e-12 * power.max()
        if least_noise is not None:
            floor = np.maximum(floor, self.count * least_noise**2)
        scale = self.count / np.maximum(power, 1e-12)
        included = np.ones(len(centre), bool)
        values, vectors = np.linalg.eigh(prior)
        positive = values > 0.0
        root = np.sqrt(values[positive])[:, None] * vectors[:, positive].T
        # Each joint's factor has rows for its nonzero columns only.
        nonzero = [np.any(information.factor, axis=1) for information in self.total]
        factors = [
            information.factor[rows_used] @ self.mapping
            for information, rows_used in zip(self.total, nonzero, strict=True)
        ]
        targets = [
            information.target[rows_used]
            for information, rows_used in zip(self.total, nonzero, strict=True)
        ]
        for _ in range(4):
            # Solved by QR, since loads depend on these parameters and need full accuracy.
            size = np.sqrt(scale)
            rows = [s * information for s, information in zip(size, factors, strict=True)]
            scaled_targets = [s * information for s, information in zip(size, targets, strict=True)]
            stacked = np.concatenate([*rows, root])
            theta = _least_squares(
                stacked, np.concatenate([*scaled_targets, root @ centre]), nonnegative, included
            )
            cost = self._costs(self.total, theta)
            scale = self.count / np.maximum(np.maximum(cost, floor), 1e-300)
        return theta, scale

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
            cost += self._costs(fold, theta)
        return np.sqrt(cost / self.count)

    def normal_equations(
        self, scale: Float[Array, " j"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Normal equations of all data."""
        return self._normal(self.total, scale)

    def _fold_equations(self, scale: tuple[float, ...]) -> list[tuple[Array, Array]]:
        """Normal equations of each fold; cached for equal scales."""
        cached: tuple[tuple[float, ...], list[tuple[Array, Array]]] | None
        cached = getattr(self, "_cached_equations", None)
        if cached is None or cached[0] != scale:
            cached = scale, [self._normal(fold, np.array(scale)) for fold in self.folds]
            self._cached_equations = cached
        return cached[1]

    def _normal(
        self, parts: tuple[Information, ...], scale: Float[Array, " j"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Weighted W'W and W'y from factors on base columns: W = W_b B."""
        square = sum(s * (a.factor.T @ a.factor) for s, a in zip(scale, parts, strict=True))
        right = sum(s * (a.factor.T @ a.target) for s, a in zip(scale, parts, strict=True))
        return self.mapping.T @ square @ self.mapping, self.mapping.T @ right

    def _costs(
        self, parts: tuple[Information, ...], theta: Float[Array, " p"]
    ) -> Float[Array, " j"]:
        base_values = self.mapping @ theta
        return np.array([part.cost(base_values) for part in parts])


def _least_squares(
    rows: Float[Array, "r p"],
    values: Float[Array, " r"],
    nonnegative: Bool[Array, " p"],
    included: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """Solution of `solve_normal` from rows instead of their normal equations."""
    size = np.linalg.norm(rows, axis=0)
    free = included & (size > 0.0)
    theta = np.zeros(rows.shape[1])
    candidates = np.flatnonzero(free)
    scaled = np.concatenate(
        [rows[:, candidates] / size[candidates], np.sqrt(_RIDGE) * np.eye(len(candidates))]
    )
    target = np.pad(values, (0, len(candidates)))
    upper = np.asarray(np.linalg.qr(np.column_stack([scaled, target]), mode="r"))
    for _ in range(20):
        is_free = free[candidates]
        # A column fixed at zero is removed with its ridge.
        reduced = upper
        if not np.all(is_free):
            reduced = np.asarray(np.linalg.qr(upper[:, np.append(is_free, True)], mode="r"))
        theta[:] = 0.0
        scaled_solution = scipy.linalg.solve_triangular(
            reduced[:-1, :-1], reduced[:-1, -1], check_finite=False
        )
        theta[candidates[is_free]] = scaled_solution / size[candidates[is_free]]
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta


def solve_normal(
    square: Float[Array, "p p"],
    right: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    included: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """Solve normal equations; dissipative terms that become negative are set to zero."""
    # Diagonal entries of dependent columns may be negative rounding errors.
    size = np.sqrt(np.maximum(np.diag(square), 0.0))
    free = included & (size > 0.0)
    theta = np.zeros(len(right))
    for _ in range(20):
        indices = np.flatnonzero(free)
        s = size[indices]
        scaled = square[np.ix_(indices, indices)] / np.outer(s, s)
        scaled[np.diag_indices(len(indices))] += _RIDGE
        theta[:] = 0.0
        theta[indices] = np.linalg.solve(scaled, right[indices] / s) / s
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta
