"""Lists of recording files, read one at a time; long files section by section."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.finding import Finding
from taufit.recording.readers.from_parquet import row_count
from taufit.recording.recording import Recording

Map = str | os.PathLike[str] | Mapping[str, Any] | ColumnMap

# Rows above which files are read in sections, and rows per section.
MAX_ROWS, SECTION_ROWS = 3 * 2**15, 2**16
# Rows read before a section for the friction state, and after it for filters.
LEAD_ROWS, TAIL_ROWS = 2**12, 2**9
# Files below this size have no more rows than that and are not opened [bytes].
_MIN_BYTES = 2**22


# File endings that are not searched for in folders; such files must be named.
_NOT_IN_FOLDERS = (".txt", ".dat", ".log")
# Largest number of repeats listed in an error.
_MAX_LISTED = 10


class RecordingPaths(NamedTuple):
    """Result of a search for recording files.

    Attributes:
        paths: Paths of recordings; those of a folder or pattern sorted by name.
        folder: First folder that was searched; None if files were named one by one.
        findings: Findings about repeats and links that were not followed.
    """

    paths: tuple[Path, ...]
    folder: Path | None = None
    findings: tuple[Finding, ...] = ()


def find_recordings(
    sources: Sequence[Path], *, allow_repeats: bool = False, column_map: Map | None = None
) -> RecordingPaths:
    """Find recordings given as files, folders and patterns.

    Every folder is visited once and links to folders are not followed, so no recording is found
    twice. Files with equal content are an error.

    Args:
        sources: Files; folders, searched at any depth; patterns such as days/*/run_*.parquet. Bags
            and datasets that are folders count as files.
        allow_repeats: Accept recordings with equal content.
        column_map: Column map; of a run in several files only the position file is returned.

    Raises:
        RecordingError: Nothing was found, a folder cannot be read, or recordings are equal.
    """
    paths: list[Path] = []
    links: list[Path] = []
    top: Path | None = None
    for source in sources:
        if source.is_dir() and not _is_recording(source):
            matches, folder = sorted(_recordings_in_folder(source, links)), source
        elif not source.exists() and glob.has_magic(str(source)):
            matches, folder = sorted(_recordings_by_pattern(source, links)), _pattern_root(source)
        else:
            paths.append(source)
            continue
        if not matches:
            raise RecordingError(
                f"{source}: there is no recording{_link_note(links)}. Name files, or a folder or "
                "pattern "
                "that has some."
            )
        paths += matches
        top = top or folder
    parsed_map = None if column_map is None else read_map(column_map)
    if parsed_map is not None and parsed_map.file_names:
        from taufit.recording.run_files import without_companions

        paths = without_companions(paths, parsed_map)
    repeats = _repeat_findings(paths)
    if repeats and not allow_repeats:
        raise RecordingError(repeat_error_text(repeats))
    findings = [*(_link_finding(link) for link in dict.fromkeys(links)), *repeats]
    return RecordingPaths(tuple(paths), top, tuple(findings))


def _repeated_files(paths: Sequence[Path]) -> dict[int, int]:
    """Index of every repeat, with that of the first file of its contents."""
    if len(paths) < 2:
        return {}
    from taufit.recording.repeats import find_repeated_files

    return find_repeated_files(paths)


def require_unseen_holdout(training: Sequence[Path], holdout: Sequence[Path]) -> None:
    """Raise if a hold-out file has the contents of a training file."""
    paths = [*training, *holdout]
    seen = [
        f"{paths[k]} has the contents of {paths[first]}, to which the model is fitted"
        for k, first in sorted(_repeated_files(paths).items())
        if first < len(training) <= k
    ]
    if seen:
        raise RecordingError(
            "\n".join(seen[:_MAX_LISTED])
            + ".\nA hold-out recording tests the model only if the fit "
            "has not seen it: give another one, --holdout 30%, or --allow-repeats "
            "(allow_repeats=True)."
        )


def _repeat_findings(paths: Sequence[Path]) -> list[Finding]:
    def message(repeat: Path, first: Path) -> str:
        if repeat == first:
            return f"{repeat} is given twice"
        return f"{repeat} is {first} again: their contents are equal"

    return [
        Finding("repeated_file", "warning", message(paths[k], paths[first]))
        for k, first in sorted(_repeated_files(paths).items())
    ]


def repeat_error_text(repeats: Sequence[Finding]) -> str:
    """Error text for recordings with equal content, with the remedy."""
    texts = [finding.message for finding in repeats[:_MAX_LISTED]]
    omitted = f"\nand {len(repeats) - _MAX_LISTED} more" if len(repeats) > _MAX_LISTED else ""
    return (
        "\n".join(texts) + omitted + ".\nA recording that counts twice makes intervals too narrow: "
        "remove the repeats, or give --allow-repeats (allow_repeats=True) if they are meant."
    )


def _link_note(links: Sequence[Path]) -> str:
    return f" ({links[0]} is a link to a folder and not followed)" if links else ""


def _link_finding(link: Path) -> Finding:
    message = f"{link} is a link to a folder: what lies there was not looked for"
    return Finding("link_not_followed", "info", message, "name that folder too if it belongs here")


def _is_recording(folder: Path) -> bool:
    return (folder / "metadata.yaml").exists() or (folder / "meta" / "info.json").exists()


def is_recording_name(path: PurePath) -> bool:
    """Whether a file in a folder counts as a recording, by its ending."""
    from taufit.recording.read import READERS

    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = suffixes[-2] if suffixes[-1:] == [".gz"] and suffixes[:-1] else "".join(suffixes[-1:])
    is_hidden = path.name.startswith(".")
    return ending in READERS and ending not in _NOT_IN_FOLDERS and not is_hidden


def _recordings_in_folder(top: Path, links: list[Path]) -> Iterator[Path]:
    """Recordings in a folder at any depth; links to folders are collected and not followed."""
    visited: set[tuple[int, int]] = set()
    pending = [top]
    while pending:
        folder = pending.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                visible = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError as error:
            raise RecordingError(
                f"{folder} cannot be looked through: {error.strerror}. Make it readable, or name "
                "the recordings that are to be used."
            ) from None
        for entry in visible:
            path = folder / entry.name
            if not entry.is_dir():
                # Devices and pipes are no recordings; a broken link is reported when it is read.
                if is_recording_name(path) and (entry.is_file() or not path.exists()):
                    yield path
            elif entry.is_symlink():
                links.append(path)
            elif _is_recording(path):
                yield path
            else:
                pending.append(path)


def _recordings_by_pattern(pattern: Path, links: list[Path]) -> Iterator[Path]:
    """Files that match a pattern, except those behind links to folders."""
    top = _pattern_root(pattern)
    relative_pattern = pattern.relative_to(top)
    matches_hidden = any(part.startswith(".") for part in relative_pattern.parts)
    for path in set(top.glob(str(relative_pattern))):
        inner = path.relative_to(top)
        if not matches_hidden and any(part.startswith(".") for part in inner.parts):
            continue
        linked_parents = [
            top / parent for parent in inner.parents[:-1] if (top / parent).is_symlink()
        ]
        if linked_parents:
            links.append(linked_parents[-1])
        elif path.is_symlink() and path.is_dir():
            links.append(path)
        elif not path.is_dir() or _is_recording(path):
            yield path


def _pattern_root(pattern: Path) -> Path:
    first = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    return Path(*pattern.parts[:first])


@dataclass(frozen=True, slots=True)
class FileSection:
    """Rows of a long file.

    Attributes:
        path: The file.
        first, last: Rows of the section, the last not included.
        rows: Number of rows of the file.
    """

    path: Path
    first: int
    last: int
    rows: int

    @property
    def name(self) -> str:
        """Name used in messages and tables."""
        return f"{self.path.name} (rows {self.first} to {self.last - 1})"


@dataclass(frozen=True, slots=True)
class RecordingFiles:
    """Files of one robot, in order; each is read on demand and not cached.

    Attributes:
        paths: Paths of the files.
        read: Function that reads the runs of a file; must be picklable.
        read_rows: Function that reads rows first <= i < last of a file; if given, long Parquet
            files are read in sections.
        settings: Reading settings that, with the file content, determine the result; None disables
            caching.
        parts: Files and sections of files, in order.
        findings: Findings about the set of files.
    """

    paths: tuple[Path, ...]
    read: Callable[[Path], list[Recording]]
    read_rows: Callable[[Path, int, int], list[Recording]] | None = None
    settings: tuple[Any, ...] | None = None
    parts: tuple[Path | FileSection, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts:
            parts = [part for path in self.paths for part in self._parts_of(path)]
            object.__setattr__(self, "parts", tuple(parts))

    def companions(self, path: Path) -> tuple[Path, ...]:
        """Further files of the run of a file."""
        column_map = self.settings[0] if self.settings else None
        if not isinstance(column_map, ColumnMap) or not column_map.file_names:
            return ()
        from taufit.recording.run_files import companion_paths

        return companion_paths(path, column_map)

    def without(self, name: str) -> RecordingFiles:
        """Copy without the files of a name."""
        findings = [f for f in self.findings if f.file != name]
        paths = tuple(path for path in self.paths if path.name != name)
        return replace(self, paths=paths, parts=(), findings=tuple(findings))

    def single_part(self, k: int) -> RecordingFiles:
        """Copy with one part."""
        part = self.parts[k]
        path = part.path if isinstance(part, FileSection) else part
        return replace(self, paths=(path,), parts=(part,))

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, k: int) -> list[Recording]:
        """Read the runs of one part.

        A section includes rows before and after it; `counted_s` in its meta is the time interval to
        be scored [s after the first row].
        """
        part = self.parts[k]
        if isinstance(part, FileSection):
            return self._section(part)
        try:
            runs = self.read(part)
        except RecordingError as error:
            # A file that does not exist was meant to be another one.
            error.file = part.name if part.exists() else None
            raise
        return [
            replace(recording, meta={"file": part.name, **recording.meta}) for recording in runs
        ]

    def _parts_of(self, path: Path) -> list[Path | FileSection]:
        rows = None
        if self.read_rows is not None and path.is_file() and path.stat().st_size > _MIN_BYTES:
            rows = row_count(path)
        if rows is None or rows <= MAX_ROWS:
            return [path]
        count = -(-rows // SECTION_ROWS)
        edges = [rows * i // count for i in range(count + 1)]
        return [FileSection(path, first, last, rows) for first, last in pairwise(edges)]

    def _section(self, part: FileSection) -> list[Recording]:
        assert self.read_rows is not None
        start, stop = max(0, part.first - LEAD_ROWS), min(part.rows, part.last + TAIL_ROWS)
        runs = self.read_rows(part.path, start, stop)
        if len(runs) != 1 or not np.all(np.diff(runs[0].time) > 0.0):
            # A run ends inside, or time jumps: rows outside the section cannot be used.
            runs = self.read_rows(part.path, part.first, part.last)
            return [
                replace(recording, meta={**recording.meta, "file": part.name}) for recording in runs
            ]
        recording = runs[0]
        elapsed = recording.time - recording.time[0]
        low = float(elapsed[min(part.first - start, len(elapsed) - 1)]) if start else 0.0
        end_row = part.last - start
        high = float(elapsed[end_row]) if end_row < len(elapsed) else float("inf")
        return [
            replace(recording, meta={**recording.meta, "file": part.name, "counted_s": [low, high]})
        ]


@dataclass(frozen=True, slots=True)
class HoldoutFiles(Mapping[str, list[Recording]]):
    """Recordings by name, read on demand."""

    readers: Mapping[str, Callable[[], list[Recording]]]

    def __getitem__(self, name: str) -> list[Recording]:
        return self.readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.readers)

    def __len__(self) -> int:
        return len(self.readers)


def holdout_fraction(holdout: object) -> float:
    """Fraction in "30%" as 0.3; 0 for anything else."""
    if not isinstance(holdout, str) or not holdout.endswith("%"):
        return 0.0
    try:
        share = float(holdout[:-1]) / 100.0
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise RecordingError(f"expected a share between 0% and 100% to keep out, got {holdout!r}.")
    return share
