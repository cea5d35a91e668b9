"""One displacement over which friction builds up, where a ladder of them explains no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.friction_terms import (
    GUESSED_WEIGHT,
    NOMINAL_WEIGHT,
    WEAKEST,
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

# Widths tried first, a factor of four apart; the best is refined by halves of that, and then by
# parabolas [rad or m].
_COARSE = (1e-4, 4e-4, 1.6e-3, 6.4e-3)
_REFINE = (2.0, 2.0**0.5)
_PARABOLAS = 4


def with_fitted_width(model: TorqueModel, samples: Samples | SampleSource) -> TorqueModel:
    """The model with one fitted pre-sliding width instead of the ladder, or as it was.

    Over N independent samples per joint the ladder must explain more than chance lets its further
    terms explain,

        sum_j N_j log(S_one / S_ladder) > terms,

    S being sums of squared residuals: else one width says all that the data say, and what the
    ladder would add is noise.

    Args:
        model: Friction with memory over several widths, perhaps inside a law of temperature.
        samples: Conditioned motion and torque; of many an excerpt is looked at.
    """
    ladder = () if model.friction is None else model.friction.memory
    if len(ladder) < 2:
        return model
    source = as_source(as_source(samples).excerpt)
    whole, independent = _squares(model, source)
    terms = (len(ladder) - 1) * model.layout.joints

    def loss(width: float) -> float:
        own, _ = _squares(_with(model, (width,)), source, count=False)
        return float(np.sum(independent * np.log(own / whole)))

    found = {width: loss(width) for width in _COARSE}
    best = min(found, key=lambda width: found[width])
    for factor in _REFINE:
        for width in (best / factor, best * factor):
            found[width] = loss(width)
        best = min(found, key=lambda width: found[width])
    for _ in range(_PARABOLAS):
        best = _between(found)
        found[best] = loss(best)
    best = min(found, key=lambda width: found[width])
    return _with(model, (float(f"{best:.4g}"),)) if found[best] < terms else model


def _between(found: dict[float, float]) -> float:
    """Lowest point of the parabola through the best width and its neighbours, in logarithms."""
    widths = sorted(found)
    k = min(max(int(np.argmin([found[w] for w in widths])), 1), len(widths) - 2)
    x = np.log(widths[k - 1 : k + 2])
    y = np.array([found[w] for w in widths[k - 1 : k + 2]])
    curve, slope, _ = np.polyfit(x - x[1], y, 2)
    step = -0.5 * slope / curve if curve > 0.0 else 0.0
    return float(np.exp(np.clip(x[1] + step, x[0], x[2])))


def _squares(model: TorqueModel, source: SampleSource, *, count: bool = True) -> tuple[Any, Any]:
    """Sums of squared residuals per joint with hardly any prior, and independent samples."""
    prior, centre, guessed = gaussian_prior(model)
    trusted = GUESSED_WEIGHT if guessed else NOMINAL_WEIGHT
    weak = WEAKEST * trusted * source.correlation_guess * prior
    base = base_parameters(model)
    load: Load = "measured" if needs(model.term_sum, "load") else None
    theta = None
    for _ in range(1 if load is None else 2):
        load = load if theta is None else theta
        regression = Regression(source, RowBuilder(model, load), base)
        theta, _ = fit_with_prior(regression, weak, centre, model.nonnegative)
    assert theta is not None
    squares = np.maximum(regression.residual_squares(theta), np.finfo(float).tiny)
    if not count:
        return squares, None
    rows = regression.excerpt
    assert isinstance(rows, SampleRows)
    alike = float(np.mean(correlation_samples(rows.residuals(theta), rows.keep, rows.run)))
    return squares, np.maximum(regression.torque.count / alike, 1.0)


def _with(model: TorqueModel, widths: tuple[float, ...]) -> TorqueModel:
    """The model with other widths."""
    assert model.friction is not None
    return replace(model, friction=model.friction.with_memory(widths))
