"""Recording files of a fleet, with their robot and day.

Below the given path, the first folder or file name is the robot and the second the day:
ROBOT/DAY/FILE or ROBOT/DAY.parquet or ROBOT.parquet; names such as robot=R7 are explicit, and a
date anywhere in the name is the day. Paths are local, or any address of fsspec (s3://, gs://,
http://, memory://, ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.core.extras import missing_extra
from taufit.core.process_cleanup import temporary_folder
from taufit.recording.files import find_recordings, is_recording_name
from taufit.recording.repeats import find_repeated_files

KEYS = ("robot", "day")
_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


@dataclass(frozen=True, slots=True)
class FleetFile:
    """File of a fleet.

    Attributes:
        url: Local path, or address for fsspec.
        name: Path below the given one, for messages.
        robot, day: Robot and day of the recording; "" if not distinguished.
        size: Size [bytes].
    """

    url: str
    name: str
    robot: str
    day: str
    size: int

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Context with the file on this computer; the copy of a remote file is deleted
        afterwards.
        """
        if not is_remote(self.url):
            yield Path(self.url)
            return
        with temporary_folder() as folder:
            path = folder / PurePosixPath(self.name).name
            system, remote_path = _open_file_system(self.url)
            try:
                system.get_file(remote_path, str(path))
            except Exception as error:  # errors differ between storage systems
                raise RecordingError(f"{self.url} cannot be read: {error}.") from None
            yield path


def is_remote(path: str) -> bool:
    """Whether a path is an address for fsspec."""
    return "://" in path


def find_fleet_files(path: str, by: Sequence[str] = KEYS) -> tuple[FleetFile, ...]:
    """All recordings below a path, sorted by name.

    Args:
        path: Folder or pattern, local or remote.
        by: Keys that distinguish recordings: robot, day.
    """
    entries = _find_remote(path) if is_remote(path) else _find_local(Path(path))
    if not entries:
        raise RecordingError(
            f"{path}: there is no recording. Name a folder or a pattern that has some."
        )
    return tuple(
        FleetFile(url, name, *_robot_and_day(name, by), size)
        for url, name, size in sorted(entries, key=_entry_name)
    )


def _entry_name(entry: tuple[str, str, int]) -> str:
    return entry[1]


def _find_local(path: Path) -> list[tuple[str, str, int]]:
    # Repeats are handled later, when the robots are known.
    files, root, _ = find_recordings([path], allow_repeats=True)
    root = path.parent if root is None else root
    return [
        (str(file), file.relative_to(root).as_posix(), file.stat().st_size if file.is_file() else 0)
        for file in files
    ]


def _find_remote(path: str) -> list[tuple[str, str, int]]:
    system, remote_path = _open_file_system(path)
    protocol = path.split("://", 1)[0]
    try:
        pattern = any(mark in remote_path for mark in "*?[")
        matches = system.glob(remote_path) if pattern else system.find(remote_path)
        names = sorted(name for name in matches if is_recording_name(PurePosixPath(name)))
        sizes = {name: int(system.size(name) or 0) for name in names}
    except Exception as error:  # errors differ between storage systems
        raise RecordingError(f"{path} cannot be listed: {error}.") from None
    root = remote_path.split("*", 1)[0].rsplit("/", 1)[0] if pattern else remote_path.rstrip("/")
    out = []
    for name in names:
        relative_name = name[len(root) :].lstrip("/") if name.startswith(root) else name
        url = name if is_remote(name) else f"{protocol}://{name}"
        out.append((url, relative_name, sizes[name]))
    return out


def _open_file_system(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise missing_extra("fleet", f"reading {path}") from None
    try:
        system, remote_path = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise RecordingError(f"{path} cannot be opened: {error}") from None
    return system, remote_path


def without_repeats(
    files: Sequence[FleetFile], *, allow: bool = False
) -> tuple[tuple[FleetFile, ...], list[tuple[FleetFile, str]]]:
    """Local files without repeats, and the repeats with reasons.

    Of one robot's repeats the first counts; of files under several robots none does, since their
    robot is unknown. If repeats are allowed, all count.
    """
    local = [file for file in files if not (allow or is_remote(file.url))]
    repeats = find_repeated_files(Path(file.url) for file in local)
    groups: dict[int, list[int]] = {}
    for k, first in repeats.items():
        groups.setdefault(first, [first]).append(k)
    refused: dict[str, tuple[FleetFile, str]] = {}
    for members in groups.values():
        has_several_robots = len({local[k].robot for k in members}) > 1
        for k in members if has_several_robots else members[1:]:
            other = next(m for m in members if m != k)
            reason = f"its content is that of {local[other].name}"
            reason += (
                ", so it is not known whose it is"
                if has_several_robots
                else ", which counts already"
            )
            refused[local[k].url] = local[k], f"{reason} (--allow-repeats counts both)"
    unique = tuple(file for file in files if file.url not in refused)
    return unique, list(refused.values())


def _robot_and_day(name: str, by: Sequence[str]) -> tuple[str, str]:
    """Robot and day of a file, from its name below the given path."""
    path = PurePosixPath(name)
    parts = [*path.parts[:-1], path.name.split(".")[0]]
    # Other names with "=" have no special meaning.
    named_parts = {key: value for key, _, value in (part.partition("=") for part in parts)
            if key in KEYS and value}  # fmt: skip
    date = _DATE.search(name)
    levels = [part for part in parts if part.partition("=")[0] not in named_parts]
    robot = named_parts.get("robot")
    if robot is None:
        first = levels.pop(0) if levels else ""
        robot = _DATE.sub("", first).strip("_-. ") or first
    day = named_parts.get("day")
    if day is None and date is not None:
        day = "-".join(date.groups())
    if day is None:
        day = levels[0] if levels else ""
    return robot if "robot" in by else "", day if "day" in by else ""
