"""HTML page of a paper: its tables and figures in their order, printed values next to ours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby

from taufit.core.number_text import count_text, fixed
from taufit.papers.exhibit import (
    ComparedRow,
    ComparedValue,
    Exhibit,
    Paper,
    count_by_kind,
)
from taufit.report.charts import chart_group
from taufit.report.page import (
    Markup,
    Section,
    bullets,
    numbers,
    paragraph,
    render_page,
    rich_text,
    small_text,
    statement,
    statements,
    table,
    to_text,
    with_sidebar,
)

# Differences below this share of the printed value are rounding.
_ROUNDING = 1e-9


def paper_page(paper: Paper, exhibits: Sequence[Exhibit]) -> str:
    """Self-contained HTML page: first figure on the first screen, the others folded."""
    first_figure = next((exhibit for exhibit in exhibits if exhibit.figures), None)
    first = "" if first_figure is None else _figures(first_figure)
    sections = [
        Section("Verdict", _statements(exhibits) + with_sidebar(first, _counts(exhibits))),
        *(Section(f"{e.label}: {e.title}", _body(e, first_figure), _gist(e)) for e in exhibits),
    ]
    if paper.errata:
        gist = f"{len(paper.errata)} found"
        sections.append(Section("Errata of the paper", bullets(list(paper.errata)), gist))
    subtitle = ". ".join(text for text in (paper.authors, paper.journal) if text)
    return render_page(paper.title, f"{subtitle}.", sections)


def _statements(exhibits: Sequence[Exhibit]) -> str:
    """Judged numbers by kind: those that could disagree, and those that were given."""
    counts = count_by_kind(exhibits)
    independent, of_all = counts["independent"]
    orders, all_orders = counts["order"]
    returned, all_given = counts["given"]
    order_text = f"Orders of methods as printed: {orders} of {all_orders}." if all_orders else ""
    return statements(
        statement(
            "good" if independent == of_all else "warn",
            "Independent: computed here without the printed value",
            f"{independent} of {of_all}",
            " numbers come out as printed",
            detail=[f"Each could disagree. {order_text}".strip()],
        ),
        statement(
            "model" if returned == all_given else "warn",
            "Given to the simulated arm",
            f"{returned} of {all_given}" if all_given else "None",
            " numbers are returned" if all_given else " of the printed numbers",
            detail=["They were put into the simulated arm; the identification finds them again."]
            if all_given
            else [],
        ),
    )


def _counts(exhibits: Sequence[Exhibit]) -> str:
    unjudged = sum(entry.kind is None for e in exhibits for entry in e.entries)
    missing = sum(bool(exhibit.missing) for exhibit in exhibits)
    return numbers(
        [
            (str(len(exhibits)), "", "tables and figures"),
            (str(missing), "", "of them left out" + "; the page says why" * bool(missing)),
            (str(unjudged), "", "numbers beside each other, not judged; footnotes say why"),
        ]
    )


def _gist(exhibit: Exhibit) -> str:
    """Judged numbers of a table or figure."""
    if exhibit.missing:
        return "not reproduced"
    counts = [f"{kind} {a} of {b}" for kind, (a, b) in count_by_kind([exhibit]).items() if b]
    if exhibit.figures and not exhibit.entries:
        return count_text(len(exhibit.figures), "chart")
    return ", ".join(counts) or count_text(len(exhibit.entries), "number")


def _figures(exhibit: Exhibit) -> str:
    layout = "pairs" if len(exhibit.figures) > 1 else "rows tall"
    charts = chart_group(exhibit.figures, exhibit.label, layout)
    return charts + small_text(f"{exhibit.label}: {exhibit.title}")


def _body(exhibit: Exhibit, first_figure: Exhibit | None) -> str:
    """Text, tables and charts; those of `first_figure` stand on the first screen."""
    body = paragraph(f"Not reproduced: {exhibit.missing}") if exhibit.missing else ""
    body += "".join(paragraph(text) for text in exhibit.text)
    reasons = list(dict.fromkeys(row.reason for row in exhibit.rows if row.reason))
    for columns, rows in groupby(exhibit.rows, key=lambda row: row.columns):
        make = _value_table if columns == ("",) else _column_table
        body += make(list(rows), reasons)
    body += "".join(
        f'<p class="sub"><sup>{k}</sup> {rich_text(reason)}</p>'
        for k, reason in enumerate(reasons, 1)
    )
    if exhibit is first_figure:
        return body + small_text("Its charts are at the top of this page.")
    return body + (_figures(exhibit) if exhibit.figures else "")


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
    """Difference with the decimals of the values; coloured and marked if it is judged."""
    difference = entry.difference
    if difference is not None and abs(difference) < _ROUNDING * max(1.0, abs(entry.printed or 0.0)):
        difference = 0.0
    text = html.escape(_difference_text(difference, (entry.printed, entry.computed)))
    if entry.agrees is None:
        return Markup(text)
    colour, mark = ("good", "") if entry.agrees else ("bad", " NO")
    return Markup(f'<span class="{colour}">{text}{mark}</span>')


def _difference_text(difference: float | None, values: tuple[float | None, float | None]) -> str:
    """Difference as exact as the coarser of the two values."""
    if difference is None or difference == 0.0:
        return to_text(difference)
    decimals = [
        len(to_text(x).partition(".")[2]) for x in values if x and not float(x).is_integer()
    ]
    return fixed(difference, min(decimals)) if decimals else to_text(difference)


def _value_table(rows: Sequence[ComparedRow], reasons: list[str]) -> str:
    """Table with a line per value."""
    lines = [
        (_name(row, reasons), entry.printed, _value(entry), _difference(entry), entry.kind or "")
        for row in rows
        for entry in row.entries
    ]
    return table(("quantity", "printed", "ours", "difference", "kind"), lines, text=(0, 4))


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
    return table(("quantity", "value", *rows[0].columns), lines, text=(0, 1))
