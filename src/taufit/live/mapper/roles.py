"""A column map as a table shows it: the role of every column, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording import read_map
from taufit.recording.columns import locate_columns
from taufit.recording.quantity import QUANTITIES
from taufit.recording.table import Table

# What a column can be, in the order in which they are offered; "" is not used.
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


def roles_of(page: Mapping[str, Any], table: Table) -> dict[int, Role]:
    """{index of a column: (quantity, joint from 1, or 0 where there is one for the arm)}."""
    found: dict[int, Role] = {}
    for columns in read_map(page).columns:
        several = QUANTITIES[columns.quantity].per_joint
        for joint, index in enumerate(locate_columns(columns, table.names, table.source) or (), 1):
            found[index] = (columns.quantity, joint if several else 0)
    return found


def units_of(page: Mapping[str, Any]) -> dict[str, str]:
    """{quantity: its unit in the file}."""
    return {columns.quantity: columns.unit for columns in read_map(page).columns}


def page_of(
    roles: Mapping[int, Role], units: Mapping[str, str], table: Table, drafted: Mapping[str, Any]
) -> dict[str, Any]:
    """The map that says what `roles` say; everything but the columns as drafted.

    Raises:
        RecordingError: A joint twice or left out, or two measured torques.
    """
    named = any(table.names)
    listed: dict[str, dict[int, int]] = {}
    for index, (quantity, joint) in sorted(roles.items()):
        joints = listed.setdefault(quantity, {})
        if joint in joints:
            which = f" of joint {joint}" if joint else ""
            raise RecordingError(f"{quantity}{which} is said of two columns.")
        joints[joint] = index
    if {"torque", "current"} <= listed.keys():
        raise RecordingError("torque and current are both said to be measured: keep one of them.")
    columns: dict[str, Any] = {}
    for quantity, joints in listed.items():
        several = QUANTITIES[quantity].per_joint
        if several and sorted(joints) != list(range(1, len(joints) + 1)):
            raise RecordingError(f"{quantity} has joints {_words(joints)}: number them from 1 on.")
        keys = [table.names[i] if named else i + 1 for _, i in sorted(joints.items())]
        key: Any = keys if several else keys[0]
        unit = units.get(quantity, "")
        plain = unit in ("", next(iter(QUANTITIES[quantity].units)))
        columns[quantity] = key if plain else {"columns": key, "unit": unit}
    page = {key: value for key, value in drafted.items() if key not in ("columns", "gains")}
    page["columns"] = columns
    if not named:
        page["header"] = False
    if "time" in columns:
        page.pop("rate_hz", None)
    if "current" in columns:
        both = {"target_torque", "target_current"} <= columns.keys()
        given = drafted.get("gains")
        page["gains"] = given if isinstance(given, list) else "auto" if both else "unknown"
    return page


def _words(joints: Mapping[int, int]) -> str:
    return ", ".join(str(joint) for joint in sorted(joints))
