"""Column roles: a column map as a table of roles, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording import read_map
from taufit.recording.columns import locate_columns
from taufit.recording.quantity import QUANTITIES
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
    for columns in read_map(page).columns:
        per_joint = QUANTITIES[columns.quantity].per_joint
        for joint, index in enumerate(locate_columns(columns, table.names, table.source) or (), 1):
            roles[index] = (columns.quantity, joint if per_joint else 0)
    return roles


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
        keys = [table.names[i] if has_names else i + 1 for _, i in sorted(joints.items())]
        key: Any = keys if per_joint else keys[0]
        unit = units.get(quantity, "")
        is_default_unit = unit in ("", next(iter(QUANTITIES[quantity].units)))
        columns[quantity] = key if is_default_unit else {"columns": key, "unit": unit}
    page = {key: value for key, value in drafted.items() if key not in ("columns", "gains")}
    page["columns"] = columns
    if not has_names:
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
