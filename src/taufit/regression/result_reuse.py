"""Reuse of cached results at nearby parameters.

Cached information matrices are exact for fixed columns. Three quantities depend on the parameters
being fitted: columns of load-dependent friction, residuals, and the noise model; and all columns
depend on a tilt of the base. With a cache they are evaluated at parameters of an earlier fit, the
linearisation point, while

    load        friction differs by less than 2 % of the residual RMS
    residuals   torque differs by less than 5 % of the residual RMS: squares by 0.25 %
    noise       standard deviations and weights differ by less than 5 %, the spectrum by 10 %
    tilt        angles of the base differ by less than 5 % of their standard deviations

What is evaluated on the excerpt stays with the runs of that (`SampleSource`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import GravityTilt
from taufit.regression.regression import Regression
from taufit.regression.rows import RowBuilder, SampleRows
from taufit.signals.sample_source import SampleSource

LOAD_TOLERANCE, RESIDUAL_TOLERANCE, TILT_TOLERANCE = 0.02, 0.05, 0.05


def relative_tolerance(fraction: float) -> Callable[[Array, Array], bool]:
    """Build a comparison: True if all entries differ by less than `fraction` of the larger one."""

    def is_close(candidate: Array, cached: Array) -> bool:
        a, b = np.asarray(candidate), np.asarray(cached)
        if a.shape != b.shape:
            return False
        size = np.maximum(np.abs(a), np.abs(b))
        return bool(
            np.all(np.abs(a - b) <= fraction * np.maximum(size, 1e-9 * size.max(initial=0.0)))
        )

    return is_close


def reusable_parameters(regression: Regression, values: Float[Array, " p"]) -> Float[Array, " p"]:
    """Cached parameters with negligibly different residuals, or `values`."""

    def is_close(candidate: Float[Array, " p"], cached: Float[Array, " p"]) -> bool:
        if candidate.shape != cached.shape:
            return False
        step = regression.base.mapping @ (candidate - cached)
        change = np.array(
            [
                np.sum((joint_information.factor @ step) ** 2)
                for joint_information in regression.by_joint
            ]
        )
        return bool(
            np.all(change <= RESIDUAL_TOLERANCE**2 * regression.residual_squares(candidate))
        )

    return regression.reuse_if_close("values", values, is_close)  # type: ignore[no-any-return]


def reusable_model(model: FittedModel, source: SampleSource) -> FittedModel:
    """Cached model with negligibly different residuals, or `model`."""

    def is_close(
        candidate: tuple[TorqueModel, Float[Array, " p"]],
        cached: tuple[TorqueModel, Float[Array, " p"]],
    ) -> bool:
        if candidate[1].shape != cached[1].shape or candidate[0].names != cached[0].names:
            return False
        rows, cached_rows = (RowBuilder(*x)(source.excerpt) for x in (candidate, cached))
        torque = rows.predict(candidate[1]), cached_rows.predict(cached[1])
        return _is_negligible(rows, *torque, RESIDUAL_TOLERANCE)

    # Ranges of positions grow with every file.
    name = ("model", model.structure.unbounded().term_sum, model.names)
    structure, values = source.reuse_if_close(name, (model.structure, model.values), is_close)
    return model if values is model.values else FittedModel(structure, values, model.training)


def reusable_tilt(model: TorqueModel, source: SampleSource, tilt: GravityTilt) -> GravityTilt:
    """Tilt with cached angles that differ negligibly, or `tilt`.

    Every column of the links depends on it, so that any other tilt means another pass.
    """

    def is_close(candidate: Float[Array, " 2"], cached: Float[Array, " 2"]) -> bool:
        return bool(np.all(np.abs(candidate - cached) <= TILT_TOLERANCE * tilt.std))

    return replace(tilt, angles=source.reuse_if_close(("tilt", model), tilt.angles, is_close))


def reusable_load_parameters(
    model: TorqueModel, source: SampleSource, load: Float[Array, " p"], stage: str
) -> Float[Array, " p"]:
    """Cached parameters of a stage whose load gives nearly the same friction, or `load`."""

    def is_close(candidate: Float[Array, " p"], cached: Float[Array, " p"]) -> bool:
        if candidate.shape != cached.shape:
            return False
        rows, cached_rows = (RowBuilder(model, x)(source.excerpt) for x in (candidate, cached))
        torque = rows.predict(candidate), cached_rows.predict(candidate)
        return _is_negligible(rows, *torque, LOAD_TOLERANCE)

    return source.reuse_if_close(("load", stage, model), load, is_close)  # type: ignore[no-any-return]


def _is_negligible(
    rows: SampleRows, torque: Float[Array, "n j"], other: Float[Array, "n j"], tolerance: float
) -> bool:
    """Whether torque differs by less than a fraction of its residual RMS, at every joint."""
    change = np.sum(np.where(rows.keep, other - torque, 0.0) ** 2, axis=0)
    residual_power = np.sum(np.where(rows.keep, rows.torque - torque, 0.0) ** 2, axis=0)
    return bool(np.all(change <= tolerance**2 * residual_power))
