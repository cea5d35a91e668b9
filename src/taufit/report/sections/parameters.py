"""Parameter sections: intervals, identifiability, information share, nominal robot."""

from __future__ import annotations

import numpy as np

from taufit.core.statistics import NORMAL_95
from taufit.model.information_share import measured_speed_range
from taufit.report.model_view import ModelView
from taufit.report.page import Markup, Section, paragraph, table


def parameters(view: ModelView) -> Section:
    """Base parameters, one row each."""
    base = view.model.training.base
    if base is None:
        return Section("Parameters", paragraph("This model has no covariance."))
    explanation = paragraph(
        "Base parameters are determined by the motion, with 95 % intervals from the residuals. "
        "Single masses and inertias of links are one choice among many with the same torque and "
        "are "
        "not listed as measurements."
    )
    rows = []
    for name, expression, value, std in zip(
        base.names, base.expressions, base.values, base.std, strict=True
    ):
        relative = 100 * std / abs(value) if value else np.inf
        kind = "good" if relative < 10 else "warn" if relative < 30 else "bad"
        size = f"{relative:.3g} %" if relative < 1000 else "over 1000 %"
        mark = f'<span class="{kind}">{size}</span>'
        half = NORMAL_95 * std
        rows.append(
            [name, float(value), float(value - half), float(value + half), Markup(mark), expression]
        )
    header = ("base parameter", "value", "from", "to", "std", "in full")
    return Section("Parameters", explanation + table(header, rows, text=(5,)))


def information_shares(view: ModelView) -> Section | None:
    """Information shares by link and friction term; None without a prior."""
    model = view.model
    shares = model.training.from_data
    if shares is None:
        return None
    explanation = paragraph(
        "Percentage of each link and friction term that the recordings determine. The rest of a "
        "link is that of the nominal robot, the rest of a friction term its prior. A term at 0 was "
        "not excited."
    )
    header = ("joint", "link", *model.layout.drive_names)
    rows = [
        (view.joint_label(j), _percent(shares.links[j]), *(_percent(x) for x in shares.terms[j]))
        for j in range(view.joints)
    ]
    speed_range = measured_speed_range(model)
    speed_text = (
        paragraph(speed_range.describe) if speed_range is not None and speed_range.describe else ""
    )
    return Section("What came from the data", explanation + table(header, rows) + speed_text)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f}"


_VERDICT_ORDER = (
    "well",
    "fairly",
    "poorly",
    "only in combination",
    "no effect",
    "not supported by the data",
)


def identifiability(view: ModelView) -> Section:
    """Parameters by rating of identifiability."""
    groups: dict[str, list[str]] = {}
    for name, rating in zip(view.model.names, view.model.training.verdicts, strict=False):
        groups.setdefault(str(rating), []).append(name)
    if not groups:
        return Section("Identifiability", paragraph("Nothing is recorded about identifiability."))
    rows = [
        (rating, len(groups[rating]), ", ".join(groups[rating]))
        for rating in _VERDICT_ORDER
        if rating in groups
    ]
    explanation = paragraph(
        "Accuracy of single parameters: well means below 10 % standard deviation, fairly below "
        "30 %. Parameters known only in combination appear in the base parameters above; those "
        "without effect are arbitrary."
    )
    verdict_table = table(("known", "count", "parameters"), rows, text=(2,))
    return Section("Identifiability", explanation + verdict_table)


def nominal_robot(view: ModelView) -> Section | None:
    """RMSE per joint of nominal robot, nominal links with fitted friction, and fitted model."""
    comparison = view.nominal
    if comparison is None:
        return None
    rows = [
        ("nominal robot", *(float(x) for x in comparison.nominal.rmse)),
        ("nominal links, fitted friction", *(float(x) for x in comparison.with_friction.rmse)),
        ("fitted", *(float(x) for x in comparison.fitted.rmse)),
    ]
    explanation = paragraph(
        "RMSE in N m on the training data. Identification removes "
        f"{100 * comparison.reduction:.0f} % of the error of the robot's description."
    )
    rmse_table = table(("model", *(f"J{i + 1}" for i in range(view.joints))), rows)
    return Section("Comparison with the nominal robot", explanation + rmse_table)
