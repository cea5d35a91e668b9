"""Record files of UR's RTDE recorder and of ur-rtde: text tables whose names say what they are."""

from __future__ import annotations

from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.table import Table

_OPTIONAL = {
    "velocity": "actual_qd_{joint0}",
    "commanded_position": "target_q_{joint0}",
    "commanded_velocity": "target_qd_{joint0}",
    "commanded_acceleration": "target_qdd_{joint0}",
    "target_current": "target_current_{joint0}",
    "target_torque": "target_moment_{joint0}",
    "temperature": "joint_temperatures_{joint0}",
    "payload": "payload",
}


def ur_map(table: Table) -> ColumnMap | None:
    """The column map of an RTDE record, or None where a table is none.

    Controllers from PolyScope 5.23 on give the current as torque; it is preferred, because then
    no gains are needed.
    """
    names = set(table.names)
    signal = next(
        (
            (quantity, name)
            for quantity, name in (
                ("torque", "actual_current_as_torque_{joint0}"),
                ("current", "actual_current_{joint0}"),
            )
            if name.replace("{joint0}", "0") in names
        ),
        None,
    )
    if not {"timestamp", "actual_q_0"} <= names or signal is None:
        return None
    columns = {"time": "timestamp", "position": "actual_q_{joint0}", signal[0]: signal[1]}
    for quantity, name in _OPTIONAL.items():
        if name.replace("{joint0}", "0") in names:
            columns[quantity] = name
    page = {"columns": columns, "torque_side": "motor", "notes": "UR RTDE record"}
    if signal[0] == "current" and {"target_current", "target_torque"} <= columns.keys():
        page["gains"] = "auto"
    return read_map(page)
