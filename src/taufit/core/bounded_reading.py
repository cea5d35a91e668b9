"""Reading of untrusted files: regular files and pipes, up to a given size.

A name may link to a device without end, or to a pipe without a writer.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from taufit.core.decompression_limits import format_size
from taufit.core.errors import TaufitError

# Waiting time for the writer of a pipe [s].
_PATIENCE_S = 30.0
_CHUNK = 1 << 20


def require_file(path: str | os.PathLike[str], *, error: type[TaufitError] = TaufitError) -> None:
    """Raise if a path is neither a regular file nor a directory."""
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
    """Read a complete file or pipe.

    Args:
        path: File name; links are followed.
        max_size: Largest size [bytes]; None for any regular file.
        max_pipe_size: Largest size of pipes, whose size is unknown in advance [bytes].
        error: Exception to raise.
    """
    try:
        # Opening a pipe without a writer would block.
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
    """Read a pipe until its writer closes it."""
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
