"""What the verbs share: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.core.names import printable
from taufit.core.plain_data import to_plain_data

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


# Reading less than this takes no time worth showing [bytes].
LARGE_FILE = 20_000_000


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout and nothing else."""
    print(json.dumps(to_plain_data(data), allow_nan=False))


def plain_console(*, stderr: bool = False) -> Console:
    """Where results are shown. Texts are shown as they are: a name in brackets is no markup."""
    from taufit.cli.parts.screen import Screen

    return Screen(stderr=stderr, markup=False, highlight=False)


def headline(word: str, text: str, style: str = "bold") -> Text:
    """A result in one line, its word in bold."""
    from rich.text import Text

    return Text.assemble((word, style), text)


def joint_table(title: str, joints: int) -> Table:
    """A table of recordings with one column per joint and their mean."""
    from rich import box
    from rich.table import Table

    # Without vertical lines seven joints fit 80 columns.
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("recording", overflow="fold")
    for j in range(joints):
        table.add_column(f"J{j + 1}", justify="right", no_wrap=True)
    table.add_column("mean", justify="right", style="bold", no_wrap=True)
    return table


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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say on a terminal that a large file is being read, and since when."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    size = path.stat().st_size if path.is_file() else 0
    screen = plain_console(stderr=True)
    if size < LARGE_FILE or not screen.is_terminal:
        yield
        return
    spinner, elapsed = SpinnerColumn(), TimeElapsedColumn()
    words = TextColumn("{task.description}", markup=False)
    with Progress(spinner, words, elapsed, console=screen, transient=True) as bar:
        bar.add_task(f"reading {printable(path.name)} ({size / 1e6:.0f} MB)", total=None)
        yield


def short_name(path: str) -> str:
    """The name of a recording without its folder and ending, for tables."""
    name = Path(path).name
    for suffix in (".gz", ".csv", ".parquet", ".mcap"):
        name = name.removesuffix(suffix)
    return name


def scored(nrmse: float) -> str:
    """An nrmse for a table; a joint whose torque does not vary has none."""
    return f"{nrmse:.3f}" if math.isfinite(nrmse) else "–"
