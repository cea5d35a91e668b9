"""Data frames (pandas, polars, Arrow tables): taufit's columns, or any with a column map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.errors import RecordingError
from taufit.recording.assemble import assemble
from taufit.recording.canonical import from_columns, from_text, has_canonical_names
from taufit.recording.column_map import ColumnMap
from taufit.recording.finding import Finding
from taufit.recording.readers.from_parquet import META_KEY, numeric_columns
from taufit.recording.recording import Recording
from taufit.recording.table import Table, column_map_required


def is_frame(value: object) -> bool:
    """Whether a value is a table of named columns readable by Arrow."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__dataframe__")


def read_frame(frame: Any, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read the runs of a frame; columns without numbers are ignored."""
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
    data_table = Table.from_columns(source, columns)
    page = (table.schema.metadata or {}).get(META_KEY)
    if column_map is None and page is not None:
        return [from_columns(columns, from_text(page, source), source)]
    if column_map is None and has_canonical_names(tuple(columns)):
        return [_with_assumed_units(from_columns(columns, None, source))]
    if column_map is None:
        from taufit.recording.loggers import logger_map

        column_map = logger_map(data_table)
    if column_map is None:
        raise column_map_required(data_table)
    return assemble(data_table, column_map)


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
