"""How nouns show themselves: a page in notebooks, plots where matplotlib is installed.

Nouns stand above the room that draws and do not import it; it is looked up when something is shown.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_DRAWING_ROOM = "taufit.report.notebook"


def draw(function: str, subject: object, *arguments: Any) -> Any:
    """What a function of the drawing room makes of a noun."""
    return getattr(import_module(_DRAWING_ROOM), function)(subject, *arguments)


class NotebookDisplay:
    """A noun that notebooks show with the charts of the report."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(draw("html", self))
