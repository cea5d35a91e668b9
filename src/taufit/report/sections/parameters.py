"""Parameter sections: intervals, identifiability, information share, nominal robot."""

from __future__ import annotations

import numpy as np

from taufit.core.number_text import interval, percent, significant
from taufit.core.statistics import NORMAL_95
from taufit.model.fitted_model import FittedModel
from taufit.model.information_share import measured_speed_range
from taufit.model.training_record import IDENTIFIABLE, BaseRecord
from taufit.report.model_view import ModelView
from taufit.report.page import Markup, Number, Section, paragraph, table
from taufit.report.parameter_words import parameter_words


def parameters(view: ModelView) -> Section:
    """Base parameters with intervals, identifiable ones first."""
    base = view.model.training.base
    if base is None:
        return Section("Parameters", paragraph("This model has no covariance."), "no covariance")
    explanation = paragraph(
        "Base parameters are determined by the motion, with 95 % intervals from the residuals. "
        "Single masses and inertias of links are one choice among many with the same torque and "
        "are not listed as measurements. Identifiable: standard deviation below 30 %."
    )
    relative = base.std_fraction
    rows = [_row(view.model, base, int(k), float(relative[k])) for k in np.argsort(relative)]
    identifiable = int(np.count_nonzero(base.identifiable))
    header = ("base parameter", "value ± 95 %", "unit", "std", "name", "in full")
    gist = f"{identifiable} of {len(base.names)} identifiable"
    identifiable_table = table(
        header, rows[:identifiable], text=(0, 2, 4, 5), name="Identifiable parameters"
    )
    hidden = ""
    if identifiable < len(rows):
        hidden = (
            f"<details><summary>{len(rows) - identifiable} parameters that the motion hardly "
            "shows</summary>"
            f"{table(header, rows[identifiable:], text=(0, 2, 4, 5), name='Other parameters')}"
            "</details>"
        )
    return Section("Parameters", explanation + identifiable_table + hidden, gist)


def _row(model: FittedModel, base: BaseRecord, k: int, relative: float) -> tuple[object, ...]:
    name, value, std = base.names[k], float(base.values[k]), float(base.std[k])
    words, unit = parameter_words(model, name)
    kind = "good" if relative < 0.1 else "warn" if relative < IDENTIFIABLE else "bad"
    size = percent(relative, 0 if relative >= 0.1 else 1) if relative <= 1.0 else "> 100 %"
    mark = Markup(f'<span class="{kind}">{size}</span>')
    full = base.expressions[k] if base.expressions[k] != name else ""
    unit = unit.replace(" ", "\N{NO-BREAK SPACE}") or "1"
    return words, Number(value, interval(value, NORMAL_95 * std)), unit, mark, name, full


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
    gist = f"{_percent(float(np.mean(shares.links)))} % of the links' parameters"
    data_table = table(header, rows, name="What came from the data")
    return Section("What came from the data", explanation + data_table + speed_text, gist)


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
        text = "Nothing is recorded about identifiability."
        return Section("Identifiability", paragraph(text), "not recorded")
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
    gist = f"{len(groups.get('well', []))} parameters known well by themselves"
    return Section("Identifiability", explanation + verdict_table, gist)


def nominal_robot(view: ModelView) -> Section | None:
    """RMSE per joint of nominal robot, nominal links with fitted friction, and fitted model."""
    comparison = view.nominal
    if comparison is None:
        return None
    rows = [
        (name, *(Number(float(x), significant(float(x))) for x in score.rmse))
        for name, score in (
            ("nominal robot", comparison.nominal),
            ("nominal links, fitted friction", comparison.with_friction),
            ("fitted", comparison.fitted),
        )
    ]
    less = percent(comparison.reduction, 0)
    explanation = paragraph(
        "RMSE in N m on the training data. Identification removes "
        f"{less} of the error of the robot's description."
    )
    rmse_table = table(("model", *(f"J{i + 1}" for i in range(view.joints))), rows)
    return Section(
        "Comparison with the nominal robot", explanation + rmse_table, f"{less} less error"
    )
