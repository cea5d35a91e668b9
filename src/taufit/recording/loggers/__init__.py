"""Column maps of common loggers, recognised by their column names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from taufit.core.errors import RecordingError
from taufit.recording.column_map import ColumnMap, locate_columns, read_map
from taufit.recording.table import Table

# Order of recognition; currents with target channels, from which gains follow, come first.
LOGGERS = (
    "ur_rtde_csv",
    "ur_rtde_current",
    "ur_rtde_torque",
    "franka_log",
    "iiwa_fri",
    "xarm_log",
    "ros_joint_states",
    "lerobot",
    "servo_log",
)


@cache
def _read_logger_map(name: str) -> ColumnMap:
    return read_map(Path(__file__).parent / f"{name}.yaml")


def logger_map(table: Table) -> ColumnMap | None:
    """Shipped map whose columns the table has, with equal joint counts; None if none matches."""
    for name in LOGGERS:
        column_map = _read_logger_map(name)
        if _matches_columns(column_map, table.names):
            return column_map
    return None


def _matches_columns(column_map: ColumnMap, names: Sequence[str]) -> bool:
    counts = set()
    for entry in column_map.columns:
        try:
            indices = locate_columns(entry, names, "")
        except RecordingError:
            return False
        if indices is not None and len(indices) > 1:
            counts.add(len(indices))
    return len(counts) == 1
