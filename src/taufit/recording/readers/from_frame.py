"""Data frames (pandas, polars, Arrow tables): taufit's columns, or any with a column map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.errors import RecordingError
from taufit.recording.canonical import from_columns, has_canonical_names, metadata_from_text
from taufit.recording.column_map import ColumnMap
from taufit.recording.finding import Finding
from taufit.recording.readers.from_arrow import list_columns
from taufit.recording.readers.from_parquet import META_KEY
from taufit.recording.recording import Recording
from taufit.recording.table import ColumnMapRequiredError, Table


def read_frame(frame: Any, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read the runs of a frame; columns without numbers are ignored."""
    table, page = _read_table(frame)
    columns = {name: table.values[:, i] for i, name in enumerate(table.names)}
    if column_map is None and page is not None:
        return [from_columns(columns, metadata_from_text(page, table.source), table.source)]
    if column_map is None and has_canonical_names(table.names):
        return [_with_assumed_units(from_columns(columns, None, table.source))]
    if column_map is None:
        from taufit.recording.loggers import logger_map

        column_map = logger_map(table)
    if column_map is None:
        raise ColumnMapRequiredError(
            f"{table.source} does not say what its columns are ({', '.join(table.labels[:40])}). "
            "Give column_map=...; `taufit.draft_map(frame).page` is a draft of it.",
            table,
        )
    from taufit.recording.assemble import assemble_recordings

    return assemble_recordings(table, column_map)


def frame_table(frame: Any) -> Table | None:
    """Table of a frame without description; None if it has taufit's columns."""
    table, page = _read_table(frame)
    return None if page is not None or has_canonical_names(table.names) else table


def _read_table(frame: Any) -> tuple[Table, bytes | None]:
    """Columns of numbers of a frame, and taufit's metadata if it has some."""
    source = f"the {type(frame).__module__.partition('.')[0]} frame"
    metadata: dict[bytes, bytes] = {}
    try:
        if hasattr(frame, "iloc"):
            columns = _pandas_columns(frame)
        elif hasattr(frame, "get_columns"):
            columns = _polars_columns(frame)
        else:
            from taufit.recording.readers.from_arrow import table_columns

            columns, metadata = table_columns(frame)
    except (TypeError, ValueError, KeyError) as error:
        raise RecordingError(f"{source} cannot be read: {str(error)[:200]}.") from None
    if not columns or not len(next(iter(columns.values()))):
        raise RecordingError(f"{source} has no rows of numbers.")
    return Table.from_columns(source, columns), metadata.get(META_KEY)


def _pandas_columns(frame: Any) -> dict[str, Any]:
    """Columns of numbers of a pandas frame; an index with a name or of other numbers is one too."""
    columns: dict[str, Any] = {}
    series = [(str(name), frame.iloc[:, k]) for k, name in enumerate(frame.columns)]
    if type(frame.index).__name__ != "RangeIndex" and getattr(frame.index, "nlevels", 1) == 1:
        series.append((str(frame.index.name or "index"), frame.index))
    for name, column in series:
        if column.dtype.kind in "iufb":
            columns[name] = column.to_numpy(dtype=float, na_value=np.nan)
        elif column.dtype.kind == "M":
            columns |= _number_columns(column.to_numpy(dtype="datetime64[ns]"), name)
        else:
            columns |= _number_columns(column.to_numpy(), name)
    return columns


def _polars_columns(frame: Any) -> dict[str, Any]:
    """Columns of numbers of a polars frame."""
    columns: dict[str, Any] = {}
    for series in frame.get_columns():
        columns |= _number_columns(series.to_numpy(), str(series.name))
    return columns


def _number_columns(values: Array, name: str) -> dict[str, Any]:
    """Numbers of an array by name: times in seconds, lists of equal length name_1, name_2, ..."""
    if values.ndim == 2:
        return {f"{name}_{i + 1}": values[:, i].astype(float) for i in range(values.shape[1])}
    if values.dtype.kind in "iufb":
        return {name: values.astype(float)}
    if values.dtype.kind in "Mm":
        unit, _ = np.datetime_data(values.dtype)
        per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
        seconds = values.astype("int64") / per_second
        return {name: np.where(np.isnat(values), np.nan, seconds)}
    first = next((value for value in values if value is not None), None)
    if isinstance(first, (int, float)):
        return {name: np.array([np.nan if v is None else v for v in values], float)}
    if first is None or isinstance(first, (str, bytes)) or not hasattr(first, "__len__"):
        return {}
    return list_columns([None if v is None else list(v) for v in values], name)


def _with_assumed_units(recording: Recording) -> Recording:
    """Add default units and gains, since a frame has no metadata."""
    findings = tuple(finding for finding in recording.findings if finding.kind != "metadata")
    is_torque = recording.signal_unit == "N m"
    text = "a frame says no units and no side of the gear"
    action = (
        "SI units, torque of the motors at the joint" if is_torque else "SI units; gains unknown"
    )
    assumption = Finding("units_assumed", "info", text, action)
    gain = np.ones(recording.joints) if is_torque else recording.gain
    return replace(recording, gain=gain, findings=(*findings, assumption))
