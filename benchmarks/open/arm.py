"""Contract of an arm: its robot, how its files are read, and which rows each task uses."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open.conditioning import condition
from benchmarks.open.run import Run

ROOT = Path(__file__).resolve().parents[2]
TASKS = (
    *("unseen motion", "short data", "poor excitation", "other day"),
    *("payload", "contact", "export", "servo replay"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """Rows of one file.

    Attributes:
        file: Below the data folder; several files of one run are joined by "+".
        first, last: Rows of the recording, counted from 0, without `last`; None: to the end.
        mass: Payload that was carried [kg].
    """

    file: str
    first: int = 0
    last: int | None = None
    mass: float = 0.0


@dataclass(frozen=True, slots=True)
class Split:
    """Sections to fit and sections to judge the fit by."""

    training: tuple[Section, ...]
    test: tuple[Section, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """Arm of the benchmark.

    Attributes:
        title: Name of the robot.
        source, licence: Where users get the recordings.
        torque: Measured signal, in words.
        torque_source: "motor_torque" or "joint_torque_sensor".
        robot: Bundled name, or description below the data folder or the repository.
        read: Function from the paths of a run's files to a recording.
        splits: Sections of each task. `contact` and `export` use those of `unseen motion`.
        why_not: Reason for tasks that the recordings do not allow.
        cutoff_hz: Cut-off of the low-pass [Hz].
    """

    title: str
    source: str
    licence: str
    torque: str
    torque_source: str
    robot: str
    read: Callable[..., Any]
    splits: Mapping[str, Split]
    why_not: Mapping[str, str] = field(default_factory=dict)
    cutoff_hz: float = 10.0

    def split(self, task: str) -> Split | None:
        """Sections of a task, or None where the recordings do not allow it."""
        if task in ("contact", "export"):
            task = "unseen motion"
        return self.splits.get(task)

    def files(self) -> list[str]:
        """All files of all tasks."""
        names = {
            name
            for split in self.splits.values()
            for section in (*split.training, *split.test)
            for name in section.file.split("+")
        }
        return sorted(names)


def load_arms(names: list[str] | None = None) -> dict[str, Arm]:
    """Arms by the name of their file, in order."""
    folder = Path(__file__).parent / "arms"
    known = sorted(m.name for m in pkgutil.iter_modules([str(folder)]))
    for name in names or ():
        if name not in known:
            raise SystemExit(f"arm {name} not found. Available: {', '.join(known)}.")
    return {
        name: importlib.import_module(f"benchmarks.open.arms.{name}").ARM
        for name in known
        if not names or name in names
    }


def description_of(arm: Arm, data: Path) -> str:
    """Path of the robot's description, or its bundled name."""
    for folder in (data, ROOT):
        if (folder / arm.robot).is_file():
            return str((folder / arm.robot).resolve())
    return arm.robot


@lru_cache(maxsize=32)
def read_section(arm: Arm, data: Path, section: Section) -> Run:
    """Rows of a file, as recorded and on the grid."""
    recording = read_file(arm, data, section)
    rows = slice(section.first, section.last)
    velocity, command = recording.velocity, recording.commanded_position
    gain = 1.0 if recording.gain is None else recording.gain
    torque = recording.signal * gain
    if recording.coupling is not None:
        torque = torque @ recording.coupling
    # Rows that a controller has logged twice carry nothing.
    time, keep = np.unique(recording.time[rows], return_index=True)
    return condition(
        time,
        recording.position[rows][keep],
        None if velocity is None else velocity[rows][keep],
        torque[rows][keep],
        arm.cutoff_hz,
        None if command is None else command[rows][keep],
    )


def coupling_of(arm: Arm, data: Path, section: Section) -> np.ndarray | None:
    """Coupling matrix C of the motors, q_m = C q, or None for one motor per joint."""
    coupling: np.ndarray | None = read_file(arm, data, section).coupling
    return coupling


def read_file(arm: Arm, data: Path, section: Section) -> Any:
    """Whole recording of a section's files."""
    return arm.read(*(data / name for name in section.file.split("+")))


def mapped(column_map: Any, **changes: Any) -> Callable[[Path], Any]:
    """Reader by a column map: a dictionary, or a file beside the log or in examples/columns."""

    def read(path: Path) -> Any:
        from taufit.recording import read_recording

        columns = column_map
        if isinstance(column_map, str):
            beside = path.parent / column_map
            columns = beside if beside.exists() else ROOT / "examples" / "columns" / column_map
        return replace(read_recording(path, column_map=columns), **changes)

    return read


def parts(file: str, training: tuple[int, int], test: tuple[int, int]) -> Split:
    """Rows of one file to fit, and later rows of it to judge the fit by."""
    return Split((Section(file, *training),), (Section(file, *test),))


def digest(path: Path) -> str:
    """SHA-256 of a file's contents; of compressed files that of the text inside."""
    contents = path.read_bytes()
    if path.suffix == ".gz":
        import gzip

        contents = gzip.decompress(contents)
    return hashlib.sha256(contents).hexdigest()
