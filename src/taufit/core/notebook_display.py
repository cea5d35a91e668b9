"""Display of objects: a page in notebooks, plots if matplotlib is installed.

The classes do not import the report, which depends on them; it is imported when needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_DRAWING_ROOM = "taufit.report.notebook"


def draw(function: str, subject: object, *arguments: Any) -> Any:
    """Call a drawing function of the report on an object."""
    return getattr(import_module(_DRAWING_ROOM), function)(subject, *arguments)


class NotebookDisplay:
    """Base class of objects that notebooks show with the charts of the report."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(draw("html", self))
