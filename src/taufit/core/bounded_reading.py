"""The one opener for files from anybody: regular files and pipes, never more than a stated size.

A name may be a link to a device, which has no end, or a pipe that nobody writes to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from taufit.core.decompression_limits import format_size
from taufit.core.errors import TaufitError

# A pipe without a writer is waited for so long [s].
_PATIENCE_S = 30.0
_CHUNK = 1 << 20


def require_file(path: str | os.PathLike[str], *, error: type[TaufitError] = TaufitError) -> None:
    """Refuse what is neither a regular file nor a directory, before a library opens it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as os_error:
        raise error(f"{path} cannot be read: {os_error.strerror or os_error}.") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise error(
            f"{path} is {_kind_text(mode)}, not a file. Save what it gives to a file first."
        )


def read_bytes(
    path: str | os.PathLike[str],
    max_size: int | None = None,
    *,
    max_pipe_size: int = 1_000_000_000,
    error: type[TaufitError] = TaufitError,
) -> bytes:
    """All of a file or a pipe.

    Args:
        path: Its name; links are followed.
        max_size: Larger files are refused [bytes]; None for any size that a file on a disk has.
        max_pipe_size: The same of pipes, whose size nobody knows before.
        error: Raised where it is refused or cannot be read.
    """
    try:
        # Opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode):
                limit = status.st_size if max_size is None else max_size
                if status.st_size > limit:
                    raise error(_too_large_message(path, limit))
                with open(handle, "rb", closefd=False) as regular_file:
                    data = regular_file.read() if max_size is None else regular_file.read(limit + 1)
            elif stat.S_ISFIFO(status.st_mode):
                limit = max_pipe_size if max_size is None else max_size
                data = _read_pipe(handle, Path(path), limit, error)
            elif stat.S_ISDIR(status.st_mode):
                raise error(f"{path} is a directory, not a file.")
            else:
                raise error(f"{path} is {_kind_text(status.st_mode)}, not a file.")
            del file
    except OSError as os_error:
        raise error(f"{path} cannot be read: {os_error.strerror or os_error}.") from None
    if max_size is not None and len(data) > max_size:
        raise error(_too_large_message(path, max_size))
    return data


def _read_pipe(handle: int, path: Path, max_size: int, error: type[TaufitError]) -> bytes:
    """What a pipe gives until its writer leaves."""
    import select

    out = bytearray()
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    if not poll.poll(1000 * _PATIENCE_S):
        raise error(f"{path} is a pipe, and nobody wrote to it for {_PATIENCE_S:g} s.")
    os.set_blocking(handle, True)
    while chunk := os.read(handle, _CHUNK):
        out += chunk
        if len(out) > max_size:
            raise error(_too_large_message(path, max_size))
    return bytes(out)


def _too_large_message(path: object, max_size: int) -> str:
    return (
        f"{path} is larger than {format_size(max_size)}, the most such files have. If this one is "
        "really that large, give --large."
    )


def _kind_text(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
