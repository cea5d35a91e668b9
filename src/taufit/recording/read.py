"""Any file a robot or a logger wrote -> Recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.errors import RecordingError
from taufit.core.opened import require_file
from taufit.recording.assemble import assemble
from taufit.recording.canonical import from_columns, from_text
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.cut import cut
from taufit.recording.draft.needs_map import NeedsMapError, needs_map
from taufit.recording.live import read_live
from taufit.recording.loggers import logger_map
from taufit.recording.readers.from_arrays import read_hdf5, read_mat, read_npz
from taufit.recording.readers.from_bag import EFFORTS, bag_table, read_bag
from taufit.recording.readers.from_csv import read_csv_table
from taufit.recording.readers.from_frame import is_frame, read_frame
from taufit.recording.readers.from_lerobot import read_lerobot
from taufit.recording.readers.from_parquet import read_parquet
from taufit.recording.recording import Recording
from taufit.recording.table import Table

Map = str | os.PathLike[str] | Mapping[str, Any] | ColumnMap
# A table of columns in memory: pandas, polars and Arrow have no type in common.
Frame = Any
_Reader = Callable[[Path, ColumnMap | None], list[Recording]]


def read_recording(
    path: str | os.PathLike[str] | Frame,
    *,
    map: Map | None = None,
    run: int | None = None,
    topic: str | None = None,
    effort: str | None = None,
    payload: float | None = None,
    start: float | None = None,
    end: float | None = None,
) -> Recording:
    """Read one run, in SI units, with findings about everything that was not as it should be.

    Args:
        path: .parquet, .csv, .tsv, .txt (also .gz), .npz, .mat, .h5, .mcap, .bag, a ROS 2 bag
            or LeRobot directory, or a .live file of a recording that was not finished; or a
            pandas or polars frame or an Arrow table.
        map: What the columns are: a YAML file, the same as a dict, or a `ColumnMap`. taufit's
            own files, UR RTDE records and joint states need none.
        run: Which run, where the file holds several.
        topic: Of the joint states, for bags that have several.
        effort: What the torque channel is: "torque" (N m), "current" (A),
            "torque_without_gravity" (N m, gravity subtracted by the controller) or "raw". Bags do
            not say it; elsewhere it goes before what the file or map says.
        payload: Mass the robot carried [kg]; goes before what the file or map says.
        start, end: Only what was recorded between them [s after the first sample].

    Example:
        >>> import pandas, taufit
        >>> recording = taufit.read_recording("run.parquet")
        >>> recording.joints, recording.signal_unit
        (6, 'N m')
        >>> taufit.read_recording(pandas.read_parquet("run.parquet")).joints
        6
    """
    recordings = read_recordings(
        path, map=map, topic=topic, effort=effort, payload=payload, start=start, end=end
    )
    if run is not None:
        for recording in recordings:
            if recording.meta.get("run") == run:
                return recording
        runs = [recording.meta.get("run") for recording in recordings]
        have = f"runs {runs[0]} to {runs[-1]}" if runs[0] is not None else "one run, unnumbered"
        raise RecordingError(f"{path} has {have}; there is no run {run}.")
    if len(recordings) > 1:
        first, last = recordings[0].meta["run"], recordings[-1].meta["run"]
        raise RecordingError(
            f"{path} holds {len(recordings)} runs ({first} to {last}); say which one with "
            "run=..., --run K, or read them all with read_recordings."
        )
    return recordings[0]


def read_recordings(
    path: str | os.PathLike[str] | Frame,
    *,
    map: Map | None = None,
    topic: str | None = None,
    effort: str | None = None,
    payload: float | None = None,
    start: float | None = None,
    end: float | None = None,
    rows: tuple[int, int] | None = None,
) -> list[Recording]:
    """Read every run of a file; one recording each, never mixed.

    Arguments as `read_recording`; `rows` (first, last not included) reads part of a Parquet file.
    """
    column_map = None if map is None else read_map(map)
    if rows is not None:
        recordings = _rows_of_file(_existing(path), column_map, rows, effort)
    elif is_frame(path):
        recordings = [declared(one, effort) for one in read_frame(path, column_map)]
    else:
        recordings = _from_file(_existing(path), column_map, topic, effort)
    if payload is not None:
        if not 0 <= payload < 1e5:
            raise RecordingError(f"a payload of {payload:g} kg is not possible.")
        recordings = [replace(recording, payload=float(payload)) for recording in recordings]
    if start is not None or end is not None:
        recordings = [cut(recording, start, end) for recording in recordings]
    return recordings


def _rows_of_file(
    path: Path, column_map: ColumnMap | None, rows: tuple[int, int], effort: str | None
) -> list[Recording]:
    if _reader(path) is not read_parquet:
        raise RecordingError(f"{path} is no Parquet file: it is read as a whole, not by rows.")
    return [declared(one, effort) for one in read_parquet(path, column_map, rows)]


def _existing(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise RecordingError(
            f"a recording is a file, a pandas or polars frame or an Arrow table; got "
            f"{type(path).__name__}."
        )
    file = Path(path)
    if not file.exists():
        raise RecordingError(f"there is no file {file}.")
    if not (file.is_fifo() and file.suffix.lower() in (".csv", ".tsv", ".txt")):
        require_file(file, error=RecordingError)
    return file


def _from_file(
    path: Path, column_map: ColumnMap | None, topic: str | None, effort: str | None
) -> list[Recording]:
    read = _reader(path)
    if read is read_bag:
        return read_bag(path, column_map, topic=topic, effort=effort)
    if topic is not None:
        raise RecordingError(f"{path} is not a ROS bag: --topic (topic) does not apply to it.")
    return [declared(one, effort) for one in read(path, column_map)]


def declared(recording: Recording, effort: str | None) -> Recording:
    """The recording with its torque channel taken for what the user says it is."""
    if effort is None:
        return recording
    if effort not in EFFORTS:
        raise RecordingError(f"effort {effort!r} is not known: use {', '.join(EFFORTS)}.")
    meta = {key: value for key, value in recording.meta.items() if key != "gravity_removed"}
    findings = tuple(f for f in recording.findings if f.kind not in ("effort_unit", "gain_unknown"))
    if effort == "raw":
        return replace(recording, signal_unit="", gain=None, meta=meta)
    if effort == "current":
        known = recording.gain if recording.signal_unit == "A" else None
        if known is None and meta.get("gains") != "auto":
            meta["gains"] = "unknown"
        source = "motor_current"
        return replace(recording, signal_unit="A", gain=known, torque_source=source, meta=meta)
    if effort == "torque_without_gravity":
        meta["gravity_removed"] = True
    meta.pop("gains", None)
    same = recording.signal_unit == "N m" and recording.gain is not None
    gain = recording.gain if same else np.ones(recording.joints)
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
    """What a file holds, before anybody says what it is; None where it says so itself."""
    path = _existing(path)
    read = _reader(path)
    if read is read_bag:
        return bag_table(path, topic)
    if read is _from_csv:
        table = read_csv_table(path)
        return None if "page" in table.meta else table
    try:
        read(path, None)
    except NeedsMapError as error:
        return error.table
    return None


def _reader(path: Path) -> _Reader:
    if path.is_dir():
        if (path / "meta" / "info.json").exists():
            return read_lerobot
        if (path / "metadata.yaml").exists():
            return read_bag
        raise RecordingError(
            f"{path} is a directory, but neither a ROS 2 bag (metadata.yaml) nor a LeRobot dataset "
            "(meta/info.json)."
        )
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        return _from_csv
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in READERS:
        raise RecordingError(
            f"{path}: the ending {suffix or '(none)'} is not known; taufit reads "
            f"{', '.join(READERS)}, text also packed with gzip, ROS 2 bags and LeRobot datasets."
        )
    return READERS[suffix]


def _from_csv(path: Path, column_map: ColumnMap | None) -> list[Recording]:
    table = read_csv_table(path, column_map)
    if column_map is None:
        page = table.meta.pop("page", None)
        if page is not None:
            columns = {name: table.values[:, i] for i, name in enumerate(table.names)}
            recording = from_columns(columns, from_text(page, str(path)), str(path))
            return [replace(recording, findings=(*recording.findings, *table.findings))]
        column_map = logger_map(table)
        if column_map is None:
            raise needs_map(table)
    table.meta.pop("page", None)
    return assemble(table, column_map)


READERS: dict[str, _Reader] = {
    ".parquet": read_parquet,
    ".csv": _from_csv,
    ".tsv": _from_csv,
    ".txt": _from_csv,
    ".dat": _from_csv,
    ".log": _from_csv,
    ".npz": read_npz,
    ".mat": read_mat,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".mcap": read_bag,
    ".bag": read_bag,
    ".db3": read_bag,
    ".live": read_live,
}
