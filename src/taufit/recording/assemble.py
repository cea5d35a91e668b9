"""Table + column map -> Recording: units, torque side, gains, row checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.recording.column_map import ColumnEntry, ColumnMap, locate_columns
from taufit.recording.finding import Finding
from taufit.recording.quantity import MOTIONS, QUANTITIES, SIGNAL_UNITS, SIGNALS, unit_factor
from taufit.recording.recording import Recording
from taufit.recording.row_checks import check_rows
from taufit.recording.table import Table


def assemble_recordings(table: Table, column_map: ColumnMap, *, name: str = "") -> list[Recording]:
    """Create one recording per run of a table, in the order in which runs first appear."""
    if np.isnan(table.values).any():
        from taufit.recording.merged_topics import mapped_topic

        table = mapped_topic(table, column_map)
    raw, column_indices, findings = _quantities(table, column_map)
    run = raw.pop("run", None)
    if run is None:
        return [
            _recording(table, column_map, raw, column_indices, findings, np.arange(len(table.rows)))
        ]
    run = run[:, 0]
    is_valid = np.isfinite(run)
    if not is_valid.any():
        raise RecordingError(f"{table.source}: the run column holds no number.")
    dropped_rows = tuple(int(row) for row in table.rows[~is_valid])
    if dropped_rows:
        findings = [
            *findings,
            Finding(
                "corrupt_rows",
                "warning",
                f"{len(dropped_rows)} rows do not say which run they belong to",
                "rows dropped",
                rows=dropped_rows,
            ),
        ]
    _, first_rows = np.unique(run[is_valid], return_index=True)
    recordings = []
    for key in run[is_valid][np.sort(first_rows)]:
        rows = np.flatnonzero(run == key)
        recordings.append(
            _recording(table, column_map, raw, column_indices, findings, rows, run=float(key))
        )
    return recordings


def _quantities(
    table: Table, column_map: ColumnMap
) -> tuple[dict[str, Float[Array, "n c"]], dict[str, list[int]], list[Finding]]:
    """All quantities of the map in SI, their column indices, and findings."""
    findings = list(table.findings)
    raw: dict[str, Float[Array, "n c"]] = {}
    column_indices: dict[str, list[int]] = {}
    used_by: dict[int, str] = {}
    for entry in column_map.columns:
        indices = locate_columns(entry, table.names, table.source)
        if indices is None:
            findings.append(
                Finding(
                    "missing_columns",
                    "info",
                    f"the file has no {entry.quantity.replace('_', ' ')} "
                    f"(it has {len(table.names)} columns)",
                    "read without it",
                    column=str(entry.keys[0]),
                )
            )
            continue
        for index in indices:
            if index in used_by:
                raise RecordingError(
                    f"{column_map.source} uses column {table.labels[index]} twice, as "
                    f"{used_by[index]} and as {entry.quantity}."
                )
            used_by[index] = entry.quantity
        raw[entry.quantity] = table.values[:, list(indices)]
        column_indices[entry.quantity] = list(indices)
    unread = [label for index, label in enumerate(table.labels) if index not in used_by]
    if unread:
        unread_text = ", ".join(unread[:20]) + (
            f" and {len(unread) - 20} more" if unread[20:] else ""
        )
        findings.append(
            Finding(
                "unread_columns", "info", f"the map does not use columns {unread_text}", "not read"
            )
        )
    joints = raw["position"].shape[1]
    for quantity, values in raw.items():
        if QUANTITIES[quantity].per_joint and values.shape[1] != joints:
            label_text = ", ".join(table.labels[index] for index in column_indices[quantity])
            raise RecordingError(
                f"{table.source}: there are {joints} position columns and {values.shape[1]} of "
                f"{quantity} ({label_text}). Every joint needs one of each."
            )
    for entry in column_map.columns:
        if entry.quantity in raw:
            raw[entry.quantity] = _to_si(raw[entry.quantity], entry, column_map)
    return raw, column_indices, findings


def _to_si(
    cells: Float[Array, "n c"], entry: ColumnEntry, column_map: ColumnMap
) -> Float[Array, "n c"]:
    """Convert cells to SI at the joint: sign * scale * unit * cell, gear and coupling, + offset."""
    width = cells.shape[1]

    def per_joint(values: Any, key: str) -> Float[Array, " c"]:
        values = np.asarray(values, float).ravel()
        if len(values) not in (1, width):
            raise RecordingError(
                f"{column_map.source}: {key} has {len(values)} numbers for {width} joints."
            )
        return np.broadcast_to(values, (width,))

    path = f"columns.{entry.quantity}"
    factor = per_joint(entry.sign, f"{path}.sign") * per_joint(entry.scale, f"{path}.scale")
    factor = factor * unit_factor(entry.quantity, entry.unit)
    with np.errstate(over="ignore", invalid="ignore"):
        values = cells * factor if not (factor == 1.0).all() else cells.copy()
        if entry.unit == "K":
            values = values - 273.15
        if entry.side == "motor":
            # q_m / N are motor positions referred to the joints, which equal C q.
            values = values / per_joint(column_map.gear_ratio, "gear_ratio")
            coupling = _coupling_matrix(column_map, width)
            if coupling is not None:
                values = values @ np.linalg.inv(coupling).T
        offset = per_joint(entry.offset, f"{path}.offset")
        return values + offset if offset.any() else values


def _coupling_matrix(column_map: ColumnMap, joints: int) -> Float[Array, "j j"] | None:
    coupling = column_map.coupling
    if coupling is not None and len(coupling) != joints:
        raise RecordingError(
            f"{column_map.source}: coupling is {len(coupling)} x {len(coupling)}; the arm has "
            f"{joints} joints."
        )
    return coupling


# Quantities of one column.
_SINGLE_COLUMN = ("time", "payload")


def _sign_mask(column_map: ColumnMap, joints: int) -> Bool[Array, " j"]:
    signed = np.asarray(column_map.signed)
    if signed.ndim and len(signed) != joints:
        raise RecordingError(
            f"{column_map.source}: signed has {len(signed)} values; the file has {joints} joints."
        )
    return np.broadcast_to(signed, (joints,)).copy()


def _synthesise_time(column_map: ColumnMap, count: int) -> tuple[Float[Array, " n"], str]:
    """Time stamps of a file without time column, and a note for its metadata."""
    rate = column_map.rate_hz
    assert rate is not None
    return np.arange(count) / rate, f"synthesised at {rate:g} Hz"


def _bad_cells(
    table: Table, rows: Array, column_indices: Mapping[str, list[int]]
) -> list[tuple[int, int, str]]:
    """Unreadable cells of these rows, in the columns in use."""
    if not table.bad_cells:
        return []
    used, row_numbers = {-1}.union(*column_indices.values()), set(table.rows[rows].tolist())
    return [cell for cell in table.bad_cells if cell[0] in row_numbers and cell[1] in used]


def _missing_target_findings(column_map: ColumnMap, raw: Mapping[str, Any]) -> list[Finding]:
    auto = isinstance(column_map.gains, str) and column_map.gains == "auto"
    if not auto or {"target_current", "target_torque"} <= raw.keys():
        return []
    text = (
        "gains: auto needs the controller's target current and target torque, and the file has "
        "not both"
    )
    return [Finding("gain_unknown", "warning", text, "gains stay unknown; give them in the map")]


def _recording(
    table: Table,
    column_map: ColumnMap,
    raw: dict[str, Float[Array, "n c"]],
    column_indices: dict[str, list[int]],
    findings: list[Finding],
    rows: Array,
    run: float | None = None,
) -> Recording:
    joints = raw["position"].shape[1]
    signal = next((name for name in SIGNALS if name in raw), None)
    gain, gain_std, torque_source, gain_findings = _gain(column_map, signal, joints)
    meta = _meta(table, column_map, joints)
    meta["torque_side"] = "link" if torque_source == "joint_torque_sensor" else "motor"
    if run is not None:
        meta["run"] = int(run) if float(run).is_integer() else run
    gain_findings += _missing_target_findings(column_map, raw)
    single_columns = {name: raw[name][rows, 0] for name in _SINGLE_COLUMN if name in raw}
    per_joint = [name for name in raw if QUANTITIES[name].per_joint]
    fields = {QUANTITIES[name].field: raw[name][rows] for name in per_joint}
    fields.setdefault("signal", np.zeros((len(rows), joints)))
    if "time" not in raw:
        single_columns["time"], meta["time"] = _synthesise_time(column_map, len(rows))
    field_columns = {QUANTITIES[name].field: indices for name, indices in column_indices.items()}

    def cells(field: str, index: int) -> Float[Array, " c"]:
        return table.values[rows[index], field_columns[field]]

    recording = Recording(
        time=single_columns["time"],
        **fields,
        signal_unit=SIGNAL_UNITS[signal or "signal"],
        torque_source=torque_source,
        signed=_sign_mask(column_map, joints),
        gain=gain,
        gain_std=gain_std,
        coupling=_coupling_matrix(column_map, joints),
        payload=column_map.payload,
        meta=meta,
        findings=(*findings, *gain_findings),
    )
    return check_rows(
        recording,
        source=table.source,
        rows=table.rows[rows],
        labels={
            name: np.take(table.labels, indices_of_field).tolist()
            for name, indices_of_field in field_columns.items()
        },
        cells=cells,
        bad_cells=_bad_cells(table, rows, column_indices),
        names=table.labels,
        payload=single_columns.get("payload"),
    )


def _meta(table: Table, column_map: ColumnMap, joints: int) -> dict[str, Any]:
    """Metadata of the recording from the file and the column map."""
    meta: dict[str, Any] = {**table.meta, "file": table.source.rsplit("/", 1)[-1]}
    meta.pop("units", None)
    if len(meta.get("joint_names", ())) != joints:
        meta.pop("joint_names", None)
    if column_map.source != "map":
        meta["map"] = column_map.source.rsplit("/", 1)[-1]
    for key in ("robot", "mounting", "notes"):
        if getattr(column_map, key) is not None:
            meta[key] = getattr(column_map, key)
    joint_names = column_map.joint_names
    if joint_names is not None:
        if len(joint_names) != joints:
            raise RecordingError(
                f"{column_map.source}: joint_names has {len(joint_names)} names; the file has "
                f"{joints} "
                "joints."
            )
        meta["joint_names"] = list(joint_names)
    if isinstance(column_map.gains, str):
        meta["gains"] = column_map.gains
    if column_map.gravity_removed:
        meta["gravity_removed"] = True
    if column_map.gear_ratio is not None:
        meta["gear_ratio"] = column_map.gear_ratio.tolist()
    return meta


def _gain(
    column_map: ColumnMap, signal: str | None, joints: int
) -> tuple[Any, Any, str, list[Finding]]:
    """Joint torque per unit of signal, its std, the torque source, and findings about
    assumptions."""
    if signal is None:
        return None, None, "none", []

    def per_joint(values: Any, key: str) -> Float[Array, " j"]:
        values = np.asarray(values, float).ravel()
        if len(values) not in (1, joints):
            raise RecordingError(
                f"{column_map.source}: {key} has {len(values)} numbers for {joints} joints."
            )
        return np.broadcast_to(values, (joints,)).copy()

    side = column_map.torque_side or "motor"
    if signal == "current":
        source = "motor_current"
        if side == "link":
            raise RecordingError(
                f"{column_map.source}: a current is measured at the motor; torque_side: link is "
                "for joint torque sensors."
            )
    else:
        source = "joint_torque_sensor" if side == "link" else "motor_torque"
    std = None if column_map.gains_std is None else per_joint(column_map.gains_std, "gains.std")
    if isinstance(column_map.gains, str):
        return None, None, source, []
    if column_map.gains is not None:
        return per_joint(column_map.gains, "gains"), std, source, []
    if column_map.gear_ratio is not None and side == "motor":
        ratio = per_joint(column_map.gear_ratio, "gear_ratio")
        if signal == "torque":
            return ratio, std, source, []
        if column_map.torque_constant is not None:
            constant = per_joint(column_map.torque_constant, "torque_constant")
            return ratio * constant, std, source, []
    if signal == "torque":
        remark = Finding(
            "gain_assumed",
            "info",
            "the map gives no gains",
            "the torque is taken as it is, N m at the joint",
        )
        return np.ones(joints), std, source, [remark]
    remark = Finding(
        "gain_unknown",
        "warning",
        f"the map gives no gains, so what a unit of {signal} is worth in N m is unknown",
        "gains must be given or identified before a fit",
    )
    return None, None, source, [remark]


__all__ = ["MOTIONS", "assemble_recordings"]
