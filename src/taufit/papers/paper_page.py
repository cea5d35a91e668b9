"""HTML page of a paper: printed values next to ours, in the order of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from taufit.papers.exhibit import Exhibit, Paper
from taufit.report.page import Section, bullets, cards, paragraph, render_page, table, verdict_box


def paper_page(paper: Paper, exhibits: Sequence[Exhibit]) -> str:
    """Self-contained HTML page."""
    entries = [entry for exhibit in exhibits for entry in exhibit.entries]
    comparable = [entry for entry in entries if entry.agrees is not None]
    agreement_count = sum(bool(entry.agrees) for entry in comparable)
    missing = [exhibit for exhibit in exhibits if exhibit.missing]
    head = verdict_box(
        "good" if agreement_count == len(comparable) else "warn",
        f"{agreement_count} of {len(comparable)} numbers that must agree do",
        "Other numbers stand beside each other with the reason why they differ.",
    )
    figures = cards(
        [
            ("tables and figures", str(len(exhibits))),
            ("numbers compared", str(len(entries))),
            ("not reproduced", str(len(missing))),
        ]
    )
    sections = [
        Section("Summary", head + figures),
        Section("Errata", bullets(list(paper.errata))),
        *(Section(f"{e.label}: {e.title}", _body(e)) for e in exhibits),
    ]
    return render_page(paper.title, f"{paper.authors}. {paper.journal}.", sections)


def _body(exhibit: Exhibit) -> str:
    body = paragraph(f"Not reproduced: {exhibit.missing}") if exhibit.missing else ""
    body += "".join(paragraph(text) for text in exhibit.text)
    if exhibit.entries:
        rows = [
            (
                entry.name,
                entry.printed,
                entry.computed,
                entry.unit,
                {True: "yes", False: "NO", None: ""}[entry.agrees],
                entry.reason,
            )
            for entry in exhibit.entries
        ]
        body += table(("", "printed", "ours", "unit", "agrees", "why"), rows, text=(0, 3, 4, 5))
    return body + "".join(exhibit.figures)
