"""Output files that exist: kept unless the user agrees.

On a terminal the command asks before it computes. Files that it was not asked about, and all files
without a terminal (scripts, pipes), are replaced so that scripts which run twice go on, and their
earlier contents are kept as `FILE~`. `--overwrite` does neither.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from taufit.core.files import BackupLog, back_up_files

# Options whose value is a file that a command writes.
OUTPUT_OPTIONS = ("output", "report", "draft", "write_map", "csv", "urscript", "ros2", "plot",
                   "record")  # fmt: skip
# More files than this are named together.
_MAX_NAMED_FILES = 4
_backup_log: ContextVar[BackupLog | None] = ContextVar("backup_log", default=None)


@contextmanager
def existing_outputs(*, overwrite: bool, quiet: bool = False) -> Iterator[None]:
    """Context of a command, in which existing outputs are replaced, or asked for and kept."""
    with back_up_files() as log:
        log.enabled = not overwrite
        token = _backup_log.set(log)
        try:
            yield
        finally:
            if not quiet:
                _print_backups(log.backed_up)
            _backup_log.reset(token)


def _print_backups(files: Sequence[Path]) -> None:
    names = [os.path.relpath(file) for file in files]
    if len(names) > _MAX_NAMED_FILES:
        folder = os.path.relpath(os.path.commonpath([file.parent for file in files]))
        text = f"note: earlier contents of {len(names)} files in {folder} are kept as FILE~."
        print(text, file=sys.stderr)
        return
    for name in names:
        print(f"note: earlier contents of {name} are kept as {name}~.", file=sys.stderr)


def require_replaceable_outputs(values: Mapping[str, Any]) -> None:
    """Ask on a terminal before files of output options are replaced; wrong usage if declined."""
    paths = [values[name] for name in OUTPUT_OPTIONS if isinstance(values.get(name), Path)]
    existing = [path for path in paths if path.is_file()]
    log = _backup_log.get()
    if not existing or log is None or not log.enabled or not _is_interactive():
        return
    import typer

    names = ", ".join(map(str, existing))
    if not typer.confirm(f"{names} exists: replace it?", err=True):
        raise typer.BadParameter(
            f"{names} was kept. Choose another name, or give --overwrite.", param_hint="--output"
        )
    log.enabled = False


def _is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
