"""Selection of a single fitted pre-sliding width in place of several fixed ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.friction_terms import (
    GUESSED_WEIGHT,
    MIN_PRIOR_FRACTION,
    NOMINAL_WEIGHT,
    correlation_samples,
    fit_with_prior,
    gaussian_prior,
)
from taufit.model.torque_model import TorqueModel
from taufit.regression.regression import Regression
from taufit.regression.rows import Load, RowBuilder, SampleRows
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import needs
from taufit.terms.friction import Friction

# Initial widths, a factor of four apart [rad or m]; the best is refined by smaller factors and then
# by parabolic interpolation.
_COARSE_WIDTHS = (1e-4, 4e-4, 1.6e-3, 6.4e-3)
_REFINEMENT_FACTORS = (2.0, 2.0**0.5)
_PARABOLAS = 4


def with_fitted_width(model: TorqueModel, samples: Samples | SampleSource) -> TorqueModel:
    """Model with one fitted pre-sliding width, or unchanged if several widths explain more.

    Over N independent samples per joint, several widths are kept if they explain more than the
    additional terms would by chance,

        sum_j N_j log(S_one / S_ladder) > terms,

    S being sums of squared residuals.

    Args:
        model: Friction with memory over several widths, possibly inside a temperature law.
        samples: Conditioned motion and torque; of long recordings an excerpt is used.
    """
    ladder = () if model.friction is None else model.friction.memory
    if len(ladder) < 2:
        return model
    source = as_source(as_source(samples).excerpt)
    ladder_squares, independent = _residual_squares(model, source)
    terms = (len(ladder) - 1) * model.layout.joints

    def loss(width: float) -> float:
        single_squares, _ = _residual_squares(_with_widths(model, (width,)), source, count=False)
        return float(np.sum(independent * np.log(single_squares / ladder_squares)))

    losses = {width: loss(width) for width in _COARSE_WIDTHS}
    best = min(losses, key=lambda width: losses[width])
    for factor in _REFINEMENT_FACTORS:
        for width in (best / factor, best * factor):
            losses[width] = loss(width)
        best = min(losses, key=lambda width: losses[width])
    for _ in range(_PARABOLAS):
        best = _parabola_minimum(losses)
        losses[best] = loss(best)
    best = min(losses, key=lambda width: losses[width])
    return _with_widths(model, (float(f"{best:.4g}"),)) if losses[best] < terms else model


def _parabola_minimum(losses: dict[float, float]) -> float:
    """Minimum of the parabola through the best width and its neighbours, in logarithms."""
    widths = sorted(losses)
    k = min(max(int(np.argmin([losses[w] for w in widths])), 1), len(widths) - 2)
    x = np.log(widths[k - 1 : k + 2])
    y = np.array([losses[w] for w in widths[k - 1 : k + 2]])
    below, above = (y[0] - y[1]) / (x[0] - x[1]), (y[2] - y[1]) / (x[2] - x[1])
    curve = (above - below) / (x[2] - x[0])
    slope = below - curve * (x[0] - x[1])
    step = -0.5 * slope / curve if curve > 0.0 else 0.0
    return float(np.exp(np.clip(x[1] + step, x[0], x[2])))


def _residual_squares(
    model: TorqueModel, source: SampleSource, *, count: bool = True
) -> tuple[Any, Any]:
    """Sums of squared residuals per joint with a weak prior, and independent samples."""
    prior, centre, is_guessed = gaussian_prior(model)
    nominal_weight = GUESSED_WEIGHT if is_guessed else NOMINAL_WEIGHT
    weak_prior = MIN_PRIOR_FRACTION * nominal_weight * source.filter_correlation_length * prior
    base = base_parameters(model)
    load: Load = "measured" if needs(model.term_sum, "load") else None
    theta = None
    for _ in range(1 if load is None else 2):
        load = load if theta is None else theta
        regression = Regression(source, RowBuilder(model, load), base)
        theta, _ = fit_with_prior(regression, weak_prior, centre, model.nonnegative)
    assert theta is not None
    squares = np.maximum(regression.residual_squares(theta), np.finfo(float).tiny)
    if not count:
        return squares, None
    rows = regression.excerpt
    assert isinstance(rows, SampleRows)
    correlation = float(np.mean(correlation_samples(rows.residuals(theta), rows.keep, rows.run)))
    return squares, np.maximum(regression.torque.count / correlation, 1.0)


def _with_widths(model: TorqueModel, widths: tuple[float, ...]) -> TorqueModel:
    """Model with other pre-sliding widths."""
    assert isinstance(model.friction, Friction)
    return replace(model, friction=model.friction.with_memory(widths))
