"""Column roles: a column map as a table of roles, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording import read_map
from taufit.recording.columns import ColumnEntry, locate_columns
from taufit.recording.draft.map_writer import file_entry
from taufit.recording.quantity import QUANTITIES
from taufit.recording.run_files import keys_by_file
from taufit.recording.table import Table

# Possible roles of a column, in the order offered; "" is not used.
ROLES = (
    "",
    "time",
    "run",
    "position",
    "velocity",
    "torque",
    "current",
    "temperature",
    "target_current",
    "target_torque",
    "commanded_position",
    "commanded_velocity",
    "payload",
)
Role = tuple[str, int]


def roles_from_map(page: Mapping[str, Any], table: Table) -> dict[int, Role]:
    """{column index: (quantity, joint from 1, or 0 for quantities of the whole robot)}."""
    roles: dict[int, Role] = {}
    column_map = read_map(page)
    for columns in column_map.columns:
        per_joint = QUANTITIES[columns.quantity].per_joint
        for joint, index in enumerate(_indices(columns, table), 1):
            roles[index] = (columns.quantity, joint if per_joint else 0)
    return roles


def _indices(entry: ColumnEntry, table: Table) -> tuple[int, ...]:
    """Columns of an entry in a table, which may be joined from several files."""
    if not table.origins:
        return locate_columns(entry, table.names, table.source) or ()
    indices: list[int] = []
    for file, keys in keys_by_file(entry, entry.files):
        columns = [i for i, (name, _) in enumerate(table.origins) if name == file]
        labels = [str(table.origins[i][1]) for i in columns]
        located = locate_columns(replace(entry, keys=tuple(map(str, keys))), labels, file)
        indices += [columns[k] for k in located or ()]
    return tuple(indices[:1] if entry.quantity == "time" else indices)


def units_from_map(page: Mapping[str, Any]) -> dict[str, str]:
    """{quantity: unit in the file}."""
    return {columns.quantity: columns.unit for columns in read_map(page).columns}


def map_from_roles(
    roles: Mapping[int, Role], units: Mapping[str, str], table: Table, drafted: Mapping[str, Any]
) -> dict[str, Any]:
    """Column map from roles; other entries as drafted.

    Raises:
        RecordingError: A joint is assigned twice or missing, or two torques are measured.
    """
    has_names = any(table.names)
    indices: dict[str, dict[int, int]] = {}
    for index, (quantity, joint) in sorted(roles.items()):
        joints = indices.setdefault(quantity, {})
        if joint in joints:
            joint_text = f" of joint {joint}" if joint else ""
            raise RecordingError(f"{quantity}{joint_text} is said of two columns.")
        joints[joint] = index
    if {"torque", "current"} <= indices.keys():
        raise RecordingError("torque and current are both said to be measured: keep one of them.")
    columns: dict[str, Any] = {}
    for quantity, joints in indices.items():
        per_joint = QUANTITIES[quantity].per_joint
        if per_joint and sorted(joints) != list(range(1, len(joints) + 1)):
            raise RecordingError(
                f"{quantity} has joints {_joint_numbers(joints)}: number them from 1 on."
            )
        key: Any
        if table.origins:
            key = file_entry([table.origins[i] for _, i in sorted(joints.items())])
            if quantity == "time":
                key = table.meta.get("clock") or key
        else:
            keys = [table.names[i] if has_names else i + 1 for _, i in sorted(joints.items())]
            key = keys if per_joint else keys[0]
        unit = units.get(quantity, "")
        if unit not in ("", next(iter(QUANTITIES[quantity].units))):
            key = {**(key if isinstance(key, dict) else {"columns": key}), "unit": unit}
        columns[quantity] = key
    page = {key: value for key, value in drafted.items() if key not in ("columns", "gains")}
    page["columns"] = columns
    if not has_names and not table.origins:
        page["header"] = False
    if "time" in columns:
        page.pop("rate_hz", None)
    if "current" in columns:
        has_targets = {"target_torque", "target_current"} <= columns.keys()
        drafted_gains = drafted.get("gains")
        page["gains"] = (
            drafted_gains
            if isinstance(drafted_gains, list)
            else "auto"
            if has_targets
            else "unknown"
        )
    return page


def _joint_numbers(joints: Mapping[int, int]) -> str:
    return ", ".join(str(joint) for joint in sorted(joints))
