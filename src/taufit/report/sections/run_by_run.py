"""Friction of every run against its temperature."""

from __future__ import annotations

from taufit.report.model_view import ModelView
from taufit.report.page import Section
from taufit.report.temperature_page import run_by_run


def run_by_run_section(view: ModelView) -> Section | None:
    """None where the runs do not differ in temperature."""
    if view.fitted_to is None:
        return None
    body = run_by_run(view.model, view.fitted_to, dropped=view.dropped)
    return Section("Run by run against temperature", body) if body else None
