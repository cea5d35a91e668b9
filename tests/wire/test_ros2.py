"""ROS 2 joint states: joints by name, effort by word, and a real node where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from taufit.core.errors import WireError
from taufit.wire.recorder import record
from taufit.wire.ros import JointState, Ros2JointStates


class Fake:
    """A subscription that was recorded."""

    name = "a tape"

    def __init__(self, messages):
        self.messages = list(messages)

    def take(self, seconds):
        out, self.messages = self.messages[:37], self.messages[37:]
        return out

    def close(self):
        pass


def messages(numbers, names=("wrist", "elbow", "shoulder"), rate=500.0):
    for k in numbers:
        order = [("shoulder", "elbow", "wrist").index(name) for name in names]
        values = [1.0 + 0.01 * k, 2.0 + 0.02 * k, 3.0 + 0.03 * k]
        row = tuple(values[i] for i in order)
        yield JointState(50.0 + k / rate, names, row, row, tuple(10 * x for x in row))


def test_joints_go_by_name_and_nothing_is_lost(tmp_path):
    source = Ros2JointStates(
        "/js",
        "torque",
        joints=("shoulder", "elbow", "wrist"),
        subscriber=Fake(
            [*messages(range(300)), *messages(range(300, 900), ("elbow", "shoulder", "wrist"))]
        ),
    )
    done = record(source, tmp_path / "r.parquet", seconds=899 / 500 - 1e-6)
    assert (done.samples, done.lost, done.duplicated) == (900, 0, 0)
    k = np.arange(900)
    np.testing.assert_allclose(done.recording.position[:, 0], 1.0 + 0.01 * k)
    np.testing.assert_allclose(done.recording.signal[:, 2], 30.0 + 0.3 * k)
    assert done.recording.meta["joint_names"] == ["shoulder", "elbow", "wrist"]
    assert done.recording.meta["read_with"] == "a tape"


def test_gaps_and_repetitions_are_counted():
    numbers = [*range(20), *range(30, 50), 49, *range(50, 60)]
    source = Ros2JointStates("/js", "current", subscriber=Fake(messages(numbers)))
    assert source.connect().signal_unit == "A"
    while source.read(0.0) is not None:
        pass
    assert [gap.lost for gap in source.gaps] == [10] and source.duplicated == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(torque_kind=None), "what its effort is"),
        (dict(torque_kind="force"), "torque_without_gravity"),
        (dict(topic="js"), "slash"),
        (dict(joints=("hip",)), "no joint hip; it has wrist"),
    ],
)
def test_what_is_missing_is_asked_for(change, says):
    settings = {
        "topic": "/js",
        "torque_kind": "torque",
        "subscriber": Fake(messages(range(50))),
        **change,
    }
    with pytest.raises(WireError, match=says):
        Ros2JointStates(settings.pop("topic"), settings.pop("torque_kind"), **settings).connect()


def test_a_topic_without_effort_is_refused():
    bare = [JointState(m.time, m.names, m.position, (), ()) for m in messages(range(50))]
    with pytest.raises(WireError, match="no effort"):
        Ros2JointStates("/js", "torque", subscriber=Fake(bare)).connect()


PUBLISHER = """
import sys, time, rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
rclpy.init()
node = rclpy.create_node("driver")
publisher = node.create_publisher(JointState, "/joint_states", QoSProfile(depth=1000))
end = time.time() + 20
while publisher.get_subscription_count() == 0 and time.time() < end:
    rclpy.spin_once(node, timeout_sec=0.05)
time.sleep(1.0)
message = JointState()
message.name = ["a", "b"]
begun = time.perf_counter()
for k in range(3000):
    message.header.stamp.sec, message.header.stamp.nanosec = 100 + k // 500, (k % 500) * 2000000
    message.position = message.velocity = message.effort = [float(k), float(-k)]
    publisher.publish(message)
    time.sleep(max(0.0, begun + (k + 1) / 500 - time.perf_counter()))
time.sleep(1.0)
"""


@pytest.mark.parametrize("way", ["cyclonedds", "rclpy"])
def test_a_real_node_is_recorded_without_loss(tmp_path, way, ros2_namespace):
    python, reader, run = ros2_namespace(way)
    (tmp_path / "publisher.py").write_text(PUBLISHER)
    script = (
        f"{python} publisher.py >publisher.log 2>&1 & "
        f"{reader} -m taufit record ros2:/joint_states --torque-kind torque --seconds 4 "
        "-o r.parquet --json; code=$?; wait; exit $code"
    )
    ran = run(script, tmp_path)
    assert ran.returncode == 0, ran.stderr[-2000:]
    page = json.loads(ran.stdout)
    assert (page["lost"], page["duplicated"]) == (0, 0) and page["samples"] >= 2001
    assert way[:5] in page["messages"][0].lower().replace(" ", "")


LATCHED = """
import threading, time
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic
from taufit.wire.ros.cyclone_dds import _participant, read_latched_text
from taufit.wire.ros.messages import StringMessage, latched_qos
participant = _participant()
writer = DataWriter(participant, Topic(participant, "rt/robot_description", StringMessage),
                    qos=latched_qos())
writer.write(StringMessage("<robot name='arm'/>"))
time.sleep(0.2)
print(read_latched_text("/robot_description", 5.0))
print(read_latched_text("/nobody", 0.3))
"""


def test_a_description_published_earlier_is_read(tmp_path):
    pytest.importorskip("cyclonedds")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"]).returncode:
        pytest.skip("DDS listens on all interfaces; no network namespace can be made here")
    (tmp_path / "latched.py").write_text(LATCHED)
    ran = subprocess.run(
        ["unshare", "-n", "sh", "-c", f"ip link set lo up; {sys.executable} latched.py"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "CYCLONEDDS_URI": LOOPBACK},
    )
    assert ran.stdout.splitlines() == ["<robot name='arm'/>", "None"], ran.stderr[-1000:]


LOOPBACK = (
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address='127.0.0.1'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto"
    "</ParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers></Discovery></Domain>"
    "</CycloneDDS>"
)
