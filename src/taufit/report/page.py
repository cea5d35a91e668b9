"""Self-contained HTML page from sections: style and script inside, no network."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

import taufit
from taufit.core.dataclasses import dataclass
from taufit.core.number_text import fixed, significant
from taufit.report.palette import style_variables

# A torque curve twice, wide and pale, thin and strong on top: measured and predicted.
LOGO = (
    '<svg viewBox="0 0 26 22" aria-hidden="true"><path d="M2 18C8 18 8 4 13 4S18 18 24 '
    '18" fill="none" stroke="var(--measured)" stroke-width="6" stroke-linecap="round"/><path '
    'd="M2 18C8 18 8 4 13 4S18 18 24 18" fill="none" stroke="var(--model)" stroke-width="2.5" '
    'stroke-linecap="round"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a page: title and HTML.

    Attributes:
        title: Heading.
        body: HTML.
        gist: Figure at the right end of the heading. A section with a gist is folded.
    """

    title: str
    body: str
    gist: str = ""

    @property
    def anchor(self) -> str:
        """Identifier for links."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())

    def render(self) -> str:
        """HTML: folded with its gist, or plain."""
        head = f"<h2>{html.escape(self.title)}</h2>"
        if not self.gist:
            return f'<section class="plain" id="{self.anchor}">{head}{self.body}</section>'
        return (
            f'<details class="fold" id="{self.anchor}"><summary>{head}<span class="gist">'
            f"{html.escape(_with_signs(self.gist))}</span></summary><div>{self.body}</div></details>"
        )


def render_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Render a page; the first section has no heading."""
    script = static_text("charts.js")
    if "arm3d" in "".join(s.body for s in sections):
        script += static_text("arm3d.js")
    body = sections[0].body if sections else ""
    body += "".join(section.render() for section in sections[1:])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>'
        f"<style>{page_style()}</style></head><body><main>"
        f'<header class="top">{LOGO}<h1>{html.escape(title)}</h1>'
        f'<p class="sub">{html.escape(subtitle)}</p></header>{body}'
        f'<p class="foot">Written by taufit {taufit.__version__}. Charts: drag to zoom, Shift-drag '
        "to move, Ctrl-wheel, double click to reset; keys + \N{MINUS SIGN} \N{LEFTWARDS ARROW} "
        "\N{RIGHTWARDS ARROW} 0; pinch on a touch screen.</p>"
        f"</main><script>{script}</script></body></html>\n"
    )


def static_text(name: str) -> str:
    """Text of a style sheet or script of the pages."""
    return (files("taufit.report") / "static" / name).read_text(encoding="utf-8")


def page_style() -> str:
    """Style sheet of all pages, colours first."""
    return style_variables() + static_text("page.css")


def statements(*items: str) -> str:
    """Statements side by side at the top of a page."""
    return f'<div class="statements">{"".join(items)}</div>'


def statement(
    kind: str, label: str, lead: str, text: str, *, ruler: str = "", detail: Sequence[str] = ()
) -> str:
    """Statement with its figure first; kind: good, warn, bad or model.

    Args:
        kind: Colour of edge and lead; the words must say it, too.
        label: Quantity.
        lead: Beginning of the sentence, emphasised.
        text: Rest of the sentence.
        ruler: HTML of a ruler.
        detail: Sentences below; several become a list.
    """
    small = "" if not detail else paragraph(detail[0])
    if len(detail) > 1:
        small = bullets(detail)
    return (
        f'<div class="statement {kind}"><small>{html.escape(label)}</small><h2><em>'
        f"{html.escape(lead)}</em>{html.escape(text)}</h2>{ruler}{small}</div>"
    )


def ruler(value: float, edges: Sequence[float], labels: Sequence[str]) -> str:
    """Scale from good to bad with a mark at a value.

    Args:
        value: Marked value; beyond the last edge it stands in the last part.
        edges: Ends of the parts, ascending; the first is where the scale begins.
        labels: Text at each edge but the last.
    """
    low, high = edges[0], edges[-1]

    def place(x: float) -> float:
        """Position in percent: a square root, which leaves room for the good end."""
        return 100.0 * float(np.sqrt(min(max((x - low) / (high - low), 0.0), 1.0)))

    bin_index = next((k for k, edge in enumerate(edges[1:]) if value <= edge), len(edges) - 2)
    count = len(edges) - 1
    grades = [0, 1, 2, 3] if count == 4 else [0, 2, 3] if count == 3 else [0, 3]
    parts = "".join(
        f'<i class="g{grades[k]}{" here" if k == bin_index else ""}" '
        f'style="flex:{place(b) - place(a):.1f}"></i>'
        for k, (a, b) in enumerate(pairwise(edges))
    )
    ticks = "".join(
        f'<span style="left:{place(x):.1f}%">{html.escape(text)}</span>'
        for x, text in zip(edges, labels, strict=False)
    )
    mark = f'<b style="left:{min(place(value), 99.0):.1f}%"></b>'
    return f'<div class="ruler" aria-hidden="true">{parts}{mark}{ticks}</div>'


def numbers(items: Sequence[tuple[str, str, str]]) -> str:
    """Large figures in a column: value, unit, caption."""
    inner = "".join(
        f"<div><b>{html.escape(value)}{f' <small>{html.escape(unit)}</small>' if unit else ''}</b>"
        f"<span>{html.escape(text)}</span></div>"
        for value, unit, text in items
    )
    return f'<div class="numbers">{inner}</div>'


def commands(title: str, items: Sequence[tuple[str, str]]) -> str:
    """Commands to copy, each with its purpose above."""
    inner = "".join(f"<p>{html.escape(purpose)}</p>{code_block(line)}" for purpose, line in items)
    return f'<div class="next"><h2>{html.escape(title)}</h2>{inner}</div>'


def code_block(text: str) -> str:
    """Text to copy."""
    return f'<div class="command"><code>{html.escape(text)}</code></div>'


@dataclass(frozen=True, slots=True)
class Number:
    """Number of a table: text to read, value to sort and to save; nan sorts last."""

    value: float
    text: str


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    text: Sequence[int] = (),
    *,
    name: str = "",
) -> str:
    """Table that can be sorted, searched and saved.

    Floats have four digits, columns in `text` are left-aligned text.
    """
    label = f' data-name="{html.escape(name, quote=True)}"' if name else ""
    head = "".join(
        f"<th{' class=text' if i in text else ''}>{html.escape(title)}</th>"
        for i, title in enumerate(header)
    )
    lines = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            css = ' class="text"' if i in text else ""
            if isinstance(cell, Number):
                value = "" if np.isnan(cell.value) else f"{cell.value:.7g}"
                css += f' data-value="{value}"'
            cells.append(
                f"<td{css}>{cell if isinstance(cell, Markup) else html.escape(to_text(cell))}</td>"
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll" tabindex="0"><table class="data"{label}><thead><tr>{head}</tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


class Markup(str):
    """HTML that needs no escaping."""


def to_text(value: Any) -> str:
    """Number or text for display; a dash if it is missing."""
    if value is None:
        return "–"
    if isinstance(value, Number):
        return value.text
    if isinstance(value, (float, np.floating)):
        number = float(value)
        is_count = number.is_integer() and abs(number) < 1e5
        return fixed(number, 0) if is_count else significant(number, 4)
    return str(value)


def paragraph(text: str) -> str:
    """Text as a paragraph."""
    return f"<p>{rich_text(text)}</p>"


def small_text(text: str) -> str:
    """Text as a paragraph in small letters, below charts and tables."""
    return f'<p class="sub">{rich_text(text)}</p>'


def bullets(lines: Sequence[str]) -> str:
    """Lines as a list."""
    return "<ul>" + "".join(f"<li>{rich_text(line)}</li>" for line in lines) + "</ul>"


def rich_text(text: str) -> str:
    """Text as HTML; commands and names between backticks become code, +- its sign."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(_with_signs(text)))


def _with_signs(text: str) -> str:
    """Text of the terminal with the page's sign of an interval."""
    return text.replace("+-", "±")


def with_sidebar(charts: str, sidebar: str) -> str:
    """Charts with a column of figures and commands at their right."""
    return f'<div class="beside"><div>{charts}</div><aside>{sidebar}</aside></div>'
