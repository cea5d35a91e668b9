"""ROS 1 and ROS 2 bags and MCAP with joint states, without a ROS installation.

`effort` may be N m, A or other; the message does not say. Without `torque_kind` it is kept as raw
numbers, with a warning.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import RecordingError
from taufit.core.extras import missing_extra
from taufit.core.names import clean_name
from taufit.recording.assemble import assemble_recordings
from taufit.recording.canonical import from_columns, metadata_from_text
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.decompressed_size import require_bag_size
from taufit.recording.finding import Finding
from taufit.recording.readers.bag_messages import (
    JOINT_STATE_MESSAGES,
    effort_advice,
    register_messages,
)
from taufit.recording.recording import Recording
from taufit.recording.table import Table

# Topics of taufit next to /joint_states, for data that JointState cannot represent.
META_TOPIC = "/taufit/recording"
SAMPLES_TOPIC = "/taufit/samples"
STATE_TOPIC = "/joint_states"
TORQUE_KINDS = {
    "torque": "N m at the joint",
    "current": "A",
    "torque_without_gravity": "N m at the joint, gravity subtracted by the controller",
    "raw": "raw numbers",
}


def read_bag(
    path: Path,
    column_map: ColumnMap | None = None,
    *,
    topic: str | None = None,
    torque_kind: str | None = None,
) -> list[Recording]:
    """Read the joint states of a bag.

    For a column map the columns are time, position_1.., velocity_1.., effort_1.., in the order of
    the map's joint_names, or of the first message.

    Args:
        topic: Topic of the joint states, if the bag has several.
        torque_kind: Kind of `effort`: "torque" (N m), "current" (A), "torque_without_gravity" (N
            m, gravity subtracted by the controller) or "raw".
    """
    if torque_kind is not None and torque_kind not in TORQUE_KINDS:
        raise RecordingError(f"effort {torque_kind!r} is not known: use {', '.join(TORQUE_KINDS)}.")
    order = column_map.joint_names if column_map else None
    states, taufit_recording = _messages(path, topic, order is None and column_map is None)
    if taufit_recording is not None:
        return [taufit_recording]
    table = _table(states, path, order)
    if column_map is not None:
        return assemble_recordings(table, column_map)
    return [_without_map(table, torque_kind)]


def bag_table(path: Path, topic: str | None = None) -> Table:
    """Joint states of a bag as a table: time, position_1.., velocity_1.., effort_1.."""
    states, _ = _messages(path, topic, False)
    return _table(states, path, None)


def _without_map(table: Table, torque_kind: str | None) -> Recording:
    names = set(table.names)
    quantity_by_kind = {
        "torque": "torque",
        "current": "current",
        "torque_without_gravity": "torque",
    }
    quantity = quantity_by_kind.get(torque_kind or "", "signal")
    columns = {"time": "time", "position": "position_{joint}", quantity: "effort_{joint}"}
    if "effort_1" not in names:
        raise RecordingError(
            f"{table.source}: its joint states have no effort, so there is no torque to work with."
        )
    if "velocity_1" in names:
        columns["velocity"] = "velocity_{joint}"
    page: dict[str, Any] = {"columns": columns, "joint_names": table.meta["joint_names"]}
    if quantity == "torque":
        page["gains"] = 1
    if torque_kind == "torque_without_gravity":
        page["gravity_removed"] = True
    if torque_kind == "current":
        page["gains"] = "unknown"
    (recording,) = assemble_recordings(table, read_map(page))
    if torque_kind is not None:
        return recording
    advice = effort_advice(tuple(table.meta["joint_names"]), table.meta["start_time_ns"])
    remark = Finding(
        "effort_unit",
        "warning",
        "nothing in a JointState says whether effort is N m, A or something else",
        f"kept as raw numbers; say --torque-kind {'|'.join(TORQUE_KINDS)} (torque_kind=...)"
        + (f". {advice.removesuffix('.')}" if advice else ""),
    )
    findings = tuple(f for f in recording.findings if f.kind != "gain_unknown")
    return replace(recording, findings=(*findings, remark))


def _messages(
    path: Path, topic: str | None, allow_taufit: bool
) -> tuple[list[Any], Recording | None]:
    """(time stamp [ns], joint state) of one topic; or the recording of a bag written by taufit."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise missing_extra("ros", f"{path} is a ROS bag; reading it") from None
    store = get_typestore(Stores.ROS1_NOETIC if path.suffix == ".bag" else Stores.ROS2_HUMBLE)
    try:
        require_bag_size(path)
        register_messages(store)
        with AnyReader([path], default_typestore=store) as reader:
            if allow_taufit and META_TOPIC in {c.topic for c in reader.connections}:
                return [], _read_taufit_bag(reader, path)
            return _joint_states(reader, topic, path), None
    except RecordingError:
        raise
    # A damaged bag may raise any exception in the parsers.
    except (Exception, sqlite3.Error) as error:
        hint = " `mcap recover` saves what a stopped logger left." if path.suffix == ".mcap" else ""
        raise RecordingError(
            f"{path} cannot be read as a ROS bag: {type(error).__name__}: {str(error)[:200]}.{hint}"
        ) from None


def _joint_states(reader: Any, topic: str | None, path: Path) -> list[Any]:
    """(time stamp [ns], joint state) of the chosen topic."""
    topics = {
        name: {c.topic for c in reader.connections if c.msgtype == name}
        for name in JOINT_STATE_MESSAGES
    }
    selected_topic = _choose_topic(topics, topic, path, {c.topic for c in reader.connections})
    connections = [c for c in reader.connections if c.topic == selected_topic]
    return [
        (stamp, JOINT_STATE_MESSAGES[c.msgtype](reader.deserialize(raw, c.msgtype)))
        for c, stamp, raw in reader.messages(connections)
    ]


def _choose_topic(
    topics_by_message: dict[str, set[str]], topic: str | None, path: Path, all_topics: set[str]
) -> str:
    """Named topic, or the only one of the first kind of message that the bag has."""
    if topic is not None:
        known = set().union(*topics_by_message.values())
        if topic not in known:
            available = ", ".join(sorted(known)) or "none"
            raise RecordingError(f"{path} has no joint states on {topic}; it has {available}.")
        return topic
    topics: set[str] = next(filter(None, topics_by_message.values()), set())
    if not topics:
        available = ", ".join(sorted(all_topics)[:20]) or "no topics"
        raise RecordingError(f"{path} has no sensor_msgs/JointState; it has {available}.")
    if len(topics) > 1:
        raise RecordingError(
            f"{path} has joint states on {', '.join(sorted(topics))}; say which with topic=..., "
            "--topic."
        )
    return next(iter(topics))


def _read_taufit_bag(reader: Any, path: Path) -> Recording:
    """Recording of a bag written by `to_bag`."""
    connections = {c.topic: c for c in reader.connections}
    missing = [t for t in (META_TOPIC, SAMPLES_TOPIC, STATE_TOPIC) if t not in connections]
    if missing:
        raise RecordingError(f"{path} was written by taufit but lacks {', '.join(missing)}.")
    text, samples, states = None, [], []
    for connection, _, raw in reader.messages(
        [connections[t] for t in (META_TOPIC, SAMPLES_TOPIC, STATE_TOPIC)]
    ):
        message = reader.deserialize(raw, connection.msgtype)
        if connection.topic == META_TOPIC:
            text = message.data
        elif connection.topic == SAMPLES_TOPIC:
            samples.append(message.data)
        else:
            states.append(np.concatenate([message.position, message.velocity, message.effort]))
    if text is None:
        raise RecordingError(f"{path}: its metadata message is gone.")
    page = metadata_from_text(text, str(path))
    layout = page.pop("bag", None)
    if not isinstance(layout, dict) or len(samples) != len(states) or not samples:
        raise RecordingError(
            f"{path} is incomplete: {len(states)} joint states for {len(samples)} samples."
        )
    values = np.column_stack([np.array(samples, float), np.array(states, float)])
    return from_columns(_arrange_columns(values, layout, path), page, str(path))


def _arrange_columns(
    values: Float[Array, "n c"], layout: dict[str, Any], path: Path
) -> dict[str, Float[Array, " n"]]:
    """Columns by name, in the order given in the metadata."""
    order = [str(name) for name in layout.get("columns", [])]
    positions, width = layout.get("at", []), values.shape[1]
    if sorted(positions) != list(range(width)) or len(order) != width:
        raise RecordingError(f"{path}: its metadata does not fit its messages.")
    return {name: values[:, position] for name, position in zip(order, positions, strict=True)}


def _joints(
    name_sets: Counter[tuple[str, ...]], path: Path, order: tuple[str, ...] | None
) -> list[str]:
    """Requested joints, or those of most messages."""
    joints = list(order) if order else list(name_sets.most_common(1)[0][0])
    if not joints:
        raise RecordingError(f"{path}: its joint states name no joints.")
    if len(set(joints)) != len(joints):
        raise RecordingError(f"{path}: its joint states name a joint twice: {', '.join(joints)}.")
    all_names = sorted({name for names in name_sets for name in names})
    unknown = [name for name in joints if name not in all_names]
    if unknown:
        raise RecordingError(
            f"{path} has no joint {', '.join(unknown)}; it has {', '.join(all_names)}."
        )
    return joints


def _joint_findings(
    joints: list[str],
    all_names: list[str],
    incomplete: int,
    messages: int,
    *,
    order_is_default: bool,
) -> list[Finding]:
    """Findings about unread joints, dropped messages and alphabetical order."""
    findings = []
    unread_joints = sorted(set(all_names) - set(joints))
    if incomplete:
        findings.append(
            Finding(
                "other_joints",
                "info",
                f"{incomplete} of {messages} joint states lack some of {', '.join(joints)}"
                + (f" (they name {', '.join(unread_joints[:12])})" if unread_joints else ""),
                "messages left out",
            )
        )
    elif unread_joints:
        findings.append(
            Finding(
                "other_joints",
                "info",
                f"joints {', '.join(unread_joints[:12])} are not asked for",
                "not read",
            )
        )
    if (
        order_is_default
        and len(joints) > 2
        and joints == sorted(joints)
        and not _is_numbered(joints)
    ):
        findings.append(
            Finding(
                "joint_order",
                "warning",
                f"the joints come in the alphabet's order ({', '.join(joints)}), which need not be "
                "the arm's",
                "kept as they come; give joint_names in a column map, or --robot",
            )
        )
    return findings


def _joint_values(
    states: list[Any], name: str, indices_by_names: dict[tuple[str, ...], list[int]]
) -> Float[Array, "n j"]:
    """Values of one quantity, joint by joint; NaN for incomplete messages."""
    values = np.full((len(states), len(next(iter(indices_by_names.values())))), np.nan)
    for row, (_, message) in zip(values, states, strict=True):
        numbers = getattr(message, name)
        if len(numbers) == len(message.name):
            row[:] = numbers[indices_by_names[message.name]]
    return values


def _time_stamps(states: list[Any], path: Path, findings: list[Finding]) -> Int[Array, " n"]:
    """Time stamps of joint states [ns]; time of reception if they have none."""
    headers = np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for _, m in states])
    headless = np.count_nonzero(headers == 0)
    if headless:
        findings.append(
            Finding(
                "no_stamp",
                "warning",
                f"{headless} joint states carry no time stamp",
                "the time they were received is used",
            )
        )
    received = [stamp for stamp, _ in states]
    for number, stamp in enumerate(received):
        if not isinstance(stamp, int):
            raise RecordingError(
                f"{path}: joint state {number} was received at {clean_name(repr(stamp), 40)}, not "
                "a whole number of nanoseconds. Record the bag again, or repair its messages table."
            )
    return np.where(headers == 0, received, headers)


def _table(states: list[Any], path: Path, order: tuple[str, ...] | None) -> Table:
    """Table of joint states, joints assigned by name."""
    if not states:
        raise RecordingError(f"{path} has no joint states.")
    name_sets = Counter(message.name for _, message in states)
    joints = _joints(name_sets, path, order)
    all_names = sorted({*()}.union(*name_sets))
    complete = [names for names in name_sets if set(joints) <= set(names)]
    indices_by_names = {names: [names.index(joint) for joint in joints] for names in complete}
    used = [state for state in states if state[1].name in indices_by_names]
    if not used:
        raise RecordingError(f"{path}: no joint state has all of {', '.join(joints)}.")
    dropped = len(states) - len(used)
    findings = _joint_findings(
        joints, all_names, dropped, len(states), order_is_default=order is None
    )
    stamps = _time_stamps(used, path, findings)
    start = int(stamps[0])
    columns: dict[str, Any] = {"time": (stamps - start) / 1e9}
    for name in ("position", "velocity", "effort"):
        values = _joint_values(used, name, indices_by_names)
        if np.isfinite(values).any() or name == "position":
            columns.update({f"{name}_{i + 1}": column for i, column in enumerate(values.T)})
    meta = {"joint_names": joints, "start_time_ns": start}
    return Table.from_columns(str(path), columns, meta=meta, findings=tuple(findings))


def _is_numbered(joints: list[str]) -> bool:
    """Whether joint names are numbered, so that alphabetical order is joint order."""
    digits = ["".join(c for c in name if c.isdigit()) for name in joints]
    return all(digits) and [int(d) for d in digits] == sorted(int(d) for d in digits)
