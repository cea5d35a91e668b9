"""Where a fleet's recordings are, whose they are and of which day.

Below the path that was given, the first name is the robot's and the second the day's:
ROBOT/DAY/FILE or ROBOT/DAY.parquet or ROBOT.parquet; names such as robot=R7 say it themselves, and
a date anywhere in the name is the day. Paths are local, or whatever fsspec can open (s3://, gs://,
http://, memory://, ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from taufit.core.ending import temporary_folder
from taufit.core.errors import RecordingError
from taufit.core.extras import missing_extra
from taufit.recording.files import find_recordings, is_recording_name
from taufit.recording.repeats import find_repeated_files

KEYS = ("robot", "day")
_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


@dataclass(frozen=True, slots=True)
class FleetFile:
    """One file of a fleet.

    Attributes:
        url: Where it is: a local path, or an address for fsspec.
        name: Below the path that was given, for messages.
        robot, day: Whose it is, and of when; "" where that is not asked for.
        size: Bytes.
    """

    url: str
    name: str
    robot: str
    day: str
    size: int

    @contextmanager
    def local(self) -> Iterator[Path]:
        """The file on this computer; a copy of a remote one is gone after the block."""
        if not is_remote(self.url):
            yield Path(self.url)
            return
        with temporary_folder() as folder:
            path = folder / PurePosixPath(self.name).name
            system, place = _opened(self.url)
            try:
                system.get_file(place, str(path))
            except Exception as error:  # every store has errors of its own
                raise RecordingError(f"{self.url} cannot be read: {error}.") from None
            yield path


def is_remote(path: str) -> bool:
    """Whether a path is an address for fsspec."""
    return "://" in path


def find_fleet_files(path: str, by: Sequence[str] = KEYS) -> tuple[FleetFile, ...]:
    """All recordings below a path, sorted by name.

    Args:
        path: A folder or pattern, local or remote.
        by: What recordings are told apart by: robot, day.
    """
    found = _remote(path) if is_remote(path) else _local(Path(path))
    if not found:
        raise RecordingError(
            f"{path}: there is no recording. Name a folder or a pattern that has some."
        )
    return tuple(
        FleetFile(url, name, *_whose(name, by), size)
        for url, name, size in sorted(found, key=_second)
    )


def _second(entry: tuple[str, str, int]) -> str:
    return entry[1]


def _local(path: Path) -> list[tuple[str, str, int]]:
    # Repeats are refused file by file, when it is known whose they are.
    files, top, _ = find_recordings([path], allow_repeats=True)
    top = path.parent if top is None else top
    return [
        (str(file), file.relative_to(top).as_posix(), file.stat().st_size if file.is_file() else 0)
        for file in files
    ]


def _remote(path: str) -> list[tuple[str, str, int]]:
    system, place = _opened(path)
    protocol = path.split("://", 1)[0]
    try:
        pattern = any(mark in place for mark in "*?[")
        found = system.glob(place) if pattern else system.find(place)
        names = sorted(name for name in found if is_recording_name(PurePosixPath(name)))
        sizes = {name: int(system.size(name) or 0) for name in names}
    except Exception as error:  # every store has errors of its own
        raise RecordingError(f"{path} cannot be listed: {error}.") from None
    top = place.split("*", 1)[0].rsplit("/", 1)[0] if pattern else place.rstrip("/")
    out = []
    for name in names:
        below = name[len(top) :].lstrip("/") if name.startswith(top) else name
        url = name if is_remote(name) else f"{protocol}://{name}"
        out.append((url, below, sizes[name]))
    return out


def _opened(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise missing_extra("fleet", f"reading {path}") from None
    try:
        system, place = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise RecordingError(f"{path} cannot be opened: {error}") from None
    return system, place


def without_repeats(
    places: Sequence[FleetFile], *, allow: bool = False
) -> tuple[tuple[FleetFile, ...], list[tuple[FleetFile, str]]]:
    """Local files that are no repeats of others, and those that are, each with the reason.

    Of one robot's repeats the first counts; of files that lie with several robots none does, since
    nobody knows whose they are. Where repeats are allowed, all count.
    """
    local = [place for place in places if not (allow or is_remote(place.url))]
    repeats = find_repeated_files(Path(place.url) for place in local)
    groups: dict[int, list[int]] = {}
    for k, first in repeats.items():
        groups.setdefault(first, [first]).append(k)
    refused: dict[str, tuple[FleetFile, str]] = {}
    for members in groups.values():
        shared = len({local[k].robot for k in members}) > 1
        for k in members if shared else members[1:]:
            other = next(m for m in members if m != k)
            why = f"its content is that of {local[other].name}"
            why += ", so it is not known whose it is" if shared else ", which counts already"
            refused[local[k].url] = local[k], f"{why} (--allow-repeats counts both)"
    kept = tuple(place for place in places if place.url not in refused)
    return kept, list(refused.values())


def _whose(name: str, by: Sequence[str]) -> tuple[str, str]:
    """Robot and day of a file, by its name below the path that was given."""
    path = PurePosixPath(name)
    parts = [*path.parts[:-1], path.name.split(".")[0]]
    # Other names with "=" in them are names like any.
    said = {key: value for key, _, value in (part.partition("=") for part in parts)
            if key in KEYS and value}  # fmt: skip
    date = _DATE.search(name)
    levels = [part for part in parts if part.partition("=")[0] not in said]
    robot = said.get("robot")
    if robot is None:
        first = levels.pop(0) if levels else ""
        robot = _DATE.sub("", first).strip("_-. ") or first
    day = said.get("day")
    if day is None and date is not None:
        day = "-".join(date.groups())
    if day is None:
        day = levels[0] if levels else ""
    return robot if "robot" in by else "", day if "day" in by else ""
