"""Bags of ros2_control: DynamicJointState, state of a trajectory controller, effort of UR."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.diagnosis.prepare import apply_declared_torque_kind
from taufit.recording import read_recording
from taufit.recording.readers.bag_messages import effort_advice
from taufit.robot import read_robot

UR = tuple(f"{name}_joint" for name in
           ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"))  # fmt: skip
# As in control_msgs of Jazzy and of Humble; written here so that the reader's copy is checked.
NEW_STATE = ("reference", "feedback", "error", "output")
OLD_STATE = ("desired", "actual", "error", "output")


def values(rows=200, joints=6):
    time = 0.01 * np.arange(rows)
    q = np.sin(time[:, None] + np.arange(joints))
    return time, q, np.cos(time[:, None] + np.arange(joints)), 10.0 * q


def write(path, kind, *, fields=NEW_STATE, year=2026, names=UR, plain=False):
    """A bag with one topic, and optionally plain joint states beside it."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    value = "control_msgs/msg/InterfaceValue"
    store.register(get_types_from_msg("string[] interface_names\nfloat64[] values", value))
    head = "std_msgs/Header header\nstring[] joint_names\n"
    store.register(get_types_from_msg(
        head + "control_msgs/InterfaceValue[] interface_values",
        "control_msgs/msg/DynamicJointState",
    ))  # fmt: skip
    store.register(get_types_from_msg(
        head + "\n".join(f"trajectory_msgs/JointTrajectoryPoint {name}" for name in fields),
        "control_msgs/msg/JointTrajectoryControllerState",
    ))  # fmt: skip
    types = store.types
    start = int(np.datetime64(f"{year}-03-01", "s").astype(int)) * 10**9
    topics = {"dynamic": ("/dynamic_joint_states", "control_msgs/msg/DynamicJointState"),
              "controller": ("/controller/state",
                             "control_msgs/msg/JointTrajectoryControllerState"),
              "plain": ("/joint_states", "sensor_msgs/msg/JointState")}  # fmt: skip
    with Writer(path, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        chosen = [kind, *(["plain"] if plain else [])]
        links = {k: writer.add_connection(*topics[k], typestore=store) for k in chosen}
        for t, q, v, tau in zip(*values(), strict=True):
            ns = start + round(1e9 * t)
            stamp = types["builtin_interfaces/msg/Time"](ns // 10**9, ns % 10**9)
            header = types["std_msgs/msg/Header"](stamp, "")
            for k in chosen:
                name = topics[k][1]
                if k == "dynamic":
                    # Interfaces in another order than usual, with one that is no joint state.
                    entries = [types[value](["effort", "mode", "velocity", "position"],
                                            np.array([tau[j], 3.0, v[j], q[j]]))
                               for j in range(6)]  # fmt: skip
                    message = types[name](header, list(names), entries)
                elif k == "controller":
                    wait = types["builtin_interfaces/msg/Duration"](0, 0)
                    point = types["trajectory_msgs/msg/JointTrajectoryPoint"]
                    measured = point(q, v, np.zeros(0), tau, wait)
                    other = point(0 * q, 0 * v, np.zeros(0), 0 * tau, wait)
                    message = types[name](header, list(names), other, measured, other, other)
                else:
                    message = types[name](header, list(names), q, v, -tau)
                writer.write(links[k], ns, store.serialize_cdr(message, name))


@pytest.mark.parametrize(
    ("kind", "fields", "defined"),
    [("dynamic", NEW_STATE, True), ("dynamic", NEW_STATE, False), ("controller", NEW_STATE, True),
     ("controller", NEW_STATE, False), ("controller", OLD_STATE, True)],
)  # fmt: skip
def test_states_of_ros2_control_are_read(kind, fields, defined, tmp_path):
    pytest.importorskip("rosbags")
    write(tmp_path / "bag", kind, fields=fields)
    if not defined:
        # As in bags of ROS 2 Humble.
        with sqlite3.connect(next((tmp_path / "bag").glob("*.db3"))) as database:
            assert database.execute("DELETE FROM message_definitions").rowcount > 0
    recording = read_recording(tmp_path / "bag", torque_kind="torque")
    _, q, v, tau = values()
    np.testing.assert_array_equal(recording.position, q)
    np.testing.assert_array_equal(recording.velocity, v)
    np.testing.assert_array_equal(recording.signal, tau)
    assert tuple(recording.meta["joint_names"]) == UR


def test_plain_joint_states_come_first_unless_a_topic_is_named(tmp_path):
    pytest.importorskip("rosbags")
    write(tmp_path / "bag", "dynamic", plain=True)
    tau = values()[3]
    np.testing.assert_array_equal(
        read_recording(tmp_path / "bag", torque_kind="torque").signal, -tau
    )
    chosen = read_recording(tmp_path / "bag", torque_kind="torque", topic="/dynamic_joint_states")
    np.testing.assert_array_equal(chosen.signal, tau)
    with pytest.raises(RecordingError, match="/dynamic_joint_states, /joint_states"):
        read_recording(tmp_path / "bag", topic="/other")


@pytest.mark.parametrize(("year", "kind"), [(2026, "torque_without_gravity"), (2025, "current")])
def test_effort_of_universal_robots_is_proposed_by_its_date(year, kind, tmp_path):
    pytest.importorskip("rosbags")
    write(tmp_path / "bag", "dynamic", year=year)
    recording = read_recording(tmp_path / "bag")
    (finding,) = (f for f in recording.findings if f.kind == "effort_unit")
    assert f"--torque-kind {kind}" in str(finding)
    with pytest.raises(RecordingError, match=f"likely --torque-kind {kind}"):
        apply_declared_torque_kind(read_robot("ur5e"), [recording])


def test_other_arms_get_no_proposal():
    assert effort_advice(tuple(f"panda_joint{k}" for k in range(1, 8)), 2 * 10**18) == ""
    assert effort_advice(UR[:5], 2 * 10**18) == ""
