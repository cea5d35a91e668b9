"""rich on a terminal: its own codes act, those in the texts it shows are spelled out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from taufit.core.names import printable


class Screen(Console):
    """A console whose segments are clean, and which therefore writes past the streams' filter."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of something; what is no control segment of rich's holds no control codes."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    @property
    def file(self) -> IO[str]:
        """The stream without its filter."""
        stream = super().file
        return getattr(stream, "unfiltered", stream)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file
