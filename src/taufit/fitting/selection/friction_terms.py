"""Choices made from the data before a fit: friction terms, and trust in the nominal arm.

Both look at how well intervals of the data that were left out are predicted, or at how the
residuals are correlated over time, never at which robot it is.
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

# A group stays out of a joint when leaving it out costs less than this in predicted torque.
_WORTH = 1.002

# Nominal links are trusted to about 30 %: an entropic divergence D is half the square of the
# relative change, so the weight of one is 1/0.3^2 squared noise levels of independent samples.
NOMINAL_WEIGHT = 11.0
# Links nobody described are only kept from running away.
GUESSED_WEIGHT = 0.005

# Less trust is tried too, down to this share of it: as much is taken as predicts intervals left
# out no worse than the best by this factor.
WEAKEST = 1e-3
# Keeps directions that nothing determines from running away, in columns of unit length.
_RIDGE = 1e-9
_HARMLESS = 1.02


@dataclass(frozen=True, slots=True, eq=False)
class TermSelection:
    """What was chosen from the data.

    Attributes:
        dropped: Friction terms that do not help to predict data left out.
        prior_weight: Of the nominal links, in squared noise levels of a row.
        correlation_samples: Residuals are independent only when this many rows apart.
        cost: Root mean square of the torque predicted for intervals left out, per joint [N m].
        load: Parameters of a first fit, whose links' torque friction depends on, else None.
    """

    dropped: tuple[str, ...]
    prior_weight: float
    correlation_samples: float
    cost: Float[Array, " j"]
    load: Float[Array, " p"] | None = None


def _leaving(
    model: TorqueModel, costs: dict[tuple[str, ...], Float[Array, " j"]], worth: float
) -> tuple[list[str], Float[Array, " j"]]:
    """Parameters that each joint can do without, and its cost then."""
    best = np.min(list(costs.values()), axis=0)
    leaving, chosen = list[str](), np.empty(len(best))
    owners = np.asarray(model.layout.owner)
    for k in range(len(best)):
        fine = [out for out, cost in costs.items() if cost[k] <= worth * best[k]]
        out = max(fine, key=lambda one: (len(one), -costs[one][k]))
        chosen[k] = costs[out][k]
        leaving += [model.names[i] for i in np.flatnonzero(_members(model, out) & (owners == k))]
    return leaving, chosen


def select_friction_terms(
    model: TorqueModel,
    samples: Samples | SampleSource,
    *,
    select: bool = True,
    groups: tuple[str, ...] | None = None,
    dropped: tuple[str, ...] = (),
    worth: float = _WORTH,
) -> TermSelection:
    """Friction terms and the weight of the nominal arm, from the samples.

    Intervals of the recording (or its runs, if there are three or more) are left out in turn and
    predicted from the rest by least squares with the nominal links as a Gaussian prior. The prior
    is as strong as it can be without predicting worse; each joint keeps the smallest set of
    friction terms whose prediction is within 0.2 % of the best.

    Args:
        model: What explains the torque.
        samples: Conditioned motion and torque, in memory or part by part.
        select: Whether friction terms are chosen at all.
        groups: The terms to decide on; by default all that a friction model can do without.
        dropped: Parameters that are out already.
        worth: Cost over the best cost up to which terms are left out.
    """
    out_already = np.isin(model.names, dropped)
    prior, centre, guessed = gaussian_prior(model)
    trusted = GUESSED_WEIGHT if guessed else NOMINAL_WEIGHT
    source = as_source(samples)
    base = base_parameters(model)
    loaded = needs(model.term_sum, "load")
    load: Load = "measured" if loaded else None
    # Residuals show their correlation only where no prior keeps the fit from its best.
    weak = WEAKEST * trusted * source.correlation_guess
    theta: Float[Array, " p"] | None = None
    for _ in range(2 if loaded else 1):
        load = load if theta is None else theta
        regression = Regression(source, RowBuilder(model, load), base)
        folds = _Folds(regression)
        theta, scale = folds.weighted_fit(weak * prior, centre, model.nonnegative)
    assert theta is not None

    rows = regression.excerpt
    residuals = rows.residuals(theta)
    correlation = float(np.mean(correlation_samples(residuals, rows.keep, rows.run)))
    everything = ~out_already
    strengths = trusted * correlation * np.array([1.0, 0.1, 0.01, WEAKEST])
    predicted = np.array(
        [
            folds.left_out_cost(scale, w * prior, centre, model.nonnegative, everything)
            for w in strengths
        ]
    )
    harm = np.mean(predicted / predicted.min(axis=0), axis=1)
    weight = float(strengths[np.argmax(harm <= _HARMLESS * harm.min())])
    costs: dict[tuple[str, ...], Float[Array, " j"]] = {}
    groups = (_groups(model) if groups is None else groups) if select else ()
    for size in range(len(groups) + 1):
        for out in combinations(groups, size):
            used = ~(_members(model, out) | out_already)
            costs[out] = folds.left_out_cost(scale, weight * prior, centre, model.nonnegative, used)
    leaving, chosen = _leaving(model, costs, worth)
    leaving = [*(name for name in model.names if name in dropped), *leaving]
    found = theta if loaded else None
    return TermSelection(tuple(dict.fromkeys(leaving)), weight, correlation, chosen, found)


def gaussian_prior(
    model: TorqueModel,
) -> tuple[Float[Array, "p p"], Float[Array, " p"], bool]:
    """Second derivative of the entropic divergence at the nominal links, and those links.

    The last value tells whether the nominal robot says nothing about any of its links.
    """
    problem = EstimationProblem.of(model)
    links, made_up = prior_links(problem)
    p, joints = len(model.names), model.robot.joints
    square, centre = np.zeros((p, p)), model.nominal.copy()
    centre[model.layout.links] = links.ravel()
    for k, link in enumerate(links):
        step = np.linalg.inv(pseudo_inertia(link)) @ UNIT
        own = model.layout.link(k)
        square[own, own] = np.einsum("imn,jnm->ij", step, step)
    return square, centre, len(made_up) == joints


def correlation_samples(
    residuals: Float[Array, "n j"], keep: Bool[Array, "n j"], run: Array
) -> Float[Array, " j"]:
    """Over how many samples residuals are correlated: 1 + 2 sum of their autocorrelation.

    The sum ends where the autocorrelation first falls below 0.05. N samples are worth N over this
    many independent ones.
    """
    out = np.ones(residuals.shape[1])
    for j in range(residuals.shape[1]):
        power, total = np.zeros(0), 0.0
        for r in np.unique(run):
            x = residuals[(run == r) & keep[:, j], j]
            if len(x) < 8:
                continue
            x = x - x.mean()
            own = np.fft.irfft(np.abs(np.fft.rfft(x, 2 * len(x))) ** 2)[: len(x)]
            longer = max(len(power), len(own))
            power = np.pad(power, (0, longer - len(power))) + np.pad(own, (0, longer - len(own)))
            total += own[0]
        if total <= 0.0:
            continue
        shape = power / total
        low = np.flatnonzero(shape < 0.05)
        end = int(low[0]) if len(low) else len(shape)
        out[j] = 1.0 + 2.0 * float(shape[1:end].sum())
    return out


def _groups(model: TorqueModel) -> tuple[str, ...]:
    """Sets of parameters that data may drop, the last of the model first."""
    sets = [one.optional for one in reversed(model.term_sum.parameters) if one.optional]
    return tuple(dict.fromkeys(sets))


def _members(model: TorqueModel, groups: tuple[str, ...]) -> Bool[Array, " p"]:
    """Which parameters belong to any of the groups."""
    return model.layout.where(lambda one: one.optional in groups or one.name in groups)


def normal_equations(
    regression: Regression, scale: Float[Array, " j"]
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """W'W and W'y of all rows, joints counted by scale."""
    return _Folds(regression, apart=False).normal(scale)


def fit_with_prior(
    regression: Regression,
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    least_noise: Float[Array, " j"] | None = None,
) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
    """Parameters from all rows and a Gaussian prior, and one over each joint's variance."""
    return _Folds(regression, apart=False).weighted_fit(prior, centre, nonnegative, least_noise)


class _Folds:
    """Least squares with a Gaussian prior, on all data and with each fold left out in turn."""

    def __init__(self, regression: Regression, *, apart: bool = True) -> None:
        self.mapping = regression.base.mapping
        self.folds = regression.by_fold if apart else ()
        self.total = regression.by_joint
        self.count = np.maximum([part.count for part in self.total], 1)

    def weighted_fit(
        self,
        prior: Float[Array, "p p"],
        centre: Float[Array, " p"],
        nonnegative: Bool[Array, " p"],
        least_noise: Float[Array, " j"] | None = None,
    ) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
        """Parameters from everything, and one over the residual variance of each joint."""
        power = self._costs(self.total, np.zeros(len(centre)))
        floor = 1e-12 * power.max()
        if least_noise is not None:
            floor = np.maximum(floor, self.count * least_noise**2)
        scale = self.count / np.maximum(power, 1e-12)
        every = np.ones(len(centre), bool)
        values, vectors = np.linalg.eigh(prior)
        held = values > 0.0
        root = np.sqrt(values[held])[:, None] * vectors[:, held].T
        # Each joint's triangle has rows for its own columns only.
        seen = [np.any(own.factor, axis=1) for own in self.total]
        each = [own.factor[at] @ self.mapping for own, at in zip(self.total, seen, strict=True)]
        right = [own.target[at] for own, at in zip(self.total, seen, strict=True)]
        for _ in range(4):
            # Loads follow from these parameters, so they are found without squaring a condition.
            size = np.sqrt(scale)
            rows = [s * own for s, own in zip(size, each, strict=True)]
            aims = [s * own for s, own in zip(size, right, strict=True)]
            stacked = np.concatenate([*rows, root])
            theta = _least_squares(
                stacked, np.concatenate([*aims, root @ centre]), nonnegative, every
            )
            cost = self._costs(self.total, theta)
            scale = self.count / np.maximum(np.maximum(cost, floor), 1e-300)
        return theta, scale

    def left_out_cost(
        self,
        scale: Float[Array, " j"],
        prior: Float[Array, "p p"],
        centre: Float[Array, " p"],
        nonnegative: Bool[Array, " p"],
        used: Bool[Array, " p"],
    ) -> Float[Array, " j"]:
        """Root mean square error per joint of the folds, each predicted from the others."""
        parts = self._weighted(tuple(scale))
        square, right = sum(a for a, _ in parts), sum(b for _, b in parts)
        cost = np.zeros(len(scale))
        for fold, (own, aim) in zip(self.folds, parts, strict=True):
            rest = square - own + prior
            theta = solve_normal(rest, right - aim + prior @ centre, nonnegative, used)
            cost += self._costs(fold, theta)
        return np.sqrt(cost / self.count)

    def normal(self, scale: Float[Array, " j"]) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Normal equations of everything."""
        return self._normal(self.total, scale)

    def _weighted(self, scale: tuple[float, ...]) -> list[tuple[Array, Array]]:
        """Normal equations of each fold; made once for all that is tried with one scale."""
        known: tuple[tuple[float, ...], list[tuple[Array, Array]]] | None
        known = getattr(self, "_known", None)
        if known is None or known[0] != scale:
            known = scale, [self._normal(fold, np.array(scale)) for fold in self.folds]
            self._known = known
        return known[1]

    def _normal(
        self, parts: tuple[Information, ...], scale: Float[Array, " j"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """W'W and W'y, joints counted by scale, from triangles on base columns: W = W_b B."""
        square = sum(s * (a.factor.T @ a.factor) for s, a in zip(scale, parts, strict=True))
        right = sum(s * (a.factor.T @ a.target) for s, a in zip(scale, parts, strict=True))
        return self.mapping.T @ square @ self.mapping, self.mapping.T @ right

    def _costs(
        self, parts: tuple[Information, ...], theta: Float[Array, " p"]
    ) -> Float[Array, " j"]:
        own = self.mapping @ theta
        return np.array([part.cost(own) for part in parts])


def _least_squares(
    rows: Float[Array, "r p"],
    values: Float[Array, " r"],
    nonnegative: Bool[Array, " p"],
    used: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """As `solve_normal`, from rows instead of their normal equations."""
    size = np.linalg.norm(rows, axis=0)
    free = used & (size > 0.0)
    theta = np.zeros(rows.shape[1])
    every = np.flatnonzero(free)
    scaled = np.concatenate([rows[:, every] / size[every], np.sqrt(_RIDGE) * np.eye(len(every))])
    aim = np.pad(values, (0, len(every)))
    upper = np.asarray(np.linalg.qr(np.column_stack([scaled, aim]), mode="r"))
    for _ in range(20):
        at = free[every]
        # A column held at zero takes its ridge with it: what is left is part of the triangle.
        own = upper
        if not np.all(at):
            own = np.asarray(np.linalg.qr(upper[:, np.append(at, True)], mode="r"))
        theta[:] = 0.0
        found = scipy.linalg.solve_triangular(own[:-1, :-1], own[:-1, -1], check_finite=False)
        theta[every[at]] = found / size[every[at]]
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta


def solve_normal(
    square: Float[Array, "p p"],
    right: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    used: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """Normal equations; dissipative terms that come out negative are zero."""
    # Columns that depend on others leave differences of equal sums on the diagonal.
    size = np.sqrt(np.maximum(np.diag(square), 0.0))
    free = used & (size > 0.0)
    theta = np.zeros(len(right))
    for _ in range(20):
        at = np.flatnonzero(free)
        s = size[at]
        scaled = square[np.ix_(at, at)] / np.outer(s, s)
        scaled[np.diag_indices(len(at))] += _RIDGE
        theta[:] = 0.0
        theta[at] = np.linalg.solve(scaled, right[at] / s) / s
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta
