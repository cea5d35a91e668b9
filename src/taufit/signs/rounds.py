"""Rounds of a sign search: cut, search, refine, cut again at zero crossings of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.errors import PoorExcitationError
from taufit.signs.constrained import ConsistentCost, search_constrained
from taufit.signs.data import SearchData, search_regressor
from taufit.signs.folded_normal import FoldedFit, fit_folded, log_likelihood
from taufit.signs.physics import RADIUS, broken_physics, choose_signs_by_physics, functional_levels
from taufit.signs.quadratic import SignForm, sign_form
from taufit.signs.search import SignSearch, search_signs
from taufit.signs.segments import (
    Segmentation,
    cut_segments,
)
from taufit.signs.weights import row_weights, unsettled_ends

# Change of the predicted torque between rounds, relative to its noise, above which another round is
# added, and the maximum number of added rounds.
UNSETTLED, FURTHER = 0.1, 3


@dataclass(frozen=True, slots=True, eq=False)
class SearchRound:
    """Result of one round: segments, quadratic form, search, and the refined model."""

    segmentation: Segmentation
    form: SignForm
    search: SignSearch
    signs: Int[Array, " s"]
    margins: Float[Array, " s"]
    fit: FoldedFit
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
    done: SearchRound | None = None
    number, last = 0, max(rounds, 1)
    while number < last:
        number += 1
        cut = cut_segments(
            data.magnitude,
            samples.velocity,
            samples.time,
            samples.run,
            keep & ~data.known,
            noise,
            samples.rate_hz,
            predicted=predicted,
            untrusted=untrusted,
            borders=data.borders,
            weight=weight,
        )
        if done is not None and len(cut) < np.sum(~np.all(data.known, axis=0)):
            # The residual is so large that hardly a segment remains: keep the previous round.
            break
        trusted = keep & ~untrusted[:, None]
        label = np.where(data.signed & trusted, len(cut), cut.label)
        if not np.any(label >= 0):
            raise PoorExcitationError(
                "no segment of torque stands out of the noise: signs cannot be determined. Record "
                "a faster motion, or one with more load."
            )
        form = sign_form(data.rows, data.values, weight, label, len(cut))
        search = search_signs(form.quadratic, anchor=form.anchor, radius=RADIUS, node_cap=node_cap)
        signs, margins, undecided = choose_signs_by_physics(data, cut, form, search)
        fit = fit_folded(
            data.rows,
            data.values,
            data.signed,
            trusted,
            form.parameters(signs),
            0.2 * data.noise,
            # Earlier rounds only need zero crossings; the last one needs accuracy.
            tolerance=1e-6 if number >= rounds else 1e-4,
        )
        if done is not None and number > rounds and not _better(data, fit, done, untrusted):
            break
        done = SearchRound(
            cut, form, search, signs, margins, fit, undecided, untrusted, weight, search.certified
        )
        if number == last and 1 < number < rounds + FURTHER and _changed(fit, predicted):
            # A wrong first round may mislead the second; a converged model does not change.
            last += 1
        predicted, noise = fit.predicted, np.maximum(fit.noise, data.noise)
        untrusted = unsettled_ends(data, fit)
        weight = row_weights(data, fit)
    assert done is not None
    return done


def _changed(fit: FoldedFit, before: Float[Array, "n j"] | None) -> bool:
    """Whether a round changed the predicted torque by more than a small part of its noise."""
    if before is None:
        return False
    return bool(np.mean(((fit.predicted - before) / fit.noise) ** 2) > UNSETTLED**2)


def _better(
    data: SearchData, fit: FoldedFit, done: SearchRound, untrusted: Bool[Array, " n"]
) -> bool:
    """Whether a fit explains the samples used by both better than an earlier round."""
    both = np.asarray(data.samples.keep, bool) & ~(untrusted | done.untrusted)[:, None]
    mine, theirs = (
        log_likelihood(data.values, data.signed, both, one.predicted, one.noise)
        for one in (fit, done.fit)
    )
    return mine > theirs


def constrain(data: SearchData, done: SearchRound) -> SearchRound:
    """Replace the signs of a round by those of the best physically consistent model."""
    samples, cut, form = data.samples, done.segmentation, done.form
    keep = np.asarray(samples.keep, bool) & ~done.untrusted[:, None]
    label = np.where(data.signed & keep, len(cut), cut.label)
    use = label >= 0
    weight = done.weight[use]
    every = search_regressor(data.model, samples, data.load)[use]
    cost = ConsistentCost(
        data.model,
        every * weight[:, None],
        data.values[use] * weight,
        label[use],
        len(form.quadratic),
    )
    level = functional_levels(data, form, np.unique(cut.joint))
    found = search_constrained(
        form.quadratic,
        cost,
        anchor=form.anchor,
        lower_bound=lambda s: float(s @ form.quadratic @ s) + broken_physics(level, s),
        radius=RADIUS,
    )
    fit = fit_folded(
        data.rows,
        data.values,
        data.signed,
        keep,
        form.parameters(found.signs),
        0.2 * data.noise,
    )
    return replace(
        done,
        signs=found.signs,
        margins=found.margins,
        fit=fit,
        undecided=np.zeros(len(found.signs), bool),
        certified=found.certified,
    )
