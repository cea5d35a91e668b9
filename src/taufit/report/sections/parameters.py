"""Base parameters with their intervals."""

from __future__ import annotations

import numpy as np

from taufit.core.statistics import NORMAL_95
from taufit.report.model_view import ModelView
from taufit.report.page import Raw, Section, paragraph, table


def parameters(view: ModelView) -> Section:
    """One row per base parameter."""
    base = view.model.training.base
    if base is None:
        return Section("Parameters", paragraph("This model carries no uncertainty."))
    words = paragraph(
        "Base parameters are what the motion determines, with 95 % intervals from the residuals "
        "as they are. Single masses and inertias of links are one choice among many with the same "
        "torque and are not listed as measurements."
    )
    rows = []
    for name, expression, value, spread in zip(
        base.names, base.expressions, base.values, base.std, strict=True
    ):
        relative = 100 * spread / abs(value) if value else np.inf
        kind = "good" if relative < 10 else "warn" if relative < 30 else "bad"
        size = f"{relative:.3g} %" if relative < 1000 else "over 1000 %"
        mark = f'<span class="{kind}">{size}</span>'
        half = NORMAL_95 * spread
        rows.append(
            [name, float(value), float(value - half), float(value + half), Raw(mark), expression]
        )
    header = ("base parameter", "value", "from", "to", "std", "in full")
    return Section("Parameters", words + table(header, rows, text=(5,)))
