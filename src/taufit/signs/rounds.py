"""Rounds of a sign search: cut, search, refine, cut again at zero crossings of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError
from taufit.signs.constrained_signs import ConsistentCost, search_constrained_signs
from taufit.signs.data import SearchData, search_regressor
from taufit.signs.folded_normal import FoldedNormalFit, fit_folded_normal, log_likelihood
from taufit.signs.physics import (
    MARGIN_LIMIT,
    choose_signs_by_physics,
    functional_contributions,
    inconsistency_cost,
)
from taufit.signs.quadratic_form import QuadraticForm, build_quadratic_form
from taufit.signs.search import SignSearch, search_signs
from taufit.signs.segments import (
    Segmentation,
    cut_segments,
)
from taufit.signs.weights import find_unsettled_ends, row_weights

# Change of the predicted torque between rounds, relative to its noise, above which another round is
# added, and the maximum number of added rounds.
ROUND_TOLERANCE, MAXIMUM_EXTRA_ROUNDS = 0.1, 3


@dataclass(frozen=True, slots=True, eq=False)
class SearchRound:
    """Result of one round: segments, quadratic form, search, and the refined model."""

    segmentation: Segmentation
    form: QuadraticForm
    search: SignSearch
    signs: Int[Array, " s"]
    margins: Float[Array, " s"]
    fit: FoldedNormalFit
    undecided: Bool[Array, " s"]
    untrusted: Bool[Array, " n"]
    weight: Float[Array, "n j"]
    certified: bool


def search_rounds(data: SearchData, rounds: int, node_cap: int) -> SearchRound:
    """Alternate cutting, searching and fitting; returns the last round that found segments."""
    samples = data.samples
    keep = np.asarray(samples.keep, bool)
    weight = np.broadcast_to(1.0 / data.noise, data.values.shape)
    noise, predicted = data.noise, None
    untrusted = np.zeros(len(samples), bool)
    result: SearchRound | None = None
    number, last = 0, max(rounds, 1)
    while number < last:
        number += 1
        segmentation = cut_segments(
            data.magnitude,
            samples.velocity,
            samples.time,
            samples.run,
            keep & ~data.has_sign,
            noise,
            samples.rate_hz,
            predicted=predicted,
            untrusted=untrusted,
            borders=data.borders,
            weight=weight,
        )
        if result is not None and len(segmentation) < np.sum(~np.all(data.has_sign, axis=0)):
            # The residual is so large that hardly a segment remains: keep the previous round.
            break
        trusted = keep & ~untrusted[:, None]
        label = np.where(data.signed & trusted, len(segmentation), segmentation.label)
        if not np.any(label >= 0):
            raise PoorExcitationError(
                "no segment of torque stands out of the noise: signs cannot be determined. Record "
                "a faster motion, or one with more load."
            )
        form = build_quadratic_form(data.rows, data.values, weight, label, len(segmentation))
        search = search_signs(
            form.quadratic, anchor=form.anchor, radius=MARGIN_LIMIT, node_cap=node_cap
        )
        signs, margins, undecided = choose_signs_by_physics(data, segmentation, form, search)
        fit = fit_folded_normal(
            data.rows,
            data.values,
            data.signed,
            trusted,
            form.parameters(signs),
            0.2 * data.noise,
            # Earlier rounds only need zero crossings; the last one needs accuracy.
            tolerance=1e-6 if number >= rounds else 1e-4,
        )
        if result is not None and number > rounds and not _is_better(data, fit, result, untrusted):
            break
        result = SearchRound(
            segmentation,
            form,
            search,
            signs,
            margins,
            fit,
            undecided,
            untrusted,
            weight,
            search.certified,
        )
        if (
            number == last
            and 1 < number < rounds + MAXIMUM_EXTRA_ROUNDS
            and _has_changed(fit, predicted)
        ):
            # A wrong first round may mislead the second; a converged model does not change.
            last += 1
        predicted, noise = fit.predicted, np.maximum(fit.noise, data.noise)
        untrusted = find_unsettled_ends(data, fit)
        weight = row_weights(data, fit)
    assert result is not None
    return result


def _has_changed(fit: FoldedNormalFit, previous: Float[Array, "n j"] | None) -> bool:
    """Whether a round changed the predicted torque by more than a small part of its noise."""
    if previous is None:
        return False
    return bool(np.mean(((fit.predicted - previous) / fit.noise) ** 2) > ROUND_TOLERANCE**2)


def _is_better(
    data: SearchData, fit: FoldedNormalFit, earlier: SearchRound, untrusted: Bool[Array, " n"]
) -> bool:
    """Whether a fit explains the samples used by both better than an earlier round."""
    used_by_both = np.asarray(data.samples.keep, bool) & ~(untrusted | earlier.untrusted)[:, None]
    new_likelihood, old_likelihood = (
        log_likelihood(data.values, data.signed, used_by_both, model_fit.predicted, model_fit.noise)
        for model_fit in (fit, earlier.fit)
    )
    return new_likelihood > old_likelihood


def constrain_round(data: SearchData, search_round: SearchRound) -> SearchRound:
    """Replace the signs of a round by those of the best physically consistent model."""
    samples, segmentation, form = data.samples, search_round.segmentation, search_round.form
    keep = np.asarray(samples.keep, bool) & ~search_round.untrusted[:, None]
    label = np.where(data.signed & keep, len(segmentation), segmentation.label)
    is_used = label >= 0
    weight = search_round.weight[is_used]
    regressor_rows = search_regressor(data.model, samples, data.load)[is_used]
    cost = ConsistentCost(
        data.model,
        regressor_rows * weight[:, None],
        data.values[is_used] * weight,
        label[is_used],
        len(form.quadratic),
    )
    level = functional_contributions(data, form, np.unique(segmentation.joint))
    solution = search_constrained_signs(
        form.quadratic,
        cost,
        anchor=form.anchor,
        lower_bound=lambda s: float(s @ form.quadratic @ s) + inconsistency_cost(level, s),
        radius=MARGIN_LIMIT,
    )
    fit = fit_folded_normal(
        data.rows,
        data.values,
        data.signed,
        keep,
        form.parameters(solution.signs),
        0.2 * data.noise,
    )
    return replace(
        search_round,
        signs=solution.signs,
        margins=solution.margins,
        fit=fit,
        undecided=np.zeros(len(solution.signs), bool),
        certified=solution.certified,
    )
