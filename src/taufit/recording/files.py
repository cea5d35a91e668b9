"""Recordings in files that are read one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from taufit.recording.recording import Recording


@dataclass(frozen=True, slots=True)
class RecordingFiles:
    """Files of one robot, in order; each is read when it is asked for and then forgotten.

    Attributes:
        paths: The files.
        read: Gives the runs of one; a function that other processes can be handed.
    """

    paths: tuple[Path, ...]
    read: Callable[[Path], list[Recording]]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, k: int) -> list[Recording]:
        """The runs of one file, each with the file's name where it has none of its own."""
        path = self.paths[k]
        return [replace(one, meta={"file": path.name, **one.meta}) for one in self.read(path)]


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
