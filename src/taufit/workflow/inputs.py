"""Inputs of `identify`: conversion of robots, recordings, files and frames; each file parsed once.

A recording is a `Recording` or an argument of `read_recordings` (a file or a frame). Hold-out
recordings are any of these, a mapping from names to them, or a fraction such as "30%": the tail of
every recording.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording import Recording, read_recordings
from taufit.recording.column_map import read_map
from taufit.recording.files import (
    HoldoutFiles,
    RecordingFiles,
    RecordingPaths,
    find_recordings,
    holdout_fraction,
    require_unseen_holdout,
)
from taufit.recording.finding import Finding
from taufit.recording.read import Map
from taufit.recording.table import is_frame

if TYPE_CHECKING:
    from taufit.signals.storage.stored_samples import PartStore


File = str | os.PathLike[str]
# One recording; frames of pandas and polars have no common type.
RecordingLike = Recording | File | Any
Recordings = RecordingLike | Sequence[RecordingLike] | RecordingFiles
Holdout = Recordings | Mapping[str, Sequence[Recording]] | None
# Number of rows read first to determine gains and cut-off; shorter recordings are fitted in memory.
LEAD_ROWS = 2**15


@runtime_checkable
class FileReader(Protocol):
    """Interface of file readers: `Reader`, or the options of a command."""

    @property
    def settings(self) -> tuple[Any, ...]:
        """Settings that determine the result of reading besides the file's content."""

    @property
    def reads_whole_files(self) -> bool:
        """Whether complete files are read, so that long ones may be read in sections."""

    def __call__(self, path: Path, /) -> list[Recording]:
        """Runs of a file."""

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long file."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of files and frames.

    Attributes:
        column_map, torque_kind: Column map and torque kind, as for `read_recordings`.
    """

    column_map: Map | None = None
    torque_kind: str | None = None

    def __call__(self, recording: RecordingLike) -> list[Recording]:
        if isinstance(recording, Recording):
            return [recording]
        return read_recordings(recording, column_map=self.column_map, torque_kind=self.torque_kind)

    @property
    def settings(self) -> tuple[Any, ...]:
        """Settings that determine the result of reading besides the file's content."""
        return None if self.column_map is None else read_map(self.column_map), self.torque_kind

    @property
    def reads_whole_files(self) -> bool:
        """Whether complete files are read."""
        return True

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long Parquet file."""
        return read_recordings(
            path, column_map=self.column_map, torque_kind=self.torque_kind, rows=(first, last)
        )


class ParsedFiles:
    """Runs of files, each parsed once, and split where a fraction is held out.

    The first files stay in memory up to `LEAD_ROWS` rows; hold-out parts of all others are stored
    in a temporary folder by the workers that read a file.

    Args:
        read: Function that parses a file; must be picklable.
        rows: Function that parses some rows of a long file, if possible.
        share: Fraction held out at the end of every recording; 0 for none.
    """

    def __init__(
        self,
        read: Callable[[Path], list[Recording]],
        rows: Callable[[Path, int, int], list[Recording]] | None = None,
        share: float = 0.0,
    ) -> None:
        self._read, self._read_rows, self.share = read, rows, share
        self._runs: dict[Hashable, list[Recording]] = {}
        self._row_count = 0.0
        self._store = _part_store() if share else None
        self._folder = None if self._store is None else self._store.folder

    def __call__(self, path: Path) -> list[Recording]:
        """Runs to fit."""
        runs = self._parse(path)
        return _training_or_holdout_part(runs, self.share, end=False) if self.share else runs

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long file."""
        assert self._read_rows is not None
        read = partial(self._read_rows, path, first, last)
        return self._get_or_read((path, first, last), read)

    def tail(self, path: Path) -> list[Recording]:
        """Hold-out parts of the runs."""
        tail_file = self._tail_file(path)
        if tail_file.exists():
            tails: list[Recording] = pickle.loads(tail_file.read_bytes())
            return tails
        return _training_or_holdout_part(self._parse(path), self.share, end=True)

    def _parse(self, path: Path) -> list[Recording]:
        runs = self._get_or_read(path, partial(self._read, path))
        if self.share and path not in self._runs and not self._tail_file(path).exists():
            tails = _training_or_holdout_part(runs, self.share, end=True)
            self._tail_file(path).write_bytes(pickle.dumps(tails))
        return runs

    def _get_or_read(self, key: Hashable, read: Callable[[], list[Recording]]) -> list[Recording]:
        if key in self._runs:
            return self._runs[key]
        runs = read()
        if self._row_count < LEAD_ROWS:
            self._runs[key] = runs
            self._row_count += sum(len(run.time) for run in runs)
        return runs

    def _tail_file(self, path: Path) -> Path:
        assert self._folder is not None
        return self._folder / hashlib.sha256(os.fsencode(path)).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        # Workers parse other files than this process.
        return {**self.__dict__, "_runs": {}, "_row_count": float("inf"), "_store": None}


def _training_or_holdout_part(
    runs: list[Recording], fraction: float, *, end: bool
) -> list[Recording]:
    from taufit.recording.crop import training_or_holdout_part

    return training_or_holdout_part(runs, fraction, end=end)


def _part_store() -> PartStore:
    from taufit.signals.storage.stored_samples import PartStore

    return PartStore()


def recording_files(
    paths: Sequence[Path],
    reader: FileReader,
    share: float = 0.0,
    findings: tuple[Finding, ...] = (),
) -> RecordingFiles:
    """Files to fit, without the fraction held out at their end."""
    rows = reader.rows if reader.reads_whole_files and not share else None
    parsed = ParsedFiles(reader, rows, share)
    settings = (*reader.settings, share)
    read_rows = None if rows is None else parsed.rows
    return RecordingFiles(tuple(paths), parsed, read_rows, settings, findings=findings)


def holdout_files(
    files: RecordingFiles, further: Sequence[Path], reader: FileReader
) -> HoldoutFiles:
    """Hold-out parts of fitted files, and further files, by name."""
    parsed = files.read
    assert isinstance(parsed, ParsedFiles)
    tails = files.paths if parsed.share else ()
    return HoldoutFiles(
        {path.name: partial(parsed.tail, path) for path in tails}
        | {str(path): partial(reader, path) for path in further}
    )


def parse_inputs(
    recordings: Recordings, holdout: Holdout, reader: Reader, *, allow_repeats: bool = False
) -> tuple[Sequence[Recording] | RecordingFiles, Mapping[str, Sequence[Recording]]]:
    """Recordings to fit, and hold-out recordings by name. Files stay files, read one at a time."""
    share = holdout_fraction(holdout)
    if isinstance(recordings, RecordingFiles):
        files: RecordingFiles | None = _with_shared_parsing(recordings, share)
    else:
        items = _to_list(recordings)
        located = _find_files(items, reader, allow_repeats=allow_repeats)
        files = (
            recording_files(located.paths, reader, share, located.findings)
            if located.paths
            else None
        )
    if files is not None:
        if share:
            return files, holdout_files(files, (), reader)
        if not allow_repeats and holdout is not None and not isinstance(holdout, Mapping):
            require_unseen_holdout(files.paths, _holdout_paths(holdout, reader))
        return files, _read_holdout(holdout, reader)
    runs = [(_item_name(item, number), reader(item)) for number, item in enumerate(items, 1)]
    if not share:
        return [run for _, item_runs in runs for run in item_runs], _read_holdout(holdout, reader)
    tails = [
        (name, _training_or_holdout_part(item_runs, share, end=True)) for name, item_runs in runs
    ]
    return [
        run
        for _, item_runs in runs
        for run in _training_or_holdout_part(item_runs, share, end=False)
    ], _merge_by_name(tails)


def _with_shared_parsing(files: RecordingFiles, share: float) -> RecordingFiles:
    if isinstance(files.read, ParsedFiles):
        return files
    rows = None if share else files.read_rows
    parsed = ParsedFiles(files.read, rows, share)
    settings = None if files.settings is None else (*files.settings, share)
    return replace(
        files, read=parsed, read_rows=None if rows is None else parsed.rows, settings=settings
    )


def _read_holdout(holdout: Holdout, reader: Reader) -> Mapping[str, Sequence[Recording]]:
    """Hold-out recordings by name."""
    if holdout is None:
        return {}
    if isinstance(holdout, Mapping):
        return holdout
    paths = _holdout_paths(holdout, reader)
    if paths:
        return HoldoutFiles({str(path): partial(reader, path) for path in paths})
    items = enumerate(_to_list(holdout), 1)
    return _merge_by_name([(_item_name(item, number), reader(item)) for number, item in items])


def separate_recordings(recordings: Recordings, reader: Reader) -> dict[str, list[Recording]]:
    """Runs of every recording, file or frame, by name; equal names are numbered."""
    paths = _holdout_paths(recordings, reader)
    items: Sequence[RecordingLike] = paths or _to_list(recordings)
    names = [_item_name(item, number) for number, item in enumerate(items, 1)]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names, 1)]
    return {name: reader(item) for name, item in zip(names, items, strict=True)}


def _holdout_paths(holdout: Recordings, reader: Reader) -> tuple[Path, ...]:
    """Hold-out files; empty if they are not files."""
    items = _to_list(list(holdout.paths) if isinstance(holdout, RecordingFiles) else holdout)
    return _find_files(items, reader, allow_repeats=True).paths


def _merge_by_name(runs: Iterable[tuple[str, list[Recording]]]) -> dict[str, list[Recording]]:
    named_runs: dict[str, list[Recording]] = {}
    for name, item_runs in runs:
        named_runs.setdefault(name, []).extend(item_runs)
    return named_runs


def _to_list(recordings: Recordings) -> list[RecordingLike]:
    if isinstance(recordings, (Recording, str, os.PathLike)) or is_frame(recordings):
        return [recordings]
    if not isinstance(recordings, Iterable):
        raise RecordingError(
            f"expected recordings, files or frames, got {type(recordings).__name__}. The robot "
            "comes first, then the recordings."
        )
    return list(recordings)


def _find_files(
    items: list[RecordingLike], reader: Reader, *, allow_repeats: bool
) -> RecordingPaths:
    """Files, if all items are files."""
    files = [Path(item) for item in items if isinstance(item, (str, os.PathLike))]
    if len(files) < len(items):
        return RecordingPaths(())
    return find_recordings(files, allow_repeats=allow_repeats, column_map=reader.column_map)


def _item_name(item: RecordingLike, number: int) -> str:
    if isinstance(item, Recording):
        return item.name
    return str(item) if isinstance(item, (str, os.PathLike)) else f"frame {number}"
