"""Output to devices, pipes and open descriptors."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def copy_to_stream(source: Path, target: Path | int) -> None:
    """Copy into a device, a pipe or an open descriptor."""
    if isinstance(target, int):
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError):
                stream.flush()
        handle = os.dup(target)
    else:
        handle = os.open(target, os.O_WRONLY | os.O_NOCTTY)
    try:
        with source.open("rb") as file, os.fdopen(handle, "wb", buffering=0, closefd=False) as sink:
            while chunk := file.read(1 << 20):
                view = memoryview(chunk)
                while view:
                    view = view[sink.write(view) :]
    finally:
        os.close(handle)
