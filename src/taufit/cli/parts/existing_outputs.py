"""Output files that exist: kept unless the user agrees.

On a terminal the command asks before it computes. Without a terminal (scripts, pipes) scripts that
run twice go on, and the earlier contents are kept as `FILE~`. `--overwrite` does neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from taufit.core.files import back_up_files

# Options whose value is a file that a command writes.
_OUTPUT_OPTIONS = ("output", "report", "draft", "write_map", "csv", "urscript", "ros2", "plot",
                   "record")  # fmt: skip
_backups: ContextVar[set[Path] | None] = ContextVar("backups", default=None)
_output_paths: ContextVar[list[Path]] = ContextVar("output_paths")


@contextmanager
def existing_outputs(*, overwrite: bool, quiet: bool = False) -> Iterator[None]:
    """Context of a command, in which existing outputs are replaced, or asked for and kept."""
    with back_up_files() as backups:
        token = _backups.set(None if overwrite else backups)
        paths_token = _output_paths.set([])
        try:
            yield
        finally:
            for path in (
                [] if quiet else [path for path in _output_paths.get() if path not in backups]
            ):
                print(f"note: earlier contents of {path} are kept as {path}~.", file=sys.stderr)
            _output_paths.reset(paths_token)
            _backups.reset(token)


def require_replaceable_outputs(values: Mapping[str, Any]) -> None:
    """Ask on a terminal before files of output options are replaced; wrong usage if declined."""
    paths = [values[name] for name in _OUTPUT_OPTIONS if isinstance(values.get(name), Path)]
    existing = [path for path in paths if path.is_file()]
    backups = _backups.get()
    if not existing or backups is None:
        return
    if not _is_interactive():
        _output_paths.get().extend(existing)
        backups.update(existing)
        return
    import typer

    names = ", ".join(map(str, existing))
    if not typer.confirm(f"{names} exists: replace it?", err=True):
        raise typer.BadParameter(
            f"{names} was kept. Choose another name, or give --overwrite.", param_hint="--output"
        )


def _is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
