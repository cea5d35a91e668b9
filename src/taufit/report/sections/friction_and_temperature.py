"""Friction over speed and temperature, where the model has it."""

from __future__ import annotations

from taufit.report.friction_map import friction_map
from taufit.report.model_view import ModelView
from taufit.report.page import Section
from taufit.terms import DISSIPATIVE


def friction_and_temperature(view: ModelView) -> Section | None:
    """Maps per joint; None where friction does not follow temperature."""
    if not view.model.layout.of_kind(DISSIPATIVE).any():
        return None
    maps = friction_map(view.model)
    return Section("Friction and temperature", maps) if maps else None
