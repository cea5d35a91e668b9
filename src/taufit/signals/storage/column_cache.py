"""Cache of friction columns computed from samples.

Most friction columns depend on the motion only, and a fit passes over its samples many times.
Columns
are cached with the samples: in memory or in files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from taufit.core.arrays import Array, Float

# Limits of the cache in memory: samples per entry, number of terms.
_MAX_SAMPLES, _MAX_TERMS = 2**17, 3
# Free disk space that must remain [bytes].
_MIN_FREE_BYTES = 2 * 2**30


class ColumnCache:
    """Columns in memory, by a text that describes their computation."""

    def __init__(self) -> None:
        self._columns: dict[str, Array] = {}

    def get(self, key: str, make: Callable[[], Float[Array, "k j n"]]) -> Float[Array, "k j n"]:
        """Columns of a key, computed if not cached; read-only."""
        columns = self._columns.pop(key, None)
        if columns is None:
            columns = make()
            columns.flags.writeable = False
        if columns.shape[-1] <= _MAX_SAMPLES:
            self._columns[key] = columns
        while len(self._columns) > _MAX_TERMS:
            del self._columns[next(iter(self._columns))]
        return columns

    def __getstate__(self) -> tuple[()]:
        # Another process computes its columns.
        return ()

    def __setstate__(self, state: tuple[()]) -> None:
        self._columns = {}


class FileColumnCache(ColumnCache):
    """Columns in files next to those of a part.

    Args:
        path: File of the part's arrays.
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
