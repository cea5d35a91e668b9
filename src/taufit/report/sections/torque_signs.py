"""Torque signs that were not recorded and had to be found."""

from __future__ import annotations

from taufit.report.model_view import ModelView
from taufit.report.page import Section
from taufit.report.signs_picture import signs_picture


def torque_signs(view: ModelView) -> Section | None:
    """The segments and their signs."""
    return None if view.signs is None else Section("Torque signs", signs_picture(view.signs))
