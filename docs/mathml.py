"""Formulas as MathML, and corners of tables as cells, when the documentation is built: no script, no font service in the page.

`pymdownx.arithmatex` finds formulas outside code; latex2mathml translates them. A command that it
does not know stops the build with the name of the page.
"""

from __future__ import annotations

import html
import re
from typing import Any

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.S
)
_EMPTY_HEAD = re.compile(r"<th([^>]*)></th>")
# latex2mathml hands unknown commands and stray alignment marks through as text.
_UNKNOWN = re.compile(r"<m(?:i|o|text)>(\\\w+|&amp;|&)</m(?:i|o|text)>")


def to_mathml(latex: str, block: bool) -> str:
    """MathML of a formula; raises ValueError if part of it is unknown."""
    from latex2mathml.converter import convert

    try:
        text = convert(latex, display="block" if block else "inline")
    except Exception as error:
        raise ValueError(f"formula {latex!r} cannot be read: {error!r}") from error
    unknown = _UNKNOWN.search(text)
    if unknown:
        raise ValueError(f"formula {latex!r}: {html.unescape(unknown[1])} is not known")
    return text.replace("<math ", f'<math aria-label="{html.escape(latex, quote=True)}" ', 1)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Replace the formulas of a page."""
    from mkdocs.exceptions import PluginError

    def replace(found: re.Match[str]) -> str:
        block = found["tag"] == "div"
        try:
            text = to_mathml(html.unescape(found["latex"]).strip(), block)
        except ValueError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from error
        return f'<div class="formula" tabindex="0">{text}</div>' if block else text

    # Corners of tables are no heads of a column.
    content = _EMPTY_HEAD.sub(r"<td\1></td>", content)
    return _FORMULA.sub(replace, content)
