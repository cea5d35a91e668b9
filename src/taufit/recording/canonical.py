"""taufit's file format of a recording: named columns and JSON metadata, in any container.

Columns are t, then one per joint counted from 1: q_1, v_1, a_1, q_cmd_1, v_cmd_1, a_cmd_1,
current_1 or torque_1 or signal_1, target_current_1, target_torque_1, temperature_1; and payload
if known. SI units.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.core.plain_data import parse_json
from taufit.recording.finding import Finding
from taufit.recording.quantity import QUANTITIES, SIGNAL_UNITS, SIGNALS
from taufit.recording.recording import Recording
from taufit.recording.timing import sampling_timing

SCHEMA = "taufit.recording"
VERSION = 1
TORQUE_SOURCES = ("motor_current", "motor_torque", "joint_torque_sensor", "none")


def _per_joint() -> tuple[str, ...]:
    return tuple(name for name, spec in QUANTITIES.items() if spec.per_joint)


def to_columns(recording: Recording) -> tuple[dict[str, Float[Array, " n"]], dict[str, Any]]:
    """Columns and JSON metadata of a recording."""
    unit = next((name for name, u in SIGNAL_UNITS.items() if u == recording.signal_unit), "signal")
    columns = {"t": np.ascontiguousarray(recording.time, float)}
    for name in _per_joint():
        if name in SIGNALS and name != unit:
            continue
        values = getattr(recording, QUANTITIES[name].field)
        if values is not None:
            for joint in range(recording.joints):
                column = np.ascontiguousarray(values[:, joint], float)
                columns[f"{QUANTITIES[name].prefix}_{joint + 1}"] = column
    if recording.payload is not None:
        columns["payload"] = np.full(len(recording), float(recording.payload))
    return columns, {**recording_metadata(recording), "checksum": checksum(columns)}


def recording_metadata(recording: Recording) -> dict[str, Any]:
    """JSON metadata of a recording: everything except its columns."""

    def to_list(values: Array | None) -> Any:
        return None if values is None else np.asarray(values).tolist()

    sampling = sampling_timing(recording.time)
    meta = dict(recording.meta)
    page = {
        "schema": SCHEMA,
        "version": VERSION,
        "robot": meta.pop("robot", None),
        "joints": recording.joints,
        "joint_names": meta.pop("joint_names", None),
        "mounting": meta.pop("mounting", None),
        "signal_unit": recording.signal_unit,
        "torque_source": recording.torque_source,
        "torque_side": "link" if recording.torque_source == "joint_torque_sensor" else "motor",
        "signed": to_list(recording.signed),
        "gain": to_list(recording.gain),
        "gain_std": to_list(recording.gain_std),
        "coupling": to_list(recording.coupling),
        "payload": recording.payload,
        "samples": len(recording),
        "rate_hz": sampling.mean_hz,
        "lost_samples": sampling.lost_samples,
        "findings": [finding.to_dict() for finding in recording.findings],
        "provenance": meta,
    }
    return page


def checksum(columns: dict[str, Float[Array, " n"]]) -> int:
    """CRC-32 over the names and numbers of all columns, in order."""
    crc = 0
    for name, values in columns.items():
        crc = zlib.crc32(name.encode(), crc)
        crc = zlib.crc32(np.ascontiguousarray(values, "<f8").tobytes(), crc)
    return crc


def has_canonical_names(names: tuple[str, ...] | list[str]) -> bool:
    """Whether columns are named as in taufit's files, and none has another name for torque."""
    names = list(names)
    signal = any(f"{QUANTITIES[name].prefix}_1" in names for name in SIGNALS)
    has_rival = any(name.startswith(("tau", "effort", "trq")) for name in names)
    return "t" in names and "q_1" in names and signal and not has_rival


def from_columns(
    columns: dict[str, Float[Array, " n"]], page: dict[str, Any] | None, source: str
) -> Recording:
    """Inverse of `to_columns`; rows are checked again if the checksum differs."""
    names = tuple(columns)
    signals = _signals(names, source)
    joints = sum(re.fullmatch(r"q_\d+", name) is not None for name in names)
    intact = page is not None and page.get("checksum") == checksum(columns)
    labels = {
        name: [f"{QUANTITIES[name].prefix}_{joint + 1}" for joint in range(joints)]
        for name in _per_joint()
    }
    known_names = {"t", "payload"}.union(*labels.values())
    recording = Recording(
        time=np.asarray(columns["t"], float),
        **_fields(columns, labels, source),
        signal_unit=SIGNAL_UNITS[signals[0]],
        findings=(
            *_findings_from_metadata(page, source),
            *_new_findings(page, intact, [name for name in names if name not in known_names]),
        ),
        **_page_fields(page or {}, joints, signals[0], source),
    )
    if intact:
        return recording
    from taufit.recording.row_checks import check_rows

    other_signals = {*SIGNALS} - {*signals}
    field_labels = {
        QUANTITIES[n].field: columns_of_field
        for n, columns_of_field in labels.items()
        if n not in other_signals
    }
    return check_rows(
        recording,
        source=source,
        rows=np.arange(1, len(recording) + 1),
        labels={**field_labels, "time": ["t"]},
        payload=columns.get("payload"),
    )


def _signals(names: tuple[str, ...], source: str) -> list[str]:
    """Torque channel among canonical column names."""
    if not has_canonical_names(names):
        raise RecordingError(
            f"{source} has no columns t, q_1, ... and current_1 or torque_1 as taufit writes them "
            f"(it has {', '.join(names[:20]) or 'none'}). Give a column map: column_map=..., --map."
        )
    signals = [name for name in SIGNALS if f"{QUANTITIES[name].prefix}_1" in names]
    if len(signals) != 1:
        raise RecordingError(
            f"{source} has more than one torque channel: {', '.join(signals)}. Leave one, or give "
            "a column map."
        )
    return signals


def _fields(
    columns: dict[str, Float[Array, " n"]], labels: dict[str, list[str]], source: str
) -> dict[str, Any]:
    """Arrays (n, j) of every quantity in the file."""
    fields = {}
    for name, joint_columns in labels.items():
        missing = [column for column in joint_columns if column not in columns]
        if missing and len(missing) < len(joint_columns):
            text = f"{source} has {len(joint_columns)} joints but no column {', '.join(missing)}."
            raise RecordingError(text)
        if not missing:
            fields[QUANTITIES[name].field] = np.column_stack([columns[c] for c in joint_columns])
    return fields


def _new_findings(page: dict[str, Any] | None, intact: bool, extra: list[str]) -> list[Finding]:
    """Findings about missing metadata, changed values and unread columns."""
    findings = []
    if page is None:
        text = "the file's columns are taufit's but its metadata is gone"
        action = "SI units and a signed motor-side signal are assumed; gains are unknown"
        findings.append(Finding("metadata", "warning", text, action))
    # A live recording has no checksum: its rows have not been checked.
    elif not intact and "checksum" in page:
        text = "the numbers are not those taufit wrote (the checksum differs)"
        findings.append(Finding("changed", "warning", text, "all rows were screened again"))
    if extra:
        text = f"columns {', '.join(extra[:20])} are not taufit's"
        findings.append(Finding("unread_columns", "info", text, "not read"))
    return findings


def _page_numbers(
    page: dict[str, Any], key: str, shape: tuple[int, ...], source: str, dtype: type = float
) -> Any:
    value = page.get(key)
    if value is None:
        return None
    try:
        array: Array = np.array(value, dtype)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != shape or not np.isfinite(array).all():
        raise RecordingError(
            f"{source}: its metadata gives {key} = {str(value)[:60]}; expected "
            f"{' x '.join(map(str, shape))} numbers."
        )
    return array


def _page_payload(page: dict[str, Any], source: str) -> float | None:
    payload = page.get("payload")
    if payload is None:
        return None
    number = isinstance(payload, (int, float)) and not isinstance(payload, bool)
    if not (number and 0 <= payload < 1e6):
        raise RecordingError(f"{source}: its metadata gives payload {payload!r}, not kilograms.")
    return float(payload)


def _require_version(page: dict[str, Any], source: str) -> None:
    if page.get("schema") != SCHEMA:
        raise RecordingError(f"{source}: its metadata is not a taufit recording's.")
    if not isinstance(page.get("version"), int) or page["version"] > VERSION:
        raise RecordingError(
            f"{source} was written by a newer taufit (form {page.get('version')}; this one reads "
            f"up to {VERSION}). Update taufit."
        )


def _page_fields(page: dict[str, Any], joints: int, signal: str, source: str) -> dict[str, Any]:
    """Fields from the JSON metadata, validated, since the file is untrusted."""
    if page:
        _require_version(page, source)
    default = "motor_current" if signal == "current" else "motor_torque"
    torque_source = page.get("torque_source", default)
    if torque_source not in TORQUE_SOURCES:
        raise RecordingError(
            f"{source}: its metadata gives torque_source {torque_source!r}; there are "
            f"{', '.join(TORQUE_SOURCES)}."
        )
    provenance = page.get("provenance") or {}
    stored = page.get("findings") or []
    if not isinstance(provenance, dict) or not isinstance(stored, list):
        raise RecordingError(f"{source}: its metadata is damaged.")
    page_meta = {key: page.get(key) for key in ("robot", "joint_names", "mounting")}
    meta = {**provenance, **{key: value for key, value in page_meta.items() if value is not None}}
    result: dict[str, Any] = {
        "torque_source": torque_source,
        "signed": _page_numbers(page, "signed", (joints,), source, bool),
        "gain": _page_numbers(page, "gain", (joints,), source),
        "gain_std": _page_numbers(page, "gain_std", (joints,), source),
        "coupling": _page_numbers(page, "coupling", (joints, joints), source),
        "payload": _page_payload(page, source),
        "meta": meta,
    }
    return result


def _findings_from_metadata(page: dict[str, Any] | None, source: str) -> list[Finding]:
    """Findings stored in the metadata."""
    stored = (page or {}).get("findings") or []
    try:
        return [Finding.from_dict(item) for item in stored]
    except (TypeError, ValueError, AttributeError):
        raise RecordingError(f"{source}: the findings in its metadata are damaged.") from None


def metadata_to_text(page: dict[str, Any]) -> str:
    """Metadata as one line of JSON with a checksum."""
    return json.dumps({**page, "seal": _seal(page)}, default=str)


def metadata_from_text(text: str | bytes, source: str) -> dict[str, Any]:
    """Inverse of `to_text`; edited metadata are read and reported."""
    page = parse_json(text, f"the metadata of {source}", "intact", error=RecordingError)
    if not isinstance(page, dict):
        raise RecordingError(f"{source}: its metadata is damaged and cannot be read.")
    seal = page.pop("seal", None)
    if seal != _seal(page):
        edited = Finding(
            "metadata_changed",
            "warning",
            "the metadata is not what taufit wrote (its checksum differs)",
            "taken as it is now; check gains, signs and units",
        )
        stored = page.get("findings")
        page["findings"] = [*(stored if isinstance(stored, list) else []), edited.to_dict()]
    return page


def _seal(page: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(page, sort_keys=True, default=str).encode())
