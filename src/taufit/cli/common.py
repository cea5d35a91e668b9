"""Output shared by commands: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.core.names import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


# File size below which reading shows no progress [bytes].
LARGE_FILE = 20_000_000


_printed_json: ContextVar[bool] = ContextVar("printed_json", default=False)


# Arguments and options of the running command, for the commands it prints.
command_arguments: ContextVar[dict[str, Any]] = ContextVar("arguments", default={})  # noqa: B039


def has_printed_json() -> bool:
    """Whether this command has printed its JSON object."""
    return _printed_json.get()


def reset_printed_json() -> None:
    """Begin a command, which may print one JSON object."""
    _printed_json.set(False)


def print_json(data: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    from taufit.core.plain_data import to_plain_data

    _printed_json.set(True)
    print(json.dumps(to_plain_data(data), allow_nan=False))


def plain_console(*, stderr: bool = False) -> Console:
    """Console for results; text is printed without interpretation of markup."""
    from taufit.cli.parts.safe_console import SafeConsole

    return SafeConsole(stderr=stderr, markup=False, highlight=False)


def headline(word: str, text: str, style: str = "bold") -> Text:
    """Result line with its first word in bold."""
    from rich.text import Text

    return Text.assemble((word, style), text)


def joint_table(title: str, joints: int) -> Table:
    """Table of recordings with one column per joint and their mean."""
    from rich import box
    from rich.table import Table

    # Without vertical lines seven joints fit 80 columns.
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("recording", overflow="fold")
    for j in range(joints):
        table.add_column(f"J{j + 1}", justify="right", no_wrap=True)
    table.add_column("mean", justify="right", style="bold", no_wrap=True)
    return table


class _NoProgress(nullcontext[Any]):
    """Progress bar that nobody sees."""

    def __init__(self) -> None:
        super().__init__(self)

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def advance(self, *_: Any, **__: Any) -> None:
        pass

    update = advance


def _may_be_terminal() -> bool:
    """Whether stderr may be a terminal for rich, which takes a while to load."""
    is_forced = any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return is_forced or (sys.stderr is not None and sys.stderr.isatty())


def progress(description: str) -> Any:
    """Progress bar on stderr; use as `with progress("...") as bar: task = bar.add_task(...)`.

    Silent if stderr is not a terminal.
    """
    if not _may_be_terminal():
        return _NoProgress()
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
def show_reading(path: Path) -> Iterator[None]:
    """Show on a terminal that a large file is being read, with the elapsed time."""
    size = path.stat().st_size if path.is_file() else 0
    if size < LARGE_FILE or not _may_be_terminal():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    screen = plain_console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    spinner, elapsed = SpinnerColumn(), TimeElapsedColumn()
    description = TextColumn("{task.description}", markup=False)
    with Progress(spinner, description, elapsed, console=screen, transient=True) as bar:
        bar.add_task(f"reading {printable(path.name)} ({size / 1e6:.0f} MB)", total=None)
        yield


def recording_label(path: str) -> str:
    """Recording name without folder and suffix, for tables."""
    name = Path(path).name
    for suffix in (".gz", ".csv", ".parquet", ".mcap"):
        name = name.removesuffix(suffix)
    return name


def format_nrmse(nrmse: float) -> str:
    """nrmse as text for a table; a dash for a joint without torque variation."""
    return f"{nrmse:.3f}" if math.isfinite(nrmse) else "–"
