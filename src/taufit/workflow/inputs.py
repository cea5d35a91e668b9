"""What a caller of `identify` may hand over, as the nouns it works with.

A robot is a `Robot` or what `read_robot` takes; a recording is a `Recording` or what
`read_recordings` takes (a file or a frame). Recordings that are kept out are any of these, a
mapping of names to them, or a share such as "30%": the last part of every recording.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording import Recording, read_recordings, share_of_runs
from taufit.recording.column_map import read_map
from taufit.recording.files import FoundRecordings, HoldoutFiles, RecordingFiles, find_recordings
from taufit.recording.read import Map
from taufit.recording.readers.from_frame import is_frame
from taufit.robot import Robot, read_robot

File = str | os.PathLike[str]
# One recording; frames of pandas and polars have no type in common.
RecordingLike = Recording | File | Any
Recordings = RecordingLike | Sequence[RecordingLike] | RecordingFiles
Holdout = Recordings | Mapping[str, Sequence[Recording]] | None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads files and frames, whole or a part of each.

    Attributes:
        map, effort: As `read_recordings` takes them.
        share: Of every recording, kept out at its end; 0 for none.
        end: Whether that end is read, or what comes before it.
    """

    map: Map | None = None
    effort: str | None = None
    share: float = 0.0
    end: bool = False

    def __call__(self, one: RecordingLike) -> list[Recording]:
        runs = (
            [one]
            if isinstance(one, Recording)
            else read_recordings(one, map=self.map, effort=self.effort)
        )
        return share_of_runs(runs, self.share, end=self.end) if self.share else runs

    @property
    def settings(self) -> tuple[Any, ...]:
        """What decides, beside its content, what is read from a file."""
        how = None if self.map is None else read_map(self.map)
        return how, self.effort, self.share, self.end

    @property
    def whole(self) -> bool:
        """Whether all of a file is read."""
        return not self.share

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a long Parquet file."""
        return read_recordings(path, map=self.map, effort=self.effort, rows=(first, last))


def as_robot(robot: Robot | File, recordings: Sequence[Recording] | RecordingFiles) -> Robot:
    """The arm; one that is read is mounted as the first recording says."""
    if isinstance(robot, Robot):
        return robot
    first = recordings[0] if len(recordings) else None
    run = first[0] if isinstance(first, list) else first
    return read_robot(robot, mounting=None if run is None else run.meta.get("mounting"))


def as_recordings(
    given: Recordings, reader: Reader, *, allow_repeats: bool = False
) -> Sequence[Recording] | RecordingFiles:
    """Files stay files, so that they are gone through one at a time."""
    if isinstance(given, RecordingFiles):
        return given
    many = _listed(given)
    found = _found(many, allow_repeats=allow_repeats)
    if found.paths:
        rows = None if reader.share else reader.rows
        return RecordingFiles(found.paths, reader, rows, reader.settings, findings=found.findings)
    return [run for one in many for run in reader(one)]


def as_holdout(
    given: Holdout, recordings: Recordings, reader: Reader
) -> Mapping[str, Sequence[Recording]]:
    """What is kept out, by name."""
    if isinstance(given, Mapping):
        return given
    if given is None:
        return {}
    if share_of(given):
        many, read = _listed(recordings), Reader(reader.map, reader.effort, reader.share, end=True)
    else:
        many, read = _listed(given), Reader(reader.map, reader.effort)
    paths = _found(many, allow_repeats=True).paths
    if paths:
        return HoldoutFiles({path.name if read.end else str(path): path for path in paths}, read)
    named_runs: dict[str, list[Recording]] = {}
    for number, one in enumerate(many, 1):
        named_runs.setdefault(_name(one, number), []).extend(read(one))
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
    if isinstance(given, RecordingFiles):
        return list(given.paths)
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
