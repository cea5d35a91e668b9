"""ROS 1 and ROS 2 bags and MCAP with sensor_msgs/JointState, without a ROS installation.

`effort` may be N m, A or anything: nothing in the message says which. Unless the caller does, it
is kept as raw numbers and said so.
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
from taufit.recording.assemble import assemble
from taufit.recording.canonical import from_columns, from_text
from taufit.recording.column_map import ColumnMap, read_map
from taufit.recording.decompressed_size import check_bag
from taufit.recording.finding import Finding
from taufit.recording.recording import Recording
from taufit.recording.table import Table

# Our own topics beside /joint_states: what a JointState has no room for.
META_TOPIC = "/taufit/recording"
SAMPLES_TOPIC = "/taufit/samples"
STATE_TOPIC = "/joint_states"
EFFORTS = {
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
    effort: str | None = None,
) -> list[Recording]:
    """The joint states of a bag.

    Through a column map the table's columns are time, position_1.., velocity_1.., effort_1..,
    in the order of the map's joint_names, or else of the first message.

    Args:
        topic: Of the joint states, where the bag has several.
        effort: What `effort` holds: "torque" (N m), "current" (A), "torque_without_gravity" (N m,
            gravity subtracted by the controller) or "raw".
    """
    if effort is not None and effort not in EFFORTS:
        raise RecordingError(f"effort {effort!r} is not known: use {', '.join(EFFORTS)}.")
    order = column_map.joint_names if column_map else None
    states, own = _messages(path, topic, order is None and column_map is None)
    if own is not None:
        return [own]
    table = _table(states, path, order)
    if column_map is not None:
        return assemble(table, column_map)
    return [_without_map(table, effort)]


def bag_table(path: Path, topic: str | None = None) -> Table:
    """The joint states of a bag as a table: time, position_1.., velocity_1.., effort_1.."""
    states, _ = _messages(path, topic, False)
    return _table(states, path, None)


def _without_map(table: Table, effort: str | None) -> Recording:
    names = set(table.names)
    known = {"torque": "torque", "current": "current", "torque_without_gravity": "torque"}
    quantity = known.get(effort or "", "signal")
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
    if effort == "torque_without_gravity":
        page["gravity_removed"] = True
    if effort == "current":
        page["gains"] = "unknown"
    (recording,) = assemble(table, read_map(page))
    if effort is not None:
        return recording
    remark = Finding(
        "effort_unit",
        "warning",
        "nothing in a JointState says whether effort is N m, A or something else",
        f"kept as raw numbers; say --effort {'|'.join(EFFORTS)} (effort=...)",
    )
    findings = tuple(f for f in recording.findings if f.kind != "gain_unknown")
    return replace(recording, findings=(*findings, remark))


def _messages(path: Path, topic: str | None, own: bool) -> tuple[list[Any], Recording | None]:
    """(time stamp [ns], JointState) of one topic; or the recording a bag of ours holds."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise missing_extra("ros", f"{path} is a ROS bag; reading it") from None
    store = get_typestore(Stores.ROS1_NOETIC if path.suffix == ".bag" else Stores.ROS2_HUMBLE)
    try:
        check_bag(path)
        with AnyReader([path], default_typestore=store) as reader:
            topics = {
                c.topic for c in reader.connections if c.msgtype == "sensor_msgs/msg/JointState"
            }
            if own and META_TOPIC in {c.topic for c in reader.connections}:
                return [], _own(reader, path)
            chosen = _choose(topics, topic, path, {c.topic for c in reader.connections})
            links = [c for c in reader.connections if c.topic == chosen]
            return [
                (stamp, reader.deserialize(raw, link.msgtype))
                for link, stamp, raw in reader.messages(links)
            ], None
    except RecordingError:
        raise
    # A damaged bag raises nearly anything in the parsers; all of it means the same.
    except (Exception, sqlite3.Error) as error:
        hint = " `mcap recover` saves what a stopped logger left." if path.suffix == ".mcap" else ""
        raise RecordingError(
            f"{path} cannot be read as a ROS bag: {type(error).__name__}: {str(error)[:200]}.{hint}"
        ) from None


def _choose(topics: set[str], topic: str | None, path: Path, everything: set[str]) -> str:
    if topic is not None:
        if topic not in topics:
            have = ", ".join(sorted(topics)) or "none"
            raise RecordingError(f"{path} has no joint states on {topic}; it has {have}.")
        return topic
    if not topics:
        have = ", ".join(sorted(everything)[:20]) or "no topics"
        raise RecordingError(f"{path} has no sensor_msgs/JointState; it has {have}.")
    if len(topics) > 1:
        raise RecordingError(
            f"{path} has joint states on {', '.join(sorted(topics))}; say which with topic=..., "
            "--topic."
        )
    return next(iter(topics))


def _own(reader: Any, path: Path) -> Recording:
    """A recording as `to_bag` wrote it, exactly."""
    links = {c.topic: c for c in reader.connections}
    missing = [t for t in (META_TOPIC, SAMPLES_TOPIC, STATE_TOPIC) if t not in links]
    if missing:
        raise RecordingError(f"{path} was written by taufit but lacks {', '.join(missing)}.")
    text, samples, states = None, [], []
    for link, _, raw in reader.messages(
        [links[t] for t in (META_TOPIC, SAMPLES_TOPIC, STATE_TOPIC)]
    ):
        message = reader.deserialize(raw, link.msgtype)
        if link.topic == META_TOPIC:
            text = message.data
        elif link.topic == SAMPLES_TOPIC:
            samples.append(message.data)
        else:
            states.append(np.concatenate([message.position, message.velocity, message.effort]))
    if text is None:
        raise RecordingError(f"{path}: its metadata message is gone.")
    page = from_text(text, str(path))
    layout = page.pop("bag", None)
    if not isinstance(layout, dict) or len(samples) != len(states) or not samples:
        raise RecordingError(
            f"{path} is incomplete: {len(states)} joint states for {len(samples)} samples."
        )
    values = np.column_stack([np.array(samples, float), np.array(states, float)])
    return from_columns(_laid_out(values, layout, path), page, str(path))


def _laid_out(
    values: Float[Array, "n c"], layout: dict[str, Any], path: Path
) -> dict[str, Float[Array, " n"]]:
    """Columns by name, in the order that the metadata give."""
    order = [str(name) for name in layout.get("columns", [])]
    places, width = layout.get("at", []), values.shape[1]
    if sorted(places) != list(range(width)) or len(order) != width:
        raise RecordingError(f"{path}: its metadata does not fit its messages.")
    return {name: values[:, at] for name, at in zip(order, places, strict=True)}


def _joints(
    name_sets: Counter[tuple[str, ...]], path: Path, order: tuple[str, ...] | None
) -> list[str]:
    """The joints asked for, or those most messages name."""
    joints = list(order) if order else list(name_sets.most_common(1)[0][0])
    if not joints:
        raise RecordingError(f"{path}: its joint states name no joints.")
    if len(set(joints)) != len(joints):
        raise RecordingError(f"{path}: its joint states name a joint twice: {', '.join(joints)}.")
    every = sorted({name for names in name_sets for name in names})
    unknown = [name for name in joints if name not in every]
    if unknown:
        raise RecordingError(
            f"{path} has no joint {', '.join(unknown)}; it has {', '.join(every)}."
        )
    return joints


def _joint_findings(
    joints: list[str], every: list[str], lacking: int, messages: int, *, sorts: bool
) -> list[Finding]:
    """What the names say: joints left out, messages left out, an order that is the alphabet's."""
    findings = []
    other = sorted(set(every) - set(joints))
    if lacking:
        findings.append(
            Finding(
                "other_joints",
                "info",
                f"{lacking} of {messages} joint states lack some of {', '.join(joints)}"
                + (f" (they name {', '.join(other[:12])})" if other else ""),
                "messages left out",
            )
        )
    elif other:
        findings.append(
            Finding(
                "other_joints",
                "info",
                f"joints {', '.join(other[:12])} are not asked for",
                "not read",
            )
        )
    if sorts and len(joints) > 2 and joints == sorted(joints) and not _numbered(joints):
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


def _numbers(
    states: list[Any], name: str, places: dict[tuple[str, ...], list[int]]
) -> Float[Array, "n j"]:
    """One quantity of joint states, joint by joint; NaN in messages that have not all of it."""
    values = np.full((len(states), len(next(iter(places.values())))), np.nan)
    for row, (_, message) in zip(values, states, strict=True):
        numbers = getattr(message, name)
        if len(numbers) == len(message.name):
            row[:] = numbers[places[tuple(message.name)]]
    return values


def _stamps(states: list[Any], path: Path, findings: list[Finding]) -> Int[Array, " n"]:
    """Time of joint states [ns]: from their header, or of reception where the header has none."""
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
    """Joint states side by side, every joint under its own name whatever its place."""
    if not states:
        raise RecordingError(f"{path} has no joint states.")
    name_sets = Counter(tuple(message.name) for _, message in states)
    joints = _joints(name_sets, path, order)
    every = sorted({*()}.union(*name_sets))
    full = [names for names in name_sets if set(joints) <= set(names)]
    places = {names: [names.index(joint) for joint in joints] for names in full}
    used = [state for state in states if tuple(state[1].name) in places]
    if not used:
        raise RecordingError(f"{path}: no joint state has all of {', '.join(joints)}.")
    dropped = len(states) - len(used)
    findings = _joint_findings(joints, every, dropped, len(states), sorts=order is None)
    stamps = _stamps(used, path, findings)
    start = int(stamps[0])
    columns: dict[str, Any] = {"time": (stamps - start) / 1e9}
    for name in ("position", "velocity", "effort"):
        part = _numbers(used, name, places)
        if np.isfinite(part).any() or name == "position":
            columns.update({f"{name}_{i + 1}": own for i, own in enumerate(part.T)})
    meta = {"joint_names": joints, "start_time_ns": start}
    return Table.from_columns(str(path), columns, meta=meta, findings=tuple(findings))


def _numbered(joints: list[str]) -> bool:
    """joint_1, joint_2, ...: the alphabet's order is the arm's."""
    digits = ["".join(c for c in name if c.isdigit()) for name in joints]
    return all(digits) and [int(d) for d in digits] == sorted(int(d) for d in digits)
