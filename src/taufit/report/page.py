"""Self-contained HTML page from sections: style and script inside, no network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

import taufit


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a page: title and HTML."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())


def render_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Render a page; the first section comes before the table of contents."""
    static = files("taufit.report") / "static"
    style = (static / "page.css").read_text()
    script = (static / "charts.js").read_text()
    if "arm3d" in "".join(s.body for s in sections):
        script += (static / "arm3d.js").read_text()
    links = "".join(f'<a href="#{s.anchor}">{html.escape(s.title)}</a>' for s in sections[1:])
    body = sections[0].body if sections else ""
    body += f"<nav>{links}</nav>"
    for section in sections[1:]:
        body += f'<h2 id="{section.anchor}">{html.escape(section.title)}</h2>{section.body}'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>'
        f"<style>{style}</style></head><body><main>"
        f'<h1>{html.escape(title)}</h1><p class="sub">{html.escape(subtitle)}</p>{body}'
        f'<p class="sub">Written by taufit {taufit.__version__}.</p>'
        f"</main><script>{script}</script></body></html>\n"
    )


def verdict_box(kind: str, headline: str, detail: str) -> str:
    """Verdict box at the top of a page; kind: good, warn or bad."""
    return (
        f'<div class="verdict {kind}"><strong>{html.escape(headline)}</strong>'
        f"<br>{html.escape(detail)}</div>"
    )


def cards(items: Sequence[tuple[str, str]]) -> str:
    """Large figures with captions."""
    inner = "".join(
        f'<div class="card"><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>'
        for name, value in items
    )
    return f'<div class="cards">{inner}</div>'


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], text: Sequence[int] = ()) -> str:
    """Table; floats have four digits, columns in `text` are left-aligned text."""
    head = "".join(
        f"<th{' class=text' if i in text else ''}>{html.escape(name)}</th>"
        for i, name in enumerate(header)
    )
    lines = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            css = ' class="text"' if i in text else ""
            cells.append(
                f"<td{css}>{cell if isinstance(cell, Markup) else html.escape(to_text(cell))}</td>"
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll" tabindex="0"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


class Markup(str):
    """HTML that needs no escaping."""


def to_text(value: Any) -> str:
    """Number or text for display; a dash if it is missing."""
    if value is None:
        return "–"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}" if np.isfinite(value) else "–"
    return str(value)


def paragraph(text: str) -> str:
    """Text as a paragraph."""
    return f"<p>{html.escape(text)}</p>"


def bullets(lines: Sequence[str]) -> str:
    """Lines as a list."""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"
