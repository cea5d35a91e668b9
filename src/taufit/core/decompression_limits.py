"""Limits on the decompressed size of files, which a few kilobytes can make arbitrarily large.

Every reader checks here before it allocates memory; `with large_files():` (`--large` on the command
line) lifts the limits for files that are really that large.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from taufit.core.errors import TaufitError

# 3 h of 7 joints at 1 kHz with all channels are about 4 GB as numbers.
MAX_UNPACKED = 4_000_000_000
# Size below which the ratio is not checked [bytes]: a robot at rest compresses well.
UNCHECKED_SIZE = 64_000_000
MAX_RATIO = 100
MAX_TEXT = 32_000_000

_large: ContextVar[bool] = ContextVar("large", default=False)


@contextmanager
def large_files() -> Iterator[None]:
    """Context in which files of any size are read."""
    token = _large.set(True)
    try:
        yield
    finally:
        _large.reset(token)


def limits_are_lifted() -> bool:
    """Whether the limits are lifted."""
    return _large.get()


def require_unpacked_size(
    source: object,
    unpacked: int,
    packed: int,
    *,
    error: type[TaufitError] = TaufitError,
    so_far: bool = False,
) -> None:
    """Raise for a file of `packed` bytes that needs `unpacked`; `so_far`: at least that."""
    if limits_are_lifted() or unpacked <= UNCHECKED_SIZE:
        return
    ratio = unpacked / max(packed, 1)
    if unpacked <= MAX_UNPACKED and ratio <= MAX_RATIO:
        return
    prefix = "at least " if so_far else ""
    raise error(
        f"{source} has {format_size(packed)} and unpacks to {prefix}{format_size(unpacked)} "
        f"({ratio:.0f} times as much). A damaged or hostile file does that; if this one is really "
        "that large, give --large."
    )


def format_size(count: int) -> str:
    """Number of bytes as text, e.g. "3.2 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
