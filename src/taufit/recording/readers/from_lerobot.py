"""LeRobot datasets: a directory of Parquet files and meta/info.json; one recording per episode."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.bounded_reading import require_file
from taufit.core.errors import RecordingError
from taufit.core.plain_data import read_json
from taufit.recording.assemble import assemble_recordings
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.finding import Finding
from taufit.recording.readers.from_arrow import read_columns
from taufit.recording.recording import Recording
from taufit.recording.table import Table, column_map_required

_STATE = "observation.state"
_ACTION = "action"
# Names of torque features, which few datasets have.
_SIGNALS = (
    "observation.effort",
    "observation.torque",
    "observation.current",
    "observation.efforts",
    "observation.torques",
    "observation.currents",
    "observation.state.effort",
    "observation.state.torque",
)


def read_lerobot(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read every episode of a LeRobot dataset.

    Columns are named after the dataset's features: observation.state_1, ..., action_1, ...,
    timestamp, episode_index.
    """
    try:
        info = read_json(path / "meta" / "info.json", "a dataset's page", error=RecordingError)
        features = dict(info.get("features", {}))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise RecordingError(f"{path}/meta/info.json cannot be read: {error}.") from None
    files = sorted((path / "data").rglob("*.parquet"))
    if not files:
        raise RecordingError(f"{path} has no Parquet files under data/.")
    parts = [_file_columns(file) for file in files]
    names = set(parts[0]).intersection(*parts[1:])
    merged = {n: np.concatenate([part[n] for part in parts]) for n in parts[0] if n in names}
    if not merged or not len(next(iter(merged.values()))):
        raise RecordingError(f"{path} has no rows of numbers.")
    table = Table.from_columns(
        str(path), merged, meta={"lerobot": info.get("codebase_version", "?")}
    )
    remark = None
    if column_map is None:
        column_map, remark = _dataset_map(table, info, features)
    elif column_map.entry("run") is None and "episode_index" in names:
        run = read_map({"columns": {"position": 1, "signal": 2, "time": 3, "run": "episode_index"}})
        column_map = replace(column_map, columns=(*column_map.columns, run.columns[-1]))
    recordings = assemble_recordings(table, column_map)
    if remark is None:
        return recordings
    return [replace(r, findings=(*r.findings, remark)) for r in recordings]


def _file_columns(file: Path) -> dict[str, Any]:
    """Columns of one file of a dataset, by name."""
    require_file(file, error=RecordingError)
    try:
        return read_columns(file)[0]
    except (OSError, ValueError) as error:
        raise RecordingError(f"{file} cannot be read: {str(error)[:200]}.") from None


def _dataset_map(
    table: Table, info: dict[str, Any], features: dict[str, Any]
) -> tuple[ColumnMap, Finding]:
    """Column map of a dataset: states, and the torque feature or else the actions."""
    joints = len([name for name in table.names if re.fullmatch(re.escape(_STATE) + r"_\d+", name)])
    signal = next((name for name in _SIGNALS if f"{name}_{joints}" in table.names), None)
    has_actions = joints > 0 and f"{_ACTION}_{joints}" in table.names
    if "timestamp" not in table.names or (signal is None and not has_actions):
        raise column_map_required(table)
    unit = "rad" if signal is not None else _position_unit(table, joints)
    columns: dict[str, Any] = {
        "time": "timestamp",
        "position": {"columns": _STATE + "_{joint}", "unit": unit},
    }
    if signal is not None:
        columns["signal"] = signal + "_{joint}"
    if has_actions:
        columns["commanded_position"] = {"columns": _ACTION + "_{joint}", "unit": unit}
    if "episode_index" in table.names:
        columns["run"] = "episode_index"
    page: dict[str, Any] = {"columns": columns}
    names = _joint_names(features.get(_STATE), joints)
    if names is not None:
        page["joint_names"] = names
    if isinstance(info.get("robot_type"), str):
        page["robot"] = info["robot_type"]
    return read_map(page), _unit_remark(signal, unit)


def _position_unit(table: Table, joints: int) -> str:
    """Degrees if an arm joint, that is any but the last, leaves one turn in radians."""
    columns = [table.names.index(f"{_STATE}_{joint + 1}") for joint in range(max(joints - 1, 1))]
    return "deg" if np.nanmax(np.abs(table.values[:, columns])) > 2 * np.pi else "rad"


def _joint_names(feature: Any, joints: int) -> list[str] | None:
    """Joint names of a feature, without the ending `.pos`."""
    names = feature.get("names") if isinstance(feature, dict) else None
    names = names.get("motors") if isinstance(names, dict) else names
    if not isinstance(names, list) or len(names) != joints:
        return None
    return (
        [n.removesuffix(".pos") for n in names] if all(isinstance(n, str) for n in names) else None
    )


def _unit_remark(signal: str | None, unit: str) -> Finding:
    if signal is None:
        return Finding(
            "units_assumed",
            "warning",
            f"LeRobot does not say the units of {_STATE} and {_ACTION}",
            f"both are taken as {unit}; values from -100 to 100 of the calibrated range need a "
            "column map with scale and offset",
        )
    return Finding(
        "units_assumed",
        "warning",
        f"LeRobot does not say the units of {_STATE} and {signal}",
        "positions are taken as radians and the torque channel as raw numbers; give a column map "
        "to say otherwise",
    )
