"""Reading of recordings in any supported file format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.bounded_reading import require_file
from taufit.core.endings import missing_file_text
from taufit.core.errors import RecordingError
from taufit.core.lazy import Registry
from taufit.core.names import renamed_keywords
from taufit.recording.canonical import from_columns, metadata_from_text
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.recording import Recording
from taufit.recording.table import ColumnMapRequiredError, Table, column_map_required, is_frame

Map = str | os.PathLike[str] | Mapping[str, Any] | ColumnMap
# A table of columns in memory: pandas, polars and Arrow have no type in common.
Frame = Any
_Reader = Callable[..., list[Recording]]
_BAGS = (".mcap", ".bag", ".db3")


@renamed_keywords(map="column_map", effort="torque_kind")
def read_recording(
    path: str | os.PathLike[str] | Frame,
    *,
    column_map: Map | None = None,
    run: int | None = None,
    topic: str | None = None,
    torque_kind: str | None = None,
    payload: float | None = None,
    start: float | None = None,
    end: float | None = None,
) -> Recording:
    """Read one run, in SI units, with findings about irregularities.

    Args:
        path: .parquet, .csv, .tsv, .txt (also .gz), .npz, .npy, .mat, .h5, .mcap, .bag, a ROS 2 bag
            or LeRobot directory, or a .live file of a recording that was not finished; or a
            pandas or polars frame or an Arrow table.
        column_map: Column map: a YAML file, a dict with its content, or a `ColumnMap`. Not
            needed for taufit's files, UR RTDE records and joint states.
        run: Number of the run, if the file contains several.
        topic: Topic of the joint states, if a bag has several.
        torque_kind: Meaning of the torque channel: "torque" (N m), "current" (A),
            "torque_without_gravity" (N m, gravity subtracted by the controller) or "raw". Required
            for bags; overrides file and map elsewhere.
        payload: Payload mass [kg]; overrides file and map.
        start, end: Time interval to read [s after the first sample].

    Example:
        >>> import pandas, taufit
        >>> recording = taufit.read_recording("run.parquet")
        >>> recording.joints, recording.signal_unit
        (6, 'N m')
        >>> taufit.read_recording(pandas.read_parquet("run.parquet")).joints
        6
    """
    recordings = read_recordings(
        path,
        column_map=column_map,
        topic=topic,
        torque_kind=torque_kind,
        payload=payload,
        start=start,
        end=end,
    )
    if run is not None:
        for recording in recordings:
            if recording.meta.get("run") == run:
                return recording
        runs = [recording.meta.get("run") for recording in recordings]
        available = (
            f"runs {runs[0]} to {runs[-1]}" if runs[0] is not None else "one run, unnumbered"
        )
        raise RecordingError(f"{path} has {available}; there is no run {run}.")
    if len(recordings) > 1:
        first, last = recordings[0].meta["run"], recordings[-1].meta["run"]
        raise RecordingError(
            f"{path} holds {len(recordings)} runs ({first} to {last}); say which one with "
            "run=..., --run K, or read them all with read_recordings."
        )
    return recordings[0]


@renamed_keywords(map="column_map", effort="torque_kind")
def read_recordings(
    path: str | os.PathLike[str] | Frame,
    *,
    column_map: Map | None = None,
    topic: str | None = None,
    torque_kind: str | None = None,
    payload: float | None = None,
    start: float | None = None,
    end: float | None = None,
    rows: tuple[int, int] | None = None,
) -> list[Recording]:
    """Read every run of a file, one recording each.

    Arguments as `read_recording`; `rows` (first, last not included) selects rows of a Parquet file.
    """
    parsed_map = None if column_map is None else read_map(column_map)
    if rows is not None:
        recordings = _read_rows(_require_path(path), parsed_map, rows, torque_kind)
    elif is_frame(path):
        from taufit.recording.readers.from_frame import read_frame

        recordings = [
            with_torque_kind(recording_read, torque_kind)
            for recording_read in read_frame(path, parsed_map)
        ]
    else:
        recordings = _read_file(_require_path(path), parsed_map, topic, torque_kind)
    if payload is not None:
        if not 0 <= payload < 1e5:
            raise RecordingError(f"a payload of {payload:g} kg is not possible.")
        recordings = [replace(recording, payload=float(payload)) for recording in recordings]
    if start is not None or end is not None:
        from taufit.recording.crop import crop

        recordings = [crop(recording, start, end) for recording in recordings]
    return recordings


def _read_rows(
    path: Path, column_map: ColumnMap | None, rows: tuple[int, int], torque_kind: str | None
) -> list[Recording]:
    if _reader_suffix(path) != ".parquet":
        raise RecordingError(f"{path} is no Parquet file: it is read as a whole, not by rows.")
    return [
        with_torque_kind(recording, torque_kind)
        for recording in _reader(path)(path, column_map, rows)
    ]


def _require_path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise RecordingError(
            f"a recording is a file, a pandas or polars frame or an Arrow table; got "
            f"{type(path).__name__}."
        )
    file = Path(path)
    if not file.exists():
        raise RecordingError(missing_file_text(file))
    if not (file.is_fifo() and file.suffix.lower() in (".csv", ".tsv", ".txt")):
        require_file(file, error=RecordingError)
    return file


def _read_file(
    path: Path, column_map: ColumnMap | None, topic: str | None, torque_kind: str | None
) -> list[Recording]:
    if column_map is not None and column_map.file_names:
        from taufit.recording.assemble import assemble_recordings
        from taufit.recording.run_files import read_run

        table, run_map = read_run(path, column_map, partial(_file_table, column_map=column_map))
        return [with_torque_kind(r, torque_kind) for r in assemble_recordings(table, run_map)]
    reader = _reader(path)
    if _reader_suffix(path) in _BAGS:
        return reader(path, column_map, topic=topic, torque_kind=torque_kind)
    if topic is not None:
        raise RecordingError(f"{path} is not a ROS bag: --topic (topic) does not apply to it.")
    return [with_torque_kind(recording, torque_kind) for recording in reader(path, column_map)]


def with_torque_kind(recording: Recording, torque_kind: str | None) -> Recording:
    """Copy of a recording with its torque channel interpreted as `torque_kind`."""
    if torque_kind is None:
        return recording
    from taufit.recording.readers.from_bag import TORQUE_KINDS

    if torque_kind not in TORQUE_KINDS:
        raise RecordingError(f"effort {torque_kind!r} is not known: use {', '.join(TORQUE_KINDS)}.")
    meta = {**recording.meta}
    meta.pop("gravity_removed", None)
    findings = tuple(f for f in recording.findings if f.kind not in ("effort_unit", "gain_unknown"))
    if torque_kind == "raw":
        return replace(recording, signal_unit="", gain=None, meta=meta)
    if torque_kind == "current":
        current_gain = recording.gain if recording.signal_unit == "A" else None
        if current_gain is None and meta.get("gains") != "auto":
            meta["gains"] = "unknown"
        source = "motor_current"
        return replace(
            recording, signal_unit="A", gain=current_gain, torque_source=source, meta=meta
        )
    if torque_kind == "torque_without_gravity":
        meta["gravity_removed"] = True
    meta.pop("gains", None)
    is_torque = recording.signal_unit == "N m" and recording.gain is not None
    gain = recording.gain if is_torque else np.ones(recording.joints)
    source = recording.torque_source
    source = "motor_torque" if source == "motor_current" else source
    return replace(
        recording,
        signal_unit="N m",
        gain=gain,
        torque_source=source,
        meta=meta,
        findings=findings,
    )


def read_table(path: str | os.PathLike[str], *, topic: str | None = None) -> Table | None:
    """Table of a file without description; None if the file describes its columns."""
    path = _require_path(path)
    if _reader_suffix(path) in _BAGS:
        from taufit.recording.readers.from_bag import bag_table

        return bag_table(path, topic)
    if _reader_suffix(path) in _TEXT:
        from taufit.recording.readers.from_csv import read_csv_table

        table = read_csv_table(path)
        return None if "page" in table.meta else table
    try:
        _reader(path)(path, None)
    except ColumnMapRequiredError as error:
        return error.table
    return None


def _file_table(path: Path, column_map: ColumnMap | None = None) -> Table:
    """Table of a file that is one of several of a run."""
    if _reader_suffix(path) in _TEXT:
        from taufit.recording.readers.from_csv import read_csv_table

        return read_csv_table(path, column_map)
    table = read_table(path)
    if table is None:
        raise RecordingError(f"{path} says itself what its columns are: it is no part of a run.")
    return table


def _reader(path: Path) -> _Reader:
    ending = _reader_suffix(path)
    if not ending:
        from taufit.recording.readers.from_lerobot import read_lerobot

        return read_lerobot
    return READERS[ending]


def _reader_suffix(path: Path) -> str:
    """Suffix that selects the reader of a path; "" for a LeRobot dataset."""
    if path.is_dir():
        if (path / "meta" / "info.json").exists():
            return ""
        if (path / "metadata.yaml").exists():
            return ".db3"
        raise RecordingError(
            f"{path} is a directory, but neither a ROS 2 bag (metadata.yaml) nor a LeRobot dataset "
            "(meta/info.json)."
        )
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return ".csv"
    if suffix not in READERS:
        raise RecordingError(
            f"{path}: the ending {suffix or '(none)'} is not known; taufit reads "
            f"{', '.join(READERS)}, text also packed with gzip, ROS 2 bags and LeRobot datasets."
            + _OTHER_ENDINGS.get(suffix, "")
        )
    return suffix


def _from_csv(path: Path, column_map: ColumnMap | None) -> list[Recording]:
    from taufit.recording.readers.from_csv import read_csv_table

    table = read_csv_table(path, column_map)
    page = table.meta.pop("page", None)
    if column_map is None:
        if page is not None:
            columns = {name: table.values[:, i] for i, name in enumerate(table.names)}
            recording = from_columns(columns, metadata_from_text(page, str(path)), str(path))
            return [replace(recording, findings=(*recording.findings, *table.findings))]
        from taufit.recording.loggers import logger_map

        column_map = logger_map(table)
        if column_map is None:
            raise column_map_required(table)
    from taufit.recording.assemble import assemble_recordings

    return assemble_recordings(table, column_map)


_ROOM = "taufit.recording"
_TEXT = (".csv", ".tsv", ".txt", ".dat", ".log")
# What to do with a file that taufit does not read itself.
_OTHER_ENDINGS = {
    **dict.fromkeys((".zip", ".xz", ".bz2", ".zst", ".7z", ".tar", ".tgz", ".rar"), " Unpack it."),
    **dict.fromkeys(
        (".feather", ".arrow", ".json", ".jsonl", ".pkl", ".pickle", ".xlsx", ".xls", ".ods"),
        " Save it as CSV, or read it with pandas: taufit.read_recording and taufit.identify take "
        "frames.",
    ),
}
READERS: Registry[_Reader] = Registry(
    {
        ".parquet": f"{_ROOM}.readers.from_parquet:read_parquet",
        **dict.fromkeys(_TEXT, f"{_ROOM}.read:_from_csv"),
        ".npz": f"{_ROOM}.readers.from_arrays:read_npz",
        ".npy": f"{_ROOM}.readers.from_arrays:read_npy",
        ".mat": f"{_ROOM}.readers.from_arrays:read_mat",
        ".h5": f"{_ROOM}.readers.from_arrays:read_hdf5",
        ".hdf5": f"{_ROOM}.readers.from_arrays:read_hdf5",
        **dict.fromkeys(_BAGS, f"{_ROOM}.readers.from_bag:read_bag"),
        ".live": f"{_ROOM}.live:read_live",
    }
)
