"""Outputs are written under a temporary name and moved into place: nothing is ever half written."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taufit.errors import TaufitError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well.

    The suffix is kept, so libraries that look at it see what they expect.
    """
    target = Path(path)
    if target.is_dir():
        raise TaufitError(f"{target} cannot be written: it is a directory.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{target.stem}-", suffix="".join(target.suffixes), dir=target.parent
        )
    except (FileExistsError, NotADirectoryError):
        raise TaufitError(f"{target} cannot be written: {target.parent} is no directory.") from None
    except OSError as error:
        raise TaufitError(f"{target} cannot be written: {error.strerror or error}.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise TaufitError(f"{target} cannot be written: {error.strerror or error}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    with replacing(path) as temporary:
        # File names need not be UTF-8; what cannot be written is spelled out.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
