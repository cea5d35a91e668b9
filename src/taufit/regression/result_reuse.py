"""Parameters that results are kept for, where the fitted ones are near enough to them.

Triangles on given columns add up exactly. Three things are not of that kind, because they depend on
the parameters being fitted: columns of friction that grows with the load, residuals, and the colour
of the noise. Where results are kept, these are taken at parameters that were fitted earlier, as
long as the difference is far below what the noise does:

    load        gear torque differs by less than 0.1 % of its largest value (1 % where only the
                scales of priors are looked for)
    residuals   torque differs by less than 1 % of the residuals' root mean square
    noise       standard deviations and weights differ by less than 1 %
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.regression.regression import Regression
from taufit.regression.rows import RowBuilder
from taufit.signals.sample_source import SampleSource

LOAD, RESIDUALS = 1e-3, 1e-2
# That of the search for prior scales, which a load follows from that is nearer still.
FIRST_LOAD = 1e-2


def relative_tolerance(share: float) -> Callable[[Array, Array], bool]:
    """Whether arrays differ by less than a share of the larger, entry by entry."""

    def near(now: Array, known: Array) -> bool:
        a, b = np.asarray(now), np.asarray(known)
        if a.shape != b.shape:
            return False
        size = np.maximum(np.abs(a), np.abs(b))
        return bool(np.all(np.abs(a - b) <= share * np.maximum(size, 1e-9 * size.max(initial=0.0))))

    return near


def reusable_parameters(regression: Regression, values: Float[Array, " p"]) -> Float[Array, " p"]:
    """Parameters whose residuals are those of `values`, as far as noise lets one tell."""

    def near(now: Float[Array, " p"], known: Float[Array, " p"]) -> bool:
        if now.shape != known.shape:
            return False
        step = regression.base.mapping @ (now - known)
        moved = np.array([np.sum((one.factor @ step) ** 2) for one in regression.by_joint])
        return bool(np.all(moved <= RESIDUALS**2 * regression.squares(now)))

    return regression.settled("values", values, near)  # type: ignore[no-any-return]


def reusable_model(model: FittedModel, source: SampleSource) -> FittedModel:
    """A model whose residuals are those of `model`, as far as noise lets one tell."""

    def near(
        now: tuple[TorqueModel, Float[Array, " p"]], known: tuple[TorqueModel, Float[Array, " p"]]
    ) -> bool:
        if now[1].shape != known[1].shape or now[0].names != known[0].names:
            return False
        rows = RowBuilder(now[0], now[1])(source.excerpt)
        predicted = rows.explained(now[1])
        other = RowBuilder(known[0], known[1])(source.excerpt).explained(known[1])
        moved = np.sum(np.where(rows.keep, other - predicted, 0.0) ** 2, axis=0)
        left = np.sum(np.where(rows.keep, rows.torque - predicted, 0.0) ** 2, axis=0)
        return bool(np.all(moved <= RESIDUALS**2 * left))

    name = ("model", model.term_sum, model.names)
    structure, values = source.reuse_if_close(name, (model.structure, model.values), near)
    return model if values is model.values else FittedModel(structure, values, model.training)


def reusable_load_parameters(
    model: TorqueModel, source: SampleSource, load: Float[Array, " p"], share: float = LOAD
) -> Float[Array, " p"]:
    """Parameters whose links put the load of `load` on the gears, nearly."""

    def near(now: Float[Array, " p"], known: Float[Array, " p"]) -> bool:
        if now.shape != known.shape:
            return False
        rows = RowBuilder(model)(source.excerpt)
        carried = rows.rigid(now)
        moved = np.abs(rows.rigid(known) - carried).max(initial=0.0)
        return bool(moved <= share * np.abs(carried).max(initial=0.0))

    return source.reuse_if_close(("load", share, model), load, near)  # type: ignore[no-any-return]
