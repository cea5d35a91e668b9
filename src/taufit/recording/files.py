"""Recordings in files that are read one at a time, very long ones section by section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from taufit.recording.readers.from_parquet import row_count
from taufit.recording.recording import Recording

# Longer files are read in sections of so many rows.
LONGEST, SECTION = 3 * 2**15, 2**16
# Rows read before a section, on which friction with memory runs in, and behind it, for filters.
LEAD, TAIL = 2**12, 2**9
# Smaller files are not looked into: they have no more rows than that [bytes].
_SMALL = 2**22


@dataclass(frozen=True, slots=True)
class FileSection:
    """Rows of a long file.

    Attributes:
        path: The file.
        first, last: Rows that count, the last not included.
        rows: How many there are.
    """

    path: Path
    first: int
    last: int
    rows: int

    @property
    def name(self) -> str:
        """For messages and tables."""
        return f"{self.path.name} (rows {self.first} to {self.last - 1})"


@dataclass(frozen=True, slots=True)
class RecordingFiles:
    """Files of one robot, in order; each is read when it is asked for and then forgotten.

    Attributes:
        paths: The files.
        read: Gives the runs of one; a function that other processes can be handed.
        read_rows: Gives some rows of one, from the first to the last not included; where it is
            given, long Parquet files are gone through in sections.
        parts: Files and sections of files, as they are gone through.
    """

    paths: tuple[Path, ...]
    read: Callable[[Path], list[Recording]]
    read_rows: Callable[[Path, int, int], list[Recording]] | None = None
    parts: tuple[Path | FileSection, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = [part for path in self.paths for part in self._parts_of(path)]
        object.__setattr__(self, "parts", tuple(parts))

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, k: int) -> list[Recording]:
        """The runs of one part, each with the file's name where it has none of its own.

        A section comes with rows before and behind it; `counted_s` in its meta says from when to
        when it counts, in seconds after the first row.
        """
        part = self.parts[k]
        if isinstance(part, FileSection):
            return self._section(part)
        return [replace(one, meta={"file": part.name, **one.meta}) for one in self.read(part)]

    def _parts_of(self, path: Path) -> list[Path | FileSection]:
        rows = None
        if self.read_rows is not None and path.is_file() and path.stat().st_size > _SMALL:
            rows = row_count(path)
        if rows is None or rows <= LONGEST:
            return [path]
        count = -(-rows // SECTION)
        edges = [rows * i // count for i in range(count + 1)]
        return [FileSection(path, first, last, rows) for first, last in pairwise(edges)]

    def _section(self, part: FileSection) -> list[Recording]:
        assert self.read_rows is not None
        start, stop = max(0, part.first - LEAD), min(part.rows, part.last + TAIL)
        runs = self.read_rows(part.path, start, stop)
        if len(runs) != 1 or not np.all(np.diff(runs[0].time) > 0.0):
            # Runs that end inside, or clocks that jump: nothing beside the section is of use.
            runs = self.read_rows(part.path, part.first, part.last)
            return [replace(one, meta={**one.meta, "file": part.name}) for one in runs]
        one = runs[0]
        elapsed = one.time - one.time[0]
        low = float(elapsed[min(part.first - start, len(elapsed) - 1)]) if start else 0.0
        behind = part.last - start
        high = float(elapsed[behind]) if behind < len(elapsed) else float("inf")
        return [replace(one, meta={**one.meta, "file": part.name, "counted_s": [low, high]})]


@dataclass(frozen=True, slots=True)
class HoldoutFiles(Mapping[str, list[Recording]]):
    """Recordings by name, read when they are asked for."""

    paths: Mapping[str, Path]
    read: Callable[[Path], list[Recording]]

    def __getitem__(self, name: str) -> list[Recording]:
        return self.read(self.paths[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)
