"""What the verbs share: results on stdout, progress on stderr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.plain_data import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout and nothing else."""
    print(json.dumps(plain(data), allow_nan=False))


def plain_console(*, stderr: bool = False) -> Console:
    """Where results are shown. Texts are shown as they are: a name in brackets is no markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False)


def headline(word: str, text: str, style: str = "bold") -> Text:
    """A result in one line, its word in bold."""
    from rich.text import Text

    return Text.assemble((word, style), text)


def progress(description: str) -> Any:
    """A progress bar on stderr; use as `with progress("...") as bar: task = bar.add_task(...)`.

    It stays silent where stderr is no terminal.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = plain_console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )


def short_name(path: str) -> str:
    """The name of a recording without its folder and ending, for tables."""
    name = Path(path).name
    for suffix in (".gz", ".csv", ".parquet", ".mcap"):
        name = name.removesuffix(suffix)
    return name
