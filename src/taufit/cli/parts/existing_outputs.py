"""Output files that exist: kept unless the user agrees.

On a terminal the command asks before it computes. Without a terminal (scripts, pipes) outputs are
replaced, as scripts rely on it, and stderr names them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

# Options whose value is a file that a command writes.
_OUTPUT_OPTIONS = ("output", "report", "draft", "write_map", "csv", "urscript", "ros2", "plot",
                   "record")  # fmt: skip
_overwrite: ContextVar[bool] = ContextVar("overwrite", default=True)


@contextmanager
def existing_outputs(*, overwrite: bool) -> Iterator[None]:
    """Context of a command, in which existing outputs are replaced or asked for."""
    token = _overwrite.set(overwrite)
    try:
        yield
    finally:
        _overwrite.reset(token)


def require_replaceable_outputs(values: Mapping[str, Any]) -> None:
    """Ask on a terminal before files of output options are replaced; wrong usage if declined."""
    paths = [values[name] for name in _OUTPUT_OPTIONS if isinstance(values.get(name), Path)]
    existing = [path for path in paths if path.is_file()]
    if not existing or _overwrite.get():
        return
    names = ", ".join(map(str, existing))
    if not _is_interactive():
        print(f"note: {names} exists and will be replaced (--overwrite: no note).", file=sys.stderr)
        return
    import typer

    if not typer.confirm(f"{names} exists: replace it?", err=True):
        raise typer.BadParameter(
            f"{names} was kept. Choose another name, or give --overwrite.", param_hint="--output"
        )


def _is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
