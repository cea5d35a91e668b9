"""Locks of files that several processes read and rewrite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taufit.core.files import FILE_SYSTEM_LACKS, is_same_file, not_writable_error

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def lock_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of an existing file: one process at a time reads and rewrites it.

    The lock is on the file itself. If the file was replaced while waiting, the new file is locked,
    so the block always starts with the newest version. Locks of a process that dies are
    released by the system.
    """
    handle = _lock_current_file(Path(path))
    try:
        yield
    finally:
        os.close(handle)


def _lock_current_file(path: Path) -> int:
    """Descriptor that holds the lock of the current file at `path`."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR)
        except PermissionError:
            handle = os.open(path, os.O_RDONLY)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            os.close(handle)
            if error.errno not in FILE_SYSTEM_LACKS:
                raise
            reason = "its file system has no locks, so two runs could overwrite each other"
            raise not_writable_error(path, reason) from None
        if is_same_file(path, handle):
            return handle
        os.close(handle)
