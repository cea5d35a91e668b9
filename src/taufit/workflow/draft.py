"""Draft of a column map for files or a frame, compared with a robot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.dynamics import gravity_torque, inverse_dynamics
from taufit.recording import Recording, read_map, read_recordings
from taufit.recording.draft import Draft
from taufit.recording.draft.draft import draft_map as draft_table_map
from taufit.recording.draft.from_files import group_by_run, run_pattern, run_table
from taufit.recording.draft.from_names import is_quantity_name
from taufit.recording.files import find_recordings
from taufit.recording.read import read_table
from taufit.recording.readers.from_frame import frame_table
from taufit.recording.run_files import run_paths
from taufit.recording.table import Table, is_frame
from taufit.robot import Robot, read_robot

File = str | os.PathLike[str]


def draft_map(
    recordings: File | Sequence[File] | Any,
    *,
    robot: Robot | File | None = None,
    topic: str | None = None,
) -> Draft | None:
    """Draft a column map from names and numbers; None if the data describe themselves.

    `draft.page` is accepted as `column_map` wherever recordings are read, `draft.reasons`,
    `draft.rivals` and `draft.open_questions` explain it, and `draft.unknowns` are the values
    marked ??? that only you know.

    Args:
        recordings: File, or the files of a run that has one file per quantity, a folder or a
            pattern; or a pandas or polars frame or an Arrow table.
        robot: Robot that was recorded, if known: its gravity tells torque from current, its joint
            names and number select the columns.
        topic: Topic of the joint states, if a bag has several.

    Example:
        >>> import pandas, taufit
        >>> log = pandas.read_parquet("run.parquet")
        >>> log = log.rename(columns=lambda name: name.replace("position", "angle"))
        >>> taufit.draft_map(log).page["columns"]["position"]
        'angle_{joint}'
    """
    if is_frame(recordings):
        table = frame_table(recordings)
        return None if table is None else draft_with_robot(table, robot)
    items = [recordings] if isinstance(recordings, (str, os.PathLike)) else list(recordings)
    found = find_recordings([Path(item) for item in items], allow_repeats=True).paths
    return draft_files(found, robot=robot, topic=topic).draft


@dataclass(frozen=True, slots=True)
class FilesDraft:
    """Draft for files, and the files to give to a fit: the position file of every run."""

    draft: Draft | None
    table: Table | None
    paths: tuple[Path, ...]


def draft_files(
    paths: Sequence[Path], *, robot: Robot | File | None = None, topic: str | None = None
) -> FilesDraft:
    """Draft a map for the files of one or more runs."""
    if len(paths) == 1:
        table = read_table(paths[0], topic=topic)
        return FilesDraft(
            None if table is None else draft_with_robot(table, robot), table, tuple(paths)
        )
    runs = group_by_run(paths)
    is_named = all(is_quantity_name(path.name.split(".")[0]) for path in paths)
    if not (is_named and len(runs[0]) > 1) and _are_whole_runs(paths[0], robot, topic):
        single = draft_files(paths[:1], robot=robot, topic=topic)
        return replace(single, paths=tuple(paths))
    table = run_table({path: _require_table(path) for path in runs[0]})
    draft = draft_with_robot(table, robot)
    if len(runs) > 1:
        draft = replace(draft, page=_general_files(draft.page, runs))
    first = _entry_files(draft.page["columns"]["position"])[0]
    column_map = read_map({**draft.page, "rate_hz": 1.0})
    main = [path for path in paths if _is_main(path, first)]
    for path in main:
        run_paths(path, column_map)
    return FilesDraft(draft, table, tuple(main))


def _are_whole_runs(path: Path, robot: Any, topic: str | None) -> bool:
    """Whether one file alone has positions and torque, so that several files are several runs."""
    try:
        return read_table(path, topic=topic) is None or bool(draft_files([path], robot=robot))
    except RecordingError:
        return False


def _require_table(path: Path) -> Table:
    table = read_table(path)
    if table is None:
        raise RecordingError(f"{path} says itself what its columns are: it is no part of a run.")
    return table


def _entry_files(entry: Any) -> list[str]:
    files = entry.get("file", []) if isinstance(entry, dict) else []
    return [files] if isinstance(files, str) else list(files)


def _is_main(path: Path, name: str) -> bool:
    head, _, tail = name.partition("*")
    return path.name == name or (
        "*" in name and path.name.startswith(head) and path.name.endswith(tail)
    )


def _general_files(page: dict[str, Any], runs: list[list[Path]]) -> dict[str, Any]:
    """Page with `*` in its file names for the part that changes from run to run."""
    patterns = {
        names[0]: run_pattern(names)
        for names in zip(*([path.name for path in run] for run in runs), strict=True)
    }
    columns = {}
    for quantity, entry in page["columns"].items():
        if isinstance(entry, dict) and "file" in entry:
            files = [patterns[file] for file in _entry_files(entry)]
            entry = {**entry, "file": files if isinstance(entry["file"], list) else files[0]}
        columns[quantity] = entry
    return {**page, "columns": columns}


def draft_with_robot(table: Table, robot: Robot | File | None) -> Draft:
    """Draft a map from a table, compared with a robot if it is known."""
    if robot is None:
        return draft_table_map(table)
    arm = robot if isinstance(robot, Robot) else read_robot(robot)
    if not arm.parameters.any():
        return draft_table_map(table, joints=arm.joints, joint_names=arm.joint_names)
    return draft_table_map(
        table,
        joints=arm.joints,
        joint_names=arm.joint_names,
        gravity=lambda q: gravity_torque(arm, q),
        inertial=lambda q, v, a: inverse_dynamics(arm, q, v, a) - gravity_torque(arm, q),
    )


def read_with_draft(result: FilesDraft, topic: str | None = None) -> list[Recording]:
    """Recordings read with a drafted map; none if it has unknowns."""
    if result.draft is None or result.draft.unknowns:
        return []
    column_map = read_map(result.draft.page)
    return [
        recording
        for path in result.paths
        for recording in read_recordings(path, column_map=column_map, topic=topic)
    ]
