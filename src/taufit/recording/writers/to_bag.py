"""Recording -> MCAP or ROS 2 bag: joint states for any ROS tool, and further channels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from taufit.core.errors import TaufitError
from taufit.core.extras import missing_extra
from taufit.core.files import replace_file
from taufit.core.parameters import joint_name
from taufit.recording.canonical import metadata_to_text, to_columns
from taufit.recording.readers.from_bag import META_TOPIC, SAMPLES_TOPIC, STATE_TOPIC
from taufit.recording.recording import Recording


def write_mcap(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write one .mcap file."""
    with replace_file(path) as temporary:
        bag = temporary.parent / "bag"
        _write(recording, bag)
        os.replace(bag / "bag.mcap", temporary)


def write_ros2_bag(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a ROS 2 bag: a directory with metadata.yaml and one .mcap file. It must not exist."""
    if os.path.lexists(path):
        raise TaufitError(f"{path} exists; a bag is not written over another. Choose another name.")
    with replace_file(path) as temporary:
        _write(recording, temporary)


def _write(recording: Recording, bag: Path) -> None:
    """Write the bag; effort is the torque channel as recorded, time stamps are in nanoseconds.

    /taufit/samples contains exact time and the columns that JointState cannot represent,
    /taufit/recording the JSON metadata, so that reading returns an equal recording.
    """
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise missing_extra("ros", "writing bags and MCAP") from None
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    State, Header = types["sensor_msgs/msg/JointState"], types["std_msgs/msg/Header"]
    Time, Text = types["builtin_interfaces/msg/Time"], types["std_msgs/msg/String"]
    Numbers = types["std_msgs/msg/Float64MultiArray"]
    Layout = types["std_msgs/msg/MultiArrayLayout"]

    j, velocity = recording.joints, recording.velocity
    columns, page = to_columns(recording)
    prefix = {"A": "current", "N m": "torque"}.get(recording.signal_unit, "signal")
    prefixes = ("q", prefix) if velocity is None else ("q", "v", prefix)
    in_state = [f"{name}_{i + 1}" for name in prefixes for i in range(j)]
    extra_columns = [name for name in columns if name not in in_state]
    positions = {name: i for i, name in enumerate([*extra_columns, *in_state])}
    page["bag"] = {"columns": list(columns), "at": [positions[name] for name in columns]}
    names = recording.meta.get("joint_names") or [joint_name(i) for i in range(j)]
    start = int(recording.meta.get("start_time_ns", 0))
    stamps = start + np.round((recording.time - recording.time[0]) * 1e9).astype(np.int64)
    extra_values = np.column_stack([columns[name] for name in extra_columns])
    velocities = np.zeros((len(stamps), 0)) if velocity is None else velocity
    with Writer(bag, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {
            topic: writer.add_connection(topic, kind.__msgtype__, typestore=store)
            for topic, kind in (
                (META_TOPIC, Text),
                (STATE_TOPIC, State),
                (SAMPLES_TOPIC, Numbers),
            )
        }

        def put(topic: str, stamp: int, message: object) -> None:
            raw = store.serialize_cdr(message, message.__msgtype__)  # type: ignore[attr-defined]
            writer.write(connections[topic], stamp, raw)

        put(META_TOPIC, int(stamps[0]), Text(metadata_to_text(page)))
        layout = Layout([], 0)
        for i, stamp in enumerate(stamps.tolist()):
            header = Header(Time(stamp // 10**9, stamp % 10**9), "")
            numbers = (recording.position[i], velocities[i], recording.signal[i])
            state = State(header, list(names), *map(np.ascontiguousarray, numbers))
            put(STATE_TOPIC, stamp, state)
            put(SAMPLES_TOPIC, stamp, Numbers(layout, extra_values[i]))
