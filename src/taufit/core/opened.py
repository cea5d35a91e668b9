"""The one opener for files from anybody: regular files and pipes, never more than a stated size.

A name may be a link to a device, which has no end, or a pipe that nobody writes to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from taufit.core.errors import TaufitError
from taufit.core.limits import size_in_words

# A pipe without a writer is waited for so long [s].
_PATIENCE_S = 30.0
_CHUNK = 1 << 20


def require_file(path: str | os.PathLike[str], *, error: type[TaufitError] = TaufitError) -> None:
    """Refuse what is neither a regular file nor a directory, before a library opens it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror or problem}.") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise error(f"{path} is {_kind(mode)}, not a file. Save what it gives to a file first.")


def read_bytes(
    path: str | os.PathLike[str],
    most: int | None = None,
    *,
    pipe_most: int = 1_000_000_000,
    error: type[TaufitError] = TaufitError,
) -> bytes:
    """All of a file or a pipe.

    Args:
        path: Its name; links are followed.
        most: Larger files are refused [bytes]; None for any size that a file on a disk has.
        pipe_most: The same of pipes, whose size nobody knows before.
        error: Raised where it is refused or cannot be read.
    """
    try:
        # Opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode):
                limit = status.st_size if most is None else most
                if status.st_size > limit:
                    raise error(_too_large(path, limit))
                with open(handle, "rb", closefd=False) as whole:
                    data = whole.read() if most is None else whole.read(limit + 1)
            elif stat.S_ISFIFO(status.st_mode):
                limit = pipe_most if most is None else most
                data = _poured(handle, Path(path), limit, error)
            elif stat.S_ISDIR(status.st_mode):
                raise error(f"{path} is a directory, not a file.")
            else:
                raise error(f"{path} is {_kind(status.st_mode)}, not a file.")
            del file
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror or problem}.") from None
    if most is not None and len(data) > most:
        raise error(_too_large(path, most))
    return data


def _poured(handle: int, path: Path, most: int, error: type[TaufitError]) -> bytes:
    """What a pipe gives until its writer leaves."""
    import select

    out = bytearray()
    wait = select.poll()
    wait.register(handle, select.POLLIN)
    if not wait.poll(1000 * _PATIENCE_S):
        raise error(f"{path} is a pipe, and nobody wrote to it for {_PATIENCE_S:g} s.")
    os.set_blocking(handle, True)
    while chunk := os.read(handle, _CHUNK):
        out += chunk
        if len(out) > most:
            raise error(_too_large(path, most))
    return bytes(out)


def _too_large(path: object, most: int) -> str:
    return (
        f"{path} is larger than {size_in_words(most)}, the most such files have. If this one is "
        "really that large, give --large."
    )


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
