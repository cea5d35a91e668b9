"""ROS 2 joint states: by an installed rclpy where there is one, else by Cyclone DDS.

Effort on a joint_states topic can be anything (newton metres, amperes, torque without gravity), and
the order of the joints is the publisher's: the effort must be named, joints go by their names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from taufit.errors import WireError
from taufit.extras import missing_extra
from taufit.wire.source import EFFORTS, Block, Description, Gap

# A step this many times the usual one is a gap; publishers' clocks jitter.
_GAP = 2.5


@dataclass(frozen=True, slots=True)
class JointState:
    """One message.

    Attributes:
        time: Of its header [s]; 0 where the publisher sets none.
        names: Of the joints.
        position, velocity, effort: One each per joint, or empty.
    """

    time: float
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]


class Listener(Protocol):
    """A subscription."""

    name: str

    def take(self, seconds: float) -> list[JointState]:
        """Messages that arrive within `seconds`."""
        ...

    def close(self) -> None: ...


class Ros2JointStates:
    """Samples of a joint_states topic.

    Args:
        topic: Its name, e.g. /joint_states.
        effort: What its effort is, one of EFFORTS.
        joints: Names of the arm's joints from base to tip; the publisher's order where None.
        listener: To use instead of what is installed.
        give_up: Silence after which `read` raises [s].
    """

    def __init__(
        self,
        topic: str,
        effort: str | None,
        *,
        joints: Sequence[str] | None = None,
        listener: Listener | None = None,
        give_up: float = 30.0,
    ) -> None:
        if effort not in EFFORTS:
            raise WireError(
                f"a joint_states topic does not say what its effort is: give --effort, one of "
                f"{', '.join(EFFORTS)}."
            )
        if not topic.startswith("/"):
            raise WireError(f"a topic begins with a slash: ros2:/{topic}.")
        self.topic, self.effort, self.give_up = topic, effort, give_up
        self.gaps: list[Gap] = []
        self.duplicated = 0
        self.messages: list[str] = []
        self._asked = None if joints is None else tuple(joints)
        self._listener = listener
        self._waiting: list[JointState] = []
        self._names: tuple[str, ...] = ()
        self._fields: tuple[str, ...] = ()
        self._last = -np.inf
        self._step = 0.0
        self._stamped = True
        self._heard = time.monotonic()

    def connect(self) -> Description:
        """Subscribe; the first messages say which joints there are and how fast they come."""
        if self._listener is None:
            self._listener = _listener(self.topic)
        self.messages.append(f"{self.topic} is read with {self._listener.name}")
        end = time.monotonic() + 10.0
        while len(self._waiting) < 10:
            if time.monotonic() > end:
                self.close()
                raise WireError(
                    f"no message came on {self.topic} within 10 s, read with "
                    f"{self._listener.name}. Is it published, in this ROS_DOMAIN_ID? Publishers of "
                    "ROS 2 Kilted and newer (Fast DDS 3) are understood by their own rclpy only: "
                    "source ROS 2 and install taufit in its Python."
                )
            self._waiting += [m for m in self._listener.take(0.5) if m.position]
        first = self._waiting[0]
        self._names = self._order(first.names)
        if len(first.effort) != len(first.names):
            self.close()
            raise WireError(f"{self.topic} has no effort: there is no torque to record.")
        with_speed = len(first.velocity) == len(first.names)
        self._fields = ("position", "signal", *(("velocity",) if with_speed else ()))
        stamps = np.array([m.time for m in self._waiting])
        self._stamped = bool(np.all(np.diff(stamps) >= 0.0) and stamps[-1] > stamps[0])
        if not self._stamped:
            self.close()
            raise WireError(f"{self.topic}: its headers carry no usable time stamps.")
        steps = np.diff(stamps)
        self._step = float(np.median(steps[steps > 0.0]))
        sources = {"current": "motor_current"}
        return Description(
            joints=len(self._names),
            fields=self._fields,
            effort=self.effort,
            torque_source=sources.get(self.effort, "motor_torque"),
            rate_hz=round(1.0 / self._step, 3),
            meta={
                "source": f"ROS 2 {self.topic}",
                "read_with": self._listener.name,
                "joint_names": list(self._names),
            },
        )

    def read(self, seconds: float) -> Block | None:
        """Samples that arrive within `seconds`, or None."""
        assert self._listener is not None
        found, self._waiting = self._waiting, []
        if not found:
            found = self._listener.take(seconds)
        rows = [row for row in (self._row(m) for m in found) if row is not None]
        now = time.monotonic()
        if not rows:
            if now - self._heard > self.give_up:
                raise WireError(f"{self.topic} was silent for {now - self._heard:.0f} s.")
            return None
        self._heard = now
        kept = [row for row in rows if self._new(row[0])]
        if not kept:
            return None
        table = {name: np.array([row[1][name] for row in kept]) for name in self._fields}
        return Block(np.array([row[0] for row in kept]), table)

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    def _order(self, names: tuple[str, ...]) -> tuple[str, ...]:
        if self._asked is None:
            return names
        missing = [name for name in self._asked if name not in names]
        if missing:
            self.close()
            raise WireError(
                f"{self.topic} has no joint {', '.join(missing)}; it has {', '.join(names)}."
            )
        return self._asked

    def _row(self, message: JointState) -> tuple[float, Mapping[str, list[float]]] | None:
        """Time and values in the order of the joints; None for messages of other joints."""
        where = {name: i for i, name in enumerate(message.names)}
        if any(name not in where for name in self._names):
            return None
        at = [where[name] for name in self._names]
        given = {
            "position": message.position,
            "velocity": message.velocity,
            "signal": message.effort,
        }
        if any(len(given[name]) != len(message.names) for name in self._fields):
            return None
        return message.time, {name: [given[name][i] for i in at] for name in self._fields}

    def _new(self, stamp: float) -> bool:
        forward = stamp - self._last
        if forward <= 0.0:
            self.duplicated += 1
            return False
        if np.isfinite(self._last) and forward > _GAP * self._step:
            lost = round(forward / self._step) - 1
            self.gaps.append(Gap(float(self._last), stamp, lost, False, "messages missing"))
        self._last = stamp
        return True


def _listener(topic: str) -> Listener:
    """What is installed."""
    try:
        import rclpy  # noqa: F401
    except ImportError:
        pass
    else:
        return _Rclpy(topic)
    try:
        import cyclonedds  # noqa: F401
    except ImportError:
        instead = "source your ROS 2 installation and use its Python, which has rclpy"
        raise missing_extra("ros2", "reading ROS 2 topics", instead) from None
    return _Cyclone(topic)


class _Rclpy:
    """A subscription by ROS 2's own client library."""

    def __init__(self, topic: str) -> None:
        import rclpy
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from sensor_msgs.msg import JointState as Message

        self._rclpy = rclpy
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.name = f"rclpy ({rclpy.get_rmw_implementation_identifier()})"
        self._node = rclpy.create_node(f"taufit_{os.getpid()}", context=self._context)
        self._executor = rclpy.executors.SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._got: list[JointState] = []
        # A reliable reader hears reliable writers only: look at those there are.
        end = time.monotonic() + 3.0
        writers: list[Any] = []
        while not writers and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)
            writers = self._node.get_publishers_info_by_topic(topic)
        best_effort = ReliabilityPolicy.BEST_EFFORT
        soft = any(w.qos_profile.reliability == best_effort for w in writers)
        reliability = best_effort if soft else ReliabilityPolicy.RELIABLE
        profile = QoSProfile(depth=5000, reliability=reliability)
        self._node.create_subscription(Message, topic, self._take, profile)

    def _take(self, message: Any) -> None:
        stamp = message.header.stamp
        self._got.append(
            JointState(
                stamp.sec + 1e-9 * stamp.nanosec,
                tuple(message.name),
                tuple(message.position),
                tuple(message.velocity),
                tuple(message.effort),
            )
        )

    def take(self, seconds: float) -> list[JointState]:
        end = time.monotonic() + seconds
        while not self._got and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=max(0.0, end - time.monotonic()))
        # What else has arrived, without waiting.
        for _ in range(200):
            before = len(self._got)
            self._executor.spin_once(timeout_sec=0.0)
            if len(self._got) == before:
                break
        got, self._got = self._got, []
        return got

    def close(self) -> None:
        if self._context.ok():
            self._node.destroy_node()
            self._rclpy.shutdown(context=self._context)


class _Cyclone:
    """A subscription by Cyclone DDS, without a ROS installation."""

    name = "Cyclone DDS"

    def __init__(self, topic: str) -> None:
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
        from cyclonedds.domain import DomainParticipant
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        from taufit.wire.ros2_messages import joint_state_type, reliable, sensor_data

        domain = int(os.environ.get("ROS_DOMAIN_ID", "0"))
        self._participant = DomainParticipant(domain)
        name = Topic(self._participant, f"rt{topic}", joint_state_type())
        # Two readers: a reliable one loses nothing of reliable writers, the other hears the rest.
        self._readers = [
            DataReader(self._participant, name, qos=qos) for qos in (reliable(), sensor_data())
        ]
        self._waits = []
        anything = SampleState.Any | ViewState.Any | InstanceState.Any
        self._wait = WaitSet(self._participant)
        for reader in self._readers:
            condition = ReadCondition(reader, anything)
            self._wait.attach(condition)
            self._waits.append(condition)
        self._reliable = False

    def take(self, seconds: float) -> list[JointState]:
        from cyclonedds.util import duration

        self._wait.wait(duration(milliseconds=max(1, round(1e3 * seconds))))
        sure = [m for m in self._readers[0].take(N=5000) if hasattr(m, "effort")]
        other = [m for m in self._readers[1].take(N=5000) if hasattr(m, "effort")]
        self._reliable = self._reliable or bool(sure)
        return [_message(m) for m in (sure if self._reliable else other)]

    def close(self) -> None:
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
