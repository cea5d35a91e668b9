"""Any file a robot or a logger wrote -> Recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from taufit.errors import RecordingError
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.recording import Recording
from taufit.recording.table import Table

Map = str | os.PathLike[str] | Mapping[str, Any] | ColumnMap


def read_recording(
    path: str | os.PathLike[str], *, map: Map | None = None, run: int | None = None
) -> Recording:
    """Read one run.

    Args:
        path: .parquet, .csv, .tsv, .txt (also .gz), ...
        map: What the columns are: a YAML file, the same as a dict, or a `ColumnMap`. Files in
            taufit's own form need none.
        run: Which run, where the file holds several.
    """
    recordings = read_recordings(path, map=map)
    if run is not None:
        for recording in recordings:
            if recording.meta.get("run") == run:
                return recording
        runs = [recording.meta.get("run") for recording in recordings]
        have = f"runs {runs[0]} to {runs[-1]}" if runs[0] is not None else "no run numbers"
        raise RecordingError(f"{path} has {have}, not run {run}.")
    if len(recordings) > 1:
        raise RecordingError(
            f"{path} holds {len(recordings)} runs; say which one (run=..., --run), or read them "
            "all with read_recordings."
        )
    return recordings[0]


def read_recordings(path: str | os.PathLike[str], *, map: Map | None = None) -> list[Recording]:
    """Read every run of a file; one recording each, never mixed."""
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"there is no file {path}.")
    column_map = None if map is None else read_map(map)
    return _reader(path)(path, column_map)


def _reader(path: Path) -> Callable[[Path, ColumnMap | None], list[Recording]]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes = suffixes[:-1]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".csv", ".tsv", ".txt", ".dat", ".log"):
        return _from_csv
    if suffix == ".parquet":
        from taufit.recording.from_parquet import read_parquet

        return read_parquet
    raise RecordingError(f"{path}: recordings end in .parquet or .csv[.gz]; this one does not.")


def _from_csv(path: Path, column_map: ColumnMap | None) -> list[Recording]:
    from taufit.recording.assemble import assemble
    from taufit.recording.from_csv import read_csv_table

    table = read_csv_table(path, column_map)
    if column_map is None:
        raise _needs_map(table)
    return assemble(table, column_map)


def _needs_map(table: Table) -> RecordingError:
    shown = ", ".join(table.labels[:40]) + (", ..." if len(table.labels) > 40 else "")
    return RecordingError(
        f"{table.source} does not say what its columns are ({shown}). Give a column map: map=..., "
        "--map FILE.yaml; examples/columns has some to start from."
    )
