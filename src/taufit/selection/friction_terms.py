"""Choices made from the data before a fit: friction terms, and trust in the nominal arm.

Both look at how well stretches of the data that were left out are predicted, or at how the
residuals hang together over time, never at which robot it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.estimators.constraints import UNIT
from taufit.estimators.entropic import prior_links
from taufit.estimators.estimator import Problem
from taufit.model.torque_model import TorqueModel
from taufit.regression.rows import SampleRows
from taufit.robot.inertia import pseudo_inertia
from taufit.signals.samples import Samples

# Terms a friction model can do without, in groups that come and go together.
OPTIONAL = ("load", "viscous2", "viscous3", "presliding")

# A group stays out of a joint when leaving it out costs less than this in predicted torque.
_WORTH = 1.002

# Nominal links are believed to about 30 %: an entropic divergence D is half the square of the
# relative change, so the weight of one is 1/0.3^2 squared noise levels of independent samples.
NOMINAL_WEIGHT = 11.0
# Links nobody described are only kept from running away.
GUESSED_WEIGHT = 0.005

# Less trust is tried too, down to this share of it: as much is taken as predicts stretches left
# out no worse than the best by this factor.
_WEAKEST = 1e-3
_HARMLESS = 1.02

_FOLDS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What was chosen from the data.

    Attributes:
        dropped: Friction terms that do not help to predict data left out.
        prior_weight: Of the nominal links, in squared noise levels of a row.
        correlation_samples: Rows that hang together: residuals are independent only that far apart.
        cost: Root mean square of the torque predicted for stretches left out, per joint [N m].
        load: Rigid-body torque of a first fit, where friction depends on it, else None.
    """

    dropped: tuple[str, ...]
    prior_weight: float
    correlation_samples: float
    cost: Float[Array, " j"]
    load: Float[Array, "n j"] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Gram:
    """Sums of one joint's rows: W'W, W'y, y'y and their number."""

    square: Float[Array, "p p"]
    right: Float[Array, " p"]
    power: float
    count: int

    def cost(self, theta: Float[Array, " p"]) -> float:
        """|y - W theta|^2."""
        own = theta @ (self.square @ theta) - 2.0 * (self.right @ theta) + self.power
        return max(float(own), 0.0)


def choose(
    model: TorqueModel,
    samples: Samples,
    *,
    select: bool = True,
    groups: tuple[str, ...] | None = None,
    dropped: tuple[str, ...] = (),
    worth: float = _WORTH,
) -> Choice:
    """Friction terms and the weight of the nominal arm, from the samples.

    Stretches of the recording (or its runs, if there are three or more) are left out in turn and
    predicted from the rest by least squares with the nominal links as a Gaussian prior. The prior
    is as strong as it can be without predicting worse; each joint keeps the smallest set of
    friction terms whose prediction is within 0.2 % of the best.

    Args:
        model: What explains the torque.
        samples: Conditioned motion and torque.
        select: Whether friction terms are chosen at all.
        groups: The terms to decide on; by default all that a friction model can do without.
        dropped: Parameters that are out already.
        worth: Cost over the best cost up to which terms are left out.
    """
    joints = model.robot.joints
    out_already = np.isin(model.names, dropped)
    prior, centre, guessed = gaussian_prior(model)
    trusted = GUESSED_WEIGHT if guessed else NOMINAL_WEIGHT
    loaded = model.friction is not None and model.friction.uses_load
    load = np.where(np.isfinite(samples.torque), samples.torque, 0.0) if loaded else None
    # Residuals tell how they hang together only where no prior keeps the fit from its best.
    weak = _WEAKEST * trusted * _correlation_guess(samples)
    for _ in range(2 if loaded else 1):
        rows = SampleRows(model, samples, load=load)
        folds = [_grams(rows, spans) for spans in _spans(rows)]
        theta, scale = _weighted_fit(folds, weak * prior, centre, model.nonnegative)
        if loaded:
            load = rows.rigid(theta)

    residuals = rows.residuals(theta)
    correlation = float(np.mean(correlation_samples(residuals, rows.keep, rows.run)))
    everything = ~out_already
    strengths = trusted * correlation * np.array([1.0, 0.1, 0.01, _WEAKEST])
    predicted = np.array(
        [
            _left_out_cost(folds, scale, w * prior, centre, model.nonnegative, everything)
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
            costs[out] = _left_out_cost(
                folds, scale, weight * prior, centre, model.nonnegative, used
            )
    leaving: list[str] = [name for name in model.names if name in dropped]
    best = np.min(list(costs.values()), axis=0)
    chosen = np.empty(joints)
    for k in range(joints):
        fine = [out for out, cost in costs.items() if cost[k] <= worth * best[k]]
        out = max(fine, key=lambda one: (len(one), -costs[one][k]))
        chosen[k] = costs[out][k]
        leaving += [
            name
            for name, owner, member in zip(
                model.names, model.layout.owner, _members(model, out), strict=True
            )
            if member and owner == k
        ]
    return Choice(tuple(dict.fromkeys(leaving)), weight, correlation, chosen, load)


def gaussian_prior(
    model: TorqueModel,
) -> tuple[Float[Array, "p p"], Float[Array, " p"], bool]:
    """Second derivative of the entropic divergence at the nominal links, and those links.

    The last value tells whether the nominal robot says nothing about any of its links.
    """
    problem = Problem.of(model)
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
    """Over how many samples residuals hang together: 1 + 2 sum of their autocorrelation.

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


def _correlation_guess(samples: Samples) -> float:
    """Before anything was fitted: what the low-pass alone does."""
    return max(1.0, samples.rate_hz / (2.0 * min(samples.cutoff_hz, 0.5 * samples.rate_hz)))


def _groups(model: TorqueModel) -> tuple[str, ...]:
    terms = [term.name for term in model.friction.terms] if model.friction else []
    return tuple(g for g in OPTIONAL if any(t == g or t.startswith(f"{g}_") for t in terms))


def _members(model: TorqueModel, groups: tuple[str, ...]) -> Bool[Array, " p"]:
    """Which parameters belong to any of the groups."""
    layout = model.layout
    return np.array(
        [
            kind != "link" and any(t == g or t.startswith(f"{g}_") for g in groups)
            for t, kind in zip(layout.what, layout.kind, strict=True)
        ]
    )


def _spans(rows: SampleRows) -> list[list[tuple[int, int]]]:
    """Parts to be left out in turn: the runs, or stretches of the rows that are fitted."""
    blocks = rows.blocks()
    runs = np.unique(rows.run)
    if len(runs) >= 3:
        return [[b for b in blocks if rows.run[b[0]] == r] for r in runs]
    counts = np.cumsum(np.any(rows.keep, axis=1))
    cuts = np.searchsorted(counts, np.linspace(0, counts[-1], _FOLDS + 1)[1:-1])
    edges = [0, *cuts.tolist(), len(rows)]
    return [
        [(max(a, lo), min(b, hi)) for a, b in blocks if max(a, lo) < min(b, hi)]
        for lo, hi in pairwise(edges)
    ]


def _grams(rows: SampleRows, spans: list[tuple[int, int]]) -> list[_Gram]:
    p = len(rows.names)
    out = []
    blocks = [(slice(a, b), rows.block(a, b)) for a, b in spans]
    for i in range(rows.joints):
        live = rows.live(i)
        square, right, power, count = np.zeros((p, p)), np.zeros(p), 0.0, 0
        for part, block in blocks:
            keep = rows.keep[part, i]
            own = block[keep, i][:, live]
            y = rows.torque[part, i][keep]
            square[np.ix_(live, live)] += own.T @ own
            right[live] += own.T @ y
            power += float(y @ y)
            count += len(y)
        out.append(_Gram(square, right, power, count))
    return out


def _weighted_fit(
    folds: list[list[_Gram]],
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
    """Parameters from everything, and one over the residual variance of each joint."""
    total = [_sum(own) for own in zip(*folds, strict=True)]
    scale = np.array([max(g.count, 1) / max(g.power, 1e-12) for g in total])
    for _ in range(4):
        theta = _solve(total, scale, prior, centre, nonnegative, np.ones(len(centre), bool))
        floor = 1e-12 * max(g.power for g in total)
        scale = np.array([max(g.count, 1) / max(g.cost(theta), floor, 1e-300) for g in total])
    return theta, scale


def _left_out_cost(
    folds: list[list[_Gram]],
    scale: Float[Array, " j"],
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    used: Bool[Array, " p"],
) -> Float[Array, " j"]:
    """Root mean square error per joint of the folds, each predicted from the others."""
    total = [_sum(own) for own in zip(*folds, strict=True)]
    cost = np.zeros(len(scale))
    for fold in folds:
        rest = [_difference(a, b) for a, b in zip(total, fold, strict=True)]
        theta = _solve(rest, scale, prior, centre, nonnegative, used)
        cost += [part.cost(theta) for part in fold]
    return np.sqrt(cost / np.maximum([g.count for g in total], 1))


def _solve(
    grams: list[_Gram],
    scale: Float[Array, " j"],
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    used: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """Least squares with a Gaussian prior; dissipative terms that come out negative are zero."""
    square = prior + sum(s * g.square for s, g in zip(scale, grams, strict=True))
    right = prior @ centre + sum(s * g.right for s, g in zip(scale, grams, strict=True))
    size = np.sqrt(np.diag(square))
    free = used & (size > 0.0)
    theta = np.zeros(len(right))
    for _ in range(20):
        at = np.flatnonzero(free)
        s = size[at]
        scaled = square[np.ix_(at, at)] / np.outer(s, s)
        scaled[np.diag_indices(len(at))] += 1e-9
        theta[:] = 0.0
        theta[at] = np.linalg.solve(scaled, right[at] / s) / s
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta


def _sum(parts: tuple[_Gram, ...]) -> _Gram:
    return _Gram(
        np.sum([g.square for g in parts], axis=0),
        np.sum([g.right for g in parts], axis=0),
        sum(g.power for g in parts),
        sum(g.count for g in parts),
    )


def _difference(a: _Gram, b: _Gram) -> _Gram:
    return _Gram(a.square - b.square, a.right - b.right, a.power - b.power, a.count - b.count)
