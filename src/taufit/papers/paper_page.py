"""HTML page of a paper: its tables and figures in their order, printed values next to ours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby

from taufit.papers.exhibit import (
    KINDS,
    ComparedRow,
    ComparedValue,
    Exhibit,
    Paper,
    count_kinds,
)
from taufit.report.charts import chart_group
from taufit.report.page import (
    Markup,
    Section,
    bullets,
    cards,
    paragraph,
    render_page,
    table,
    to_text,
    verdict_box,
)

KIND_TITLES = {
    "independent": "independent: computed here without the printed value",
    "order": "order of methods as printed",
    "given": "given to the simulated arm, and returned",
}


def paper_page(paper: Paper, exhibits: Sequence[Exhibit]) -> str:
    """Self-contained HTML page."""
    counts = count_kinds(exhibits)
    differing = [kind for kind in KINDS if counts[kind][0] < counts[kind][1]]
    head = verdict_box(
        "warn" if differing else "good",
        "; ".join(f"{kind} {counts[kind][0]} of {counts[kind][1]}" for kind in KINDS),
        "Numbers and orders that come out as printed, counted apart: an independent number could "
        "disagree, a given one was put into the simulated arm. Other numbers stand beside each "
        "other; footnotes say why they differ.",
    )
    entries = [entry for exhibit in exhibits for entry in exhibit.entries]
    missing = [exhibit for exhibit in exhibits if exhibit.missing]
    figures = cards(
        [(KIND_TITLES[kind], f"{counts[kind][0]} of {counts[kind][1]}") for kind in KINDS]
        + [
            ("numbers beside each other", str(sum(entry.kind is None for entry in entries))),
            ("tables and figures", str(len(exhibits))),
            ("not reproduced", str(len(missing))),
        ]
    )
    sections = [
        Section("Summary", head + figures),
        Section("Errata", bullets(list(paper.errata))),
        *(Section(f"{e.label}: {e.title}", _body(e)) for e in exhibits),
    ]
    subtitle = ". ".join(text for text in (paper.authors, paper.journal) if text)
    return render_page(paper.title, f"{subtitle}.", sections)


def _body(exhibit: Exhibit) -> str:
    body = paragraph(f"Not reproduced: {exhibit.missing}") if exhibit.missing else ""
    body += "".join(paragraph(text) for text in exhibit.text)
    reasons = list(dict.fromkeys(row.reason for row in exhibit.rows if row.reason))
    for columns, rows in groupby(exhibit.rows, key=lambda row: row.columns):
        make = _value_table if columns == ("",) else _column_table
        body += make(list(rows), reasons)
    body += "".join(
        f'<p class="sub"><sup>{k}</sup> {html.escape(reason)}</p>'
        for k, reason in enumerate(reasons, 1)
    )
    return body + (chart_group(exhibit.figures, exhibit.label, "pairs") if exhibit.figures else "")


def _name(row: ComparedRow, reasons: list[str]) -> Markup:
    """Name and unit of a row with the mark of its footnote."""
    mark = f"<sup>{reasons.index(row.reason) + 1}</sup>" if row.reason else ""
    unit = f" [{html.escape(row.unit)}]" if row.unit else ""
    return Markup(f"{html.escape(row.name)}{unit}{mark}")


def _value(entry: ComparedValue) -> str:
    """Our value, with its range over the seeds."""
    if entry.interval is None:
        return to_text(entry.computed)
    low, high = entry.interval
    return f"{to_text(entry.computed)} ({to_text(low)} to {to_text(high)})"


def _difference(entry: ComparedValue) -> Markup:
    """Difference; coloured and marked if it is judged."""
    text = html.escape(to_text(entry.difference))
    if entry.agrees is None:
        return Markup(text)
    colour, mark = ("good", "") if entry.agrees else ("bad", " NO")
    return Markup(f'<span class="{colour}">{text}{mark}</span>')


def _value_table(rows: Sequence[ComparedRow], reasons: list[str]) -> str:
    """Table with a line per value."""
    lines = [
        (_name(row, reasons), entry.printed, _value(entry), _difference(entry), entry.kind or "")
        for row in rows
        for entry in row.entries
    ]
    return table(("", "printed", "ours", "difference", "kind"), lines, text=(0, 4))


def _column_table(rows: Sequence[ComparedRow], reasons: list[str]) -> str:
    """Table in the shape of the paper: joints as columns, lines printed, ours and difference."""
    lines: list[tuple[object, ...]] = []
    for row in rows:
        entries = row.entries
        name: object = _name(row, reasons)
        group: list[tuple[str, list[object], Sequence[float | None]]] = [
            ("printed", [entry.printed for entry in entries], row.printed),
            ("ours", [_value(entry) for entry in entries], row.computed),
            (
                f"difference{f' ({row.kind})' if row.kind else ''}",
                [_difference(entry) for entry in entries],
                [entry.difference for entry in entries],
            ),
        ]
        for label, cells, values in group:
            if any(value is not None for value in values):
                lines.append((name, label, *cells))
                name = ""
    return table(("", "", *rows[0].columns), lines, text=(0, 1))
