"""Friction coefficients and offsets of a fitted model, by joint."""

from __future__ import annotations

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel


def friction_coefficients(model: FittedModel) -> Float[Array, "j k"]:
    """Coefficients of friction and further terms at the motors, one row per joint."""
    model.columns.require_at_motors(model.values)
    return model.layout.split(model.values).drive


def offsets(model: FittedModel) -> Float[Array, " j"]:
    """Fitted torque offsets [N m]."""
    return model.layout.split(model.values).offsets
