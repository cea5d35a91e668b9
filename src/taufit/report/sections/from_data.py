"""How much of the model came from the data, and how much from what was believed before."""

from __future__ import annotations

from taufit.model.from_data import known_speed
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph, table


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
    known = known_speed(model)
    more = paragraph(known.words) if known is not None and known.words else ""
    return Section("What came from the data", words + table(heads, rows) + more)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f}"
