"""taufit's own form of a recording: named columns and one JSON page, whatever the container.

Columns are t, then one per joint counted from 1: q_1, v_1, a_1, q_cmd_1, v_cmd_1, a_cmd_1,
current_1 or torque_1 or signal_1, target_current_1, target_torque_1, temperature_1; and payload
where it is known. SI units throughout.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.core.plain_data import parse_json
from taufit.recording.finding import Finding
from taufit.recording.quantity import QUANTITIES, SIGNAL_UNITS, SIGNALS
from taufit.recording.recording import Recording
from taufit.recording.screen import screen
from taufit.recording.timing import timing

SCHEMA = "taufit.recording"
VERSION = 1
TORQUE_SOURCES = ("motor_current", "motor_torque", "joint_torque_sensor")


def _per_joint() -> tuple[str, ...]:
    return tuple(name for name, spec in QUANTITIES.items() if spec.per_joint)


def to_columns(recording: Recording) -> tuple[dict[str, Float[Array, " n"]], dict[str, Any]]:
    """The columns and the JSON page of a recording."""
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
    return columns, {**describe(recording), "checksum": checksum(columns)}


def describe(recording: Recording) -> dict[str, Any]:
    """The JSON page: everything about a recording but its columns."""

    def plain(values: Array | None) -> Any:
        return None if values is None else np.asarray(values).tolist()

    clock = timing(recording.time)
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
        "signed": plain(recording.signed),
        "gain": plain(recording.gain),
        "gain_std": plain(recording.gain_std),
        "coupling": plain(recording.coupling),
        "payload": recording.payload,
        "samples": len(recording),
        "rate_hz": clock.mean_hz,
        "lost_samples": clock.lost,
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


def looks_canonical(names: tuple[str, ...] | list[str]) -> bool:
    """Whether columns are named as ours are."""
    names = list(names)
    signal = any(f"{QUANTITIES[name].prefix}_1" in names for name in SIGNALS)
    return "t" in names and "q_1" in names and signal


def from_columns(
    columns: dict[str, Float[Array, " n"]], page: dict[str, Any] | None, source: str
) -> Recording:
    """Inverse of `to_columns`; what was changed since, or was never ours, is screened again."""
    names = tuple(columns)
    if not looks_canonical(names):
        raise RecordingError(
            f"{source} has no columns t, q_1, ... and current_1 or torque_1 as taufit writes them "
            f"(it has {', '.join(names[:20]) or 'none'}). Give a column map: map=..., --map."
        )
    joints = len([name for name in names if re.fullmatch(r"q_\d+", name)])
    signals = [name for name in SIGNALS if f"{QUANTITIES[name].prefix}_1" in names]
    if len(signals) != 1:
        raise RecordingError(
            f"{source} has more than one torque channel: {', '.join(signals)}. Leave one, or give "
            "a column map."
        )
    findings = list(_stored_findings(page, source))
    intact = False
    if page is None:
        findings.append(
            Finding(
                "metadata",
                "warning",
                "the file's columns are taufit's but its metadata is gone",
                "SI units and a signed motor-side signal are assumed; gains are unknown",
            )
        )
        page = {}
    else:
        intact = page.get("checksum") == checksum(columns)
        # A live recording has none: its rows were never looked at.
        if not intact and "checksum" in page:
            findings.append(
                Finding(
                    "changed",
                    "warning",
                    "the numbers are not those taufit wrote (the checksum differs)",
                    "all rows were screened again",
                )
            )
    fields: dict[str, Any] = {}
    for name in _per_joint():
        prefix = QUANTITIES[name].prefix
        mine = [f"{prefix}_{joint}" for joint in range(1, joints + 1)]
        have = [column for column in mine if column in columns]
        if have and len(have) != joints:
            gone = ", ".join(column for column in mine if column not in columns)
            raise RecordingError(f"{source} has {joints} joints but no column {gone}.")
        if have:
            fields[QUANTITIES[name].field] = np.column_stack([columns[c] for c in mine])
    recording = Recording(
        time=np.asarray(columns["t"], float),
        **fields,
        signal_unit=SIGNAL_UNITS[signals[0]],
        findings=tuple(findings),
        **_page_fields(page, joints, signals[0], source),
    )
    known = (
        "t",
        "payload",
        *(f"{QUANTITIES[n].prefix}_{j + 1}" for n in _per_joint() for j in range(joints)),
    )
    extra = [name for name in names if name not in known]
    if extra:
        unread = Finding(
            "unread_columns",
            "info",
            f"columns {', '.join(extra[:20])} are not taufit's",
            "not read",
        )
        recording = replace(recording, findings=(*recording.findings, unread))
    if intact:
        return recording
    labels = {
        QUANTITIES[name].field: [f"{QUANTITIES[name].prefix}_{j + 1}" for j in range(joints)]
        for name in _per_joint()
        if name not in SIGNALS or name == signals[0]
    }
    return screen(
        recording,
        source=source,
        rows=np.arange(1, len(recording) + 1),
        labels={**labels, "time": ["t"]},
        payload=columns.get("payload"),
    )


def _page_fields(page: dict[str, Any], joints: int, signal: str, source: str) -> dict[str, Any]:
    """What the JSON page says, checked: it may have been written by anybody."""

    def numbers(key: str, shape: tuple[int, ...], dtype: type) -> Any:
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

    if page and page.get("schema") != SCHEMA:
        raise RecordingError(f"{source}: its metadata is not a taufit recording's.")
    if page and (not isinstance(page.get("version"), int) or page["version"] > VERSION):
        raise RecordingError(
            f"{source} was written by a newer taufit (form {page.get('version')}; this one reads "
            f"up to {VERSION}). Update taufit."
        )
    default = "motor_current" if signal == "current" else "motor_torque"
    torque_source = page.get("torque_source", default)
    if torque_source not in TORQUE_SOURCES:
        raise RecordingError(
            f"{source}: its metadata gives torque_source {torque_source!r}; there are "
            f"{', '.join(TORQUE_SOURCES)}."
        )
    payload = page.get("payload")
    if payload is not None and (
        isinstance(payload, bool) or not isinstance(payload, (int, float)) or not 0 <= payload < 1e6
    ):
        raise RecordingError(f"{source}: its metadata gives payload {payload!r}, not kilograms.")
    provenance = page.get("provenance") or {}
    stored = page.get("findings") or []
    if not isinstance(provenance, dict) or not isinstance(stored, list):
        raise RecordingError(f"{source}: its metadata is damaged.")
    meta = dict(provenance)
    for key in ("robot", "joint_names", "mounting"):
        if page.get(key) is not None:
            meta[key] = page[key]
    result: dict[str, Any] = {
        "torque_source": torque_source,
        "signed": numbers("signed", (joints,), bool),
        "gain": numbers("gain", (joints,), float),
        "gain_std": numbers("gain_std", (joints,), float),
        "coupling": numbers("coupling", (joints, joints), float),
        "payload": None if payload is None else float(payload),
        "meta": meta,
    }
    return result


def _stored_findings(page: dict[str, Any] | None, source: str) -> list[Finding]:
    """Findings of whoever read the run first."""
    stored = (page or {}).get("findings") or []
    try:
        return [Finding.from_dict(item) for item in stored]
    except (TypeError, ValueError, AttributeError):
        raise RecordingError(f"{source}: the findings in its metadata are damaged.") from None


def to_text(page: dict[str, Any]) -> str:
    """The page as one line of JSON that carries its own checksum."""
    return json.dumps({**page, "seal": _seal(page)}, default=str)


def from_text(text: str | bytes, source: str) -> dict[str, Any]:
    """Inverse of `to_text`; a page somebody edited is read and flagged."""
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
