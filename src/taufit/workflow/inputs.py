"""What a caller of `identify` may hand over, as the nouns it works with; each file parsed once.

A robot is a `Robot` or what `read_robot` takes; a recording is a `Recording` or what
`read_recordings` takes (a file or a frame). Recordings that are kept out are any of these, a
mapping of names to them, or a share such as "30%": the last part of every recording.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from taufit.core.errors import RecordingError
from taufit.recording import Recording, read_recordings, share_of_runs
from taufit.recording.column_map import read_map
from taufit.recording.files import FoundRecordings, HoldoutFiles, RecordingFiles, find_recordings
from taufit.recording.finding import Finding
from taufit.recording.read import Map
from taufit.recording.readers.from_frame import is_frame
from taufit.signals.storage.stored_samples import PartStore

File = str | os.PathLike[str]
# One recording; frames of pandas and polars have no type in common.
RecordingLike = Recording | File | Any
Recordings = RecordingLike | Sequence[RecordingLike] | RecordingFiles
Holdout = Recordings | Mapping[str, Sequence[Recording]] | None
# Rows that are read at once to decide on gains and cut-off, and stay in memory; recordings of no
# more than these are fitted in memory.
LEAD_ROWS = 2**15


@runtime_checkable
class FileReader(Protocol):
    """Reads files; a `Reader` is one, and so are the command's options."""

    @property
    def settings(self) -> tuple[Any, ...]:
        """What decides, beside its content, what is read from a file."""

    @property
    def whole(self) -> bool:
        """Whether files are read as they are, so that long ones may be read in sections."""

    def __call__(self, path: Path, /) -> list[Recording]:
        """The runs of a file."""

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long one."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads files and frames.

    Attributes:
        map, effort: As `read_recordings` takes them.
    """

    map: Map | None = None
    effort: str | None = None

    def __call__(self, one: RecordingLike) -> list[Recording]:
        if isinstance(one, Recording):
            return [one]
        return read_recordings(one, map=self.map, effort=self.effort)

    @property
    def settings(self) -> tuple[Any, ...]:
        """What decides, beside its content, what is read from a file."""
        return None if self.map is None else read_map(self.map), self.effort

    @property
    def whole(self) -> bool:
        """Whether all of a file is read."""
        return True

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long Parquet file."""
        return read_recordings(path, map=self.map, effort=self.effort, rows=(first, last))


class ParsedFiles:
    """Runs of files, each parsed once, and cut in two where a share is kept out of the fit.

    The first files stay in memory until that holds `LEAD_ROWS` rows; hold-out parts of all others
    wait in a temporary folder, where workers that read a file leave them.

    Args:
        read: Parses a file; a function that other processes can be handed.
        rows: Parses some rows of a long one, where that is possible.
        share: Of every recording, kept out at its end; 0 for none.
    """

    def __init__(
        self,
        read: Callable[[Path], list[Recording]],
        rows: Callable[[Path, int, int], list[Recording]] | None = None,
        share: float = 0.0,
    ) -> None:
        self._read, self._read_rows, self.share = read, rows, share
        self._runs: dict[Hashable, list[Recording]] = {}
        self._count = 0.0
        self._store = PartStore() if share else None
        self._folder = None if self._store is None else self._store.folder

    def __call__(self, path: Path) -> list[Recording]:
        """The runs that are fitted."""
        runs = self._parsed(path)
        return share_of_runs(runs, self.share, end=False) if self.share else runs

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long file."""
        assert self._read_rows is not None
        read = partial(self._read_rows, path, first, last)
        return self._kept((path, first, last), read)

    def tail(self, path: Path) -> list[Recording]:
        """Hold-out parts of the runs."""
        waiting = self._waiting(path)
        if waiting.exists():
            tails: list[Recording] = pickle.loads(waiting.read_bytes())
            return tails
        return share_of_runs(self._parsed(path), self.share, end=True)

    def _parsed(self, path: Path) -> list[Recording]:
        runs = self._kept(path, partial(self._read, path))
        if self.share and path not in self._runs and not self._waiting(path).exists():
            tails = share_of_runs(runs, self.share, end=True)
            self._waiting(path).write_bytes(pickle.dumps(tails))
        return runs

    def _kept(self, key: Hashable, read: Callable[[], list[Recording]]) -> list[Recording]:
        if key in self._runs:
            return self._runs[key]
        runs = read()
        if self._count < LEAD_ROWS:
            self._runs[key] = runs
            self._count += sum(len(run.time) for run in runs)
        return runs

    def _waiting(self, path: Path) -> Path:
        assert self._folder is not None
        return self._folder / hashlib.sha256(os.fsencode(path)).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        # Workers parse files that this process does not.
        return {**self.__dict__, "_runs": {}, "_count": float("inf"), "_store": None}


def recording_files(
    paths: Sequence[Path],
    reader: FileReader,
    share: float = 0.0,
    findings: tuple[Finding, ...] = (),
) -> RecordingFiles:
    """Files to fit, without the share at their end that is kept out."""
    rows = reader.rows if reader.whole and not share else None
    parsed = ParsedFiles(reader, rows, share)
    settings = (*reader.settings, share)
    read_rows = None if rows is None else parsed.rows
    return RecordingFiles(tuple(paths), parsed, read_rows, settings, findings=findings)


def holdout_files(
    files: RecordingFiles, others: Sequence[Path], reader: FileReader
) -> HoldoutFiles:
    """Hold-out parts of files that are fitted, and further files, by name."""
    parsed = files.read
    assert isinstance(parsed, ParsedFiles)
    tails = files.paths if parsed.share else ()
    return HoldoutFiles(
        {path.name: partial(parsed.tail, path) for path in tails}
        | {str(path): partial(reader, path) for path in others}
    )


def as_inputs(
    recordings: Recordings, holdout: Holdout, reader: Reader, *, allow_repeats: bool = False
) -> tuple[Sequence[Recording] | RecordingFiles, Mapping[str, Sequence[Recording]]]:
    """What is fitted, and what is kept out, by name. Files stay files, read one at a time."""
    share = share_of(holdout)
    if isinstance(recordings, RecordingFiles):
        files: RecordingFiles | None = _parsed_once(recordings, share)
    else:
        given = _listed(recordings)
        found = _found(given, allow_repeats=allow_repeats)
        files = recording_files(found.paths, reader, share, found.findings) if found.paths else None
    if files is not None:
        return files, holdout_files(files, (), reader) if share else _holdout(holdout, reader)
    runs = [(_name(one, number), reader(one)) for number, one in enumerate(given, 1)]
    if not share:
        return [run for _, own in runs for run in own], _holdout(holdout, reader)
    tails = [(name, share_of_runs(own, share, end=True)) for name, own in runs]
    return [run for _, own in runs for run in share_of_runs(own, share, end=False)], _named(tails)


def _parsed_once(files: RecordingFiles, share: float) -> RecordingFiles:
    if isinstance(files.read, ParsedFiles):
        return files
    rows = None if share else files.read_rows
    parsed = ParsedFiles(files.read, rows, share)
    settings = None if files.settings is None else (*files.settings, share)
    return replace(
        files, read=parsed, read_rows=None if rows is None else parsed.rows, settings=settings
    )


def _holdout(given: Holdout, reader: Reader) -> Mapping[str, Sequence[Recording]]:
    """Recordings that are kept out, by name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    many = _listed(list(given.paths) if isinstance(given, RecordingFiles) else given)
    paths = _found(many, allow_repeats=True).paths
    if paths:
        return HoldoutFiles({str(path): partial(reader, path) for path in paths})
    return _named([(_name(one, number), reader(one)) for number, one in enumerate(many, 1)])


def _named(runs: Iterable[tuple[str, list[Recording]]]) -> dict[str, list[Recording]]:
    named_runs: dict[str, list[Recording]] = {}
    for name, own in runs:
        named_runs.setdefault(name, []).extend(own)
    return named_runs


def share_of(holdout: Holdout) -> float:
    """The share in "30%" as 0.3; 0 for anything else."""
    if not isinstance(holdout, str) or not holdout.endswith("%"):
        return 0.0
    try:
        share = float(holdout[:-1]) / 100.0
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise RecordingError(f"expected a share between 0% and 100% to keep out, got {holdout!r}.")
    return share


def _listed(given: Recordings) -> list[RecordingLike]:
    if isinstance(given, (Recording, str, os.PathLike)) or is_frame(given):
        return [given]
    if not isinstance(given, Iterable):
        raise RecordingError(f"expected recordings, files or frames, got {type(given).__name__}.")
    return list(given)


def _found(many: list[RecordingLike], *, allow_repeats: bool) -> FoundRecordings:
    """The files, where all are files."""
    files = [Path(one) for one in many if isinstance(one, (str, os.PathLike))]
    if len(files) < len(many):
        return FoundRecordings(())
    return find_recordings(files, allow_repeats=allow_repeats)


def _name(one: RecordingLike, number: int) -> str:
    if isinstance(one, Recording):
        return one.name
    return str(one) if isinstance(one, (str, os.PathLike)) else f"frame {number}"
