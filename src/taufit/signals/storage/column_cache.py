"""Columns made from samples that are wanted again with every pass over them.

Most friction columns depend on the motion alone, and a fit passes over its samples many times. What
was made once is kept beside the samples: in memory where they are in memory, in files where they
are in files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from taufit.core.arrays import Array, Float

# In memory columns of no more samples than this are kept, of the friction models used last.
_MAX_SAMPLES, _MAX_MODELS = 2**17, 2
# In files nothing is kept where it would leave less room than this [bytes].
_MIN_FREE_BYTES = 2 * 2**30


class ColumnCache:
    """Columns in memory, by a text that says how they were made."""

    def __init__(self) -> None:
        self._columns: dict[str, Array] = {}

    def get(self, key: str, make: Callable[[], Float[Array, "k j n"]]) -> Float[Array, "k j n"]:
        """The columns of a key, made where they are not at hand. They must not be written to."""
        columns = self._columns.pop(key, None)
        if columns is None:
            columns = make()
            columns.flags.writeable = False
        if columns.shape[-1] <= _MAX_SAMPLES:
            self._columns[key] = columns
        while len(self._columns) > _MAX_MODELS:
            del self._columns[next(iter(self._columns))]
        return columns

    def __getstate__(self) -> tuple[()]:
        # Another process makes its own.
        return ()

    def __setstate__(self, state: tuple[()]) -> None:
        self._columns = {}


class FileColumnCache(ColumnCache):
    """Columns in files beside those of a part.

    Args:
        path: Of the part's numbers.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def get(self, key: str, make: Callable[[], Float[Array, "k j n"]]) -> Float[Array, "k j n"]:
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        path = self._path.with_suffix(f".{name}.npy")
        if path.exists():
            columns: Array = np.load(path, mmap_mode="r")
            return columns.view(np.ndarray)
        columns = make()
        try:
            if shutil.disk_usage(path.parent).free > columns.nbytes + _MIN_FREE_BYTES:
                partial = path.with_suffix(".partial.npy")
                np.save(partial, columns)
                os.replace(partial, path)
        except OSError:
            pass  # without room they are made again with every pass
        return columns

    def __getstate__(self) -> tuple[Path]:  # type: ignore[override]
        return (self._path,)

    def __setstate__(self, state: tuple[Path]) -> None:  # type: ignore[override]
        super().__init__()
        (self._path,) = state
