"""ROS 2 topics with Cyclone DDS, without a ROS installation."""

from __future__ import annotations

import os
import time
from typing import Any, cast

from taufit.core.errors import WireError
from taufit.wire.ros.middleware import JointState, Trajectory


def _participant() -> Any:
    from cyclonedds.domain import DomainParticipant

    text = os.environ.get("ROS_DOMAIN_ID", "0")
    if not text.isdigit():
        raise WireError(f"ROS_DOMAIN_ID is {text!r}, expected a number.")
    return DomainParticipant(int(text))


class CycloneJointStateSubscriber:
    """Subscriber of joint states."""

    name = "Cyclone DDS"

    def __init__(self, topic: str) -> None:
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        from taufit.wire.ros.messages import JointStateMessage, reliable, sensor_data

        self._participant = _participant()
        name = Topic(self._participant, f"rt{topic}", JointStateMessage)
        # Two readers: one for reliable publishers, one for best-effort publishers.
        self._readers = [
            DataReader(self._participant, name, qos=qos) for qos in (reliable(), sensor_data())
        ]
        self._waits = []
        any_state = SampleState.Any | ViewState.Any | InstanceState.Any
        self._wait = WaitSet(self._participant)
        for reader in self._readers:
            condition = ReadCondition(reader, any_state)
            self._wait.attach(condition)
            self._waits.append(condition)
        self._reliable = False

    def take(self, seconds: float) -> list[JointState]:
        """Messages received within `seconds`."""
        from cyclonedds.util import duration

        self._wait.wait(duration(milliseconds=max(1, round(1e3 * seconds))))
        reliable_messages = [m for m in self._readers[0].take(N=5000) if hasattr(m, "effort")]
        best_effort_messages = [m for m in self._readers[1].take(N=5000) if hasattr(m, "effort")]
        self._reliable = self._reliable or bool(reliable_messages)
        return [
            _message(m) for m in (reliable_messages if self._reliable else best_effort_messages)
        ]

    def close(self) -> None:
        """Unsubscribe."""
        self._readers.clear()
        self._waits.clear()


def _message(m: Any) -> JointState:
    return JointState(
        m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec,
        tuple(m.name),
        tuple(m.position),
        tuple(m.velocity),
        tuple(m.effort),
    )


def read_latched_text(topic: str, seconds: float) -> str | None:
    """Latched text of a topic (transient local); None if there is none within `seconds`."""
    from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic
    from cyclonedds.util import duration

    from taufit.wire.ros.messages import StringMessage, latched_qos

    participant = _participant()
    name: Any = Topic(participant, f"rt{topic}", StringMessage)
    reader: Any = DataReader(participant, name, qos=latched_qos())
    wait = WaitSet(participant)
    any_state = SampleState.Any | ViewState.Any | InstanceState.Any
    wait.attach(ReadCondition(reader, any_state))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wait.wait(duration(milliseconds=100))
        texts = [m.data for m in reader.take(N=10) if hasattr(m, "data")]
        if texts:
            return str(texts[-1])
    return None


class CycloneTrajectoryPublisher:
    """Publisher of joint trajectories."""

    name = "Cyclone DDS"

    def __init__(self, topic: str) -> None:
        from cyclonedds.pub import DataWriter
        from cyclonedds.topic import Topic

        from taufit.wire.ros.messages import JointTrajectoryMessage, reliable

        self._participant = _participant()
        name = Topic(self._participant, f"rt{topic}", JointTrajectoryMessage)
        self._writer: Any = DataWriter(self._participant, name, qos=reliable())

    def wait_for_subscriber(self, seconds: float) -> bool:
        """Whether there is a subscriber within `seconds`."""
        end = time.monotonic() + seconds
        while not self._writer.get_matched_subscriptions():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def send(self, trajectory: Trajectory) -> None:
        """Publish a trajectory."""
        from taufit.wire.ros.messages import (
            DurationMessage,
            Header,
            JointTrajectoryMessage,
            JointTrajectoryPoint,
            Time,
        )

        points: Any = [
            JointTrajectoryPoint(
                trajectory.position[i].tolist(),
                trajectory.velocity[i].tolist(),
                trajectory.acceleration[i].tolist(),
                cast(Any, []),
                DurationMessage(int(t), int((t - int(t)) * 1e9)),
            )
            for i, t in enumerate(trajectory.time.tolist())
        ]
        header, names = Header(Time(0, 0), ""), cast(Any, list(trajectory.names))
        self._writer.write(JointTrajectoryMessage(header, names, points))

    def close(self) -> None:
        """Remove the publisher."""
        self._writer = None


class CycloneMessagePublisher:
    """Publisher of joint states or text."""

    name = "Cyclone DDS"

    def __init__(self, topic: str, kind: str) -> None:
        from cyclonedds.pub import DataWriter
        from cyclonedds.topic import Topic

        from taufit.wire.ros.messages import JointStateMessage, StringMessage, reliable

        self._participant = _participant()
        types: dict[str, Any] = {"joint_state": JointStateMessage, "text": StringMessage}
        name: Any = Topic(self._participant, f"rt{topic}", types[kind])
        self._writer: Any = DataWriter(self._participant, name, qos=reliable())

    def send(self, message: JointState | str) -> None:
        """Publish a message."""
        from taufit.wire.ros.messages import Header, JointStateMessage, StringMessage, Time

        if isinstance(message, str):
            self._writer.write(StringMessage(message))
            return
        seconds = int(message.time)
        stamp = Time(cast(Any, seconds), cast(Any, int((message.time - seconds) * 1e9)))
        parts = (message.names, message.position, message.velocity, message.effort)
        arrays: Any = [list(part) for part in parts]
        self._writer.write(JointStateMessage(Header(stamp, ""), *arrays))

    def close(self) -> None:
        """Remove the publisher."""
        self._writer = None
