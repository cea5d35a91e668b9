"""Common loggers, known by the names of their columns: they need no map from the user."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from taufit.core.errors import RecordingError
from taufit.recording.column_map import ColumnMap, locate, read_map
from taufit.recording.table import Table

# In the order in which they are tried; a current whose gains the controller shows goes first.
LOGGERS = (
    "ur_rtde_csv",
    "ur_rtde_current",
    "ur_rtde_torque",
    "franka_log",
    "iiwa_fri",
    "xarm_log",
    "ros_joint_states",
    "lerobot",
)


@cache
def _map(name: str) -> ColumnMap:
    return read_map(Path(__file__).parent / f"{name}.yaml")


def logger_map(table: Table) -> ColumnMap | None:
    """The shipped map whose columns the table has, all of them and equally many, or None."""
    for name in LOGGERS:
        column_map = _map(name)
        if _fits(column_map, table.names):
            return column_map
    return None


def _fits(column_map: ColumnMap, names: Sequence[str]) -> bool:
    counts = set()
    for entry in column_map.columns:
        try:
            found = locate(entry, names, "")
        except RecordingError:
            return False
        if found is not None and len(found) > 1:
            counts.add(len(found))
    return len(counts) == 1
