"""How well each parameter is known by itself."""

from __future__ import annotations

from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph, table

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
