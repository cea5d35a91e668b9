"""rich console whose own control codes work, while those in displayed text are escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from taufit.core.names import printable


class SafeConsole(Console):
    """Console with escaped text, which bypasses the filter of the streams."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render segments; those without control function have control codes escaped."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    @property
    def file(self) -> IO[str]:
        """Stream without its filter."""
        stream = super().file
        return getattr(stream, "unfiltered", stream)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file
