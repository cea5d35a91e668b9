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

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; commands in texts can be pasted, so such texts are not wrapped."""
        if any(isinstance(x, str) and "`taufit " in x for x in objects):
            from taufit.cli.parts.next_step import complete_commands

            objects = tuple(complete_commands(x) if isinstance(x, str) else x for x in objects)
            options["soft_wrap"] = True
        super().print(*objects, **options)

    @property
    def file(self) -> IO[str]:
        """Stream without its filter."""
        stream = super().file
        return getattr(stream, "unfiltered", stream)

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file
