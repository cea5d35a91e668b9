"""Data frames (pandas, polars, Arrow tables): taufit's columns, or any with a column map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.errors import RecordingError
from taufit.recording.canonical import from_columns, has_canonical_names, metadata_from_text
from taufit.recording.column_map import ColumnMap
from taufit.recording.finding import Finding
from taufit.recording.readers.from_parquet import META_KEY, numeric_columns
from taufit.recording.recording import Recording
from taufit.recording.table import ColumnMapRequiredError, Table


def is_frame(value: object) -> bool:
    """Whether a value is a table of named columns readable by Arrow."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


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
    import pyarrow as pa

    source = f"the {type(frame).__module__.partition('.')[0]} frame"
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        parts = [numeric_columns(table.column(k), str(n)) for k, n in enumerate(table.column_names)]
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        raise RecordingError(f"{source} cannot be read: {str(error)[:200]}.") from None
    columns = {name: values for part in parts for name, values in part.items()}
    if not columns or not len(next(iter(columns.values()))):
        raise RecordingError(f"{source} has no rows of numbers.")
    return Table.from_columns(source, columns), (table.schema.metadata or {}).get(META_KEY)


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
