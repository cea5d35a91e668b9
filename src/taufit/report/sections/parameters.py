"""Parameters: their intervals, what is identifiable, what the data showed, the nominal robot."""

from __future__ import annotations

import numpy as np

from taufit.core.statistics import NORMAL_95
from taufit.model.information_share import measured_speed_range
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


def from_data(view: ModelView) -> Section | None:
    """Shares by link and friction term; None where nothing was believed before."""
    model = view.model
    shares = model.training.from_data
    if shares is None:
        return None
    words = paragraph(
        "Percent of each link and of each friction term that the recordings determine. The rest "
        "of a link is as in the nominal robot, the rest of a friction term as small as it usually "
        "is. A term at 0 was not seen at all."
    )
    heads = ("joint", "link", *model.layout.drive_names)
    rows = [
        (view.joint_label(j), _percent(shares.links[j]), *(_percent(x) for x in shares.terms[j]))
        for j in range(view.joints)
    ]
    known = measured_speed_range(model)
    more = paragraph(known.describe) if known is not None and known.describe else ""
    return Section("What came from the data", words + table(heads, rows) + more)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f}"


_ORDER = (
    "well",
    "fairly",
    "poorly",
    "only in combination",
    "no effect",
    "not supported by the data",
)


def identifiability(view: ModelView) -> Section:
    """Names by verdict."""
    groups: dict[str, list[str]] = {}
    for name, word in zip(view.model.names, view.model.training.verdicts, strict=False):
        groups.setdefault(str(word), []).append(name)
    if not groups:
        return Section("Identifiability", paragraph("Nothing is recorded about identifiability."))
    rows = [(word, len(groups[word]), ", ".join(groups[word])) for word in _ORDER if word in groups]
    words = paragraph(
        "How well each parameter is known by itself: well below 10 % standard deviation, fairly "
        "below 30 %. What is known only in combination shows in the base parameters above; what "
        "has no effect can be anything."
    )
    listed = table(("known", "count", "parameters"), rows, text=(2,))
    return Section("Identifiability", words + listed)


def nominal_robot(view: ModelView) -> Section | None:
    """RMSE per joint of the nominal robot, with fitted friction, and of the fitted model."""
    compared = view.nominal
    if compared is None:
        return None
    rows = [
        ("nominal robot", *(float(x) for x in compared.nominal.rmse)),
        ("nominal links, fitted friction", *(float(x) for x in compared.with_friction.rmse)),
        ("fitted", *(float(x) for x in compared.fitted.rmse)),
    ]
    words = paragraph(
        "RMSE in N m on the training data. Identification removes "
        f"{100 * compared.reduction:.0f} % of the error of the robot's description."
    )
    listed = table(("model", *(f"J{i + 1}" for i in range(view.joints))), rows)
    return Section("Comparison with the nominal robot", words + listed)
