"""Source of ROS 2 joint states, with rclpy if installed, else Cyclone DDS.

Effort on a joint_states topic may be torque, current or torque without gravity, and the joint order
is
the publisher's: the torque kind must be given, joints are selected by name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from taufit.core.errors import WireError
from taufit.wire.ros.middleware import JointState, JointStateSubscriber, joint_state_subscriber
from taufit.wire.source import TORQUE_KINDS, Gap, SampleBlock, SourceDescription

# Steps above this multiple of the median step are gaps.
_GAP_STEPS = 2.5


class Ros2JointStates:
    """Source of samples of a joint_states topic.

    Args:
        topic: Topic name, e.g. /joint_states.
        torque_kind: Kind of its effort, one of TORQUE_KINDS.
        joints: Joint names from base to tip; None for the publisher's order.
        subscriber: Subscriber to use; default by installed middleware.
        give_up: Silence after which `read` raises [s].
    """

    def __init__(
        self,
        topic: str,
        torque_kind: str | None,
        *,
        joints: Sequence[str] | None = None,
        subscriber: JointStateSubscriber | None = None,
        give_up: float = 30.0,
    ) -> None:
        if torque_kind not in TORQUE_KINDS:
            raise WireError(
                f"a joint_states topic does not say what its effort is: give --torque-kind, one of "
                f"{', '.join(TORQUE_KINDS)}."
            )
        if not topic.startswith("/"):
            raise WireError(f"a topic begins with a slash: ros2:/{topic}.")
        self.topic, self.torque_kind, self.give_up = topic, torque_kind, give_up
        self.gaps: list[Gap] = []
        self.duplicated = 0
        self.messages: list[str] = []
        self._requested_names = None if joints is None else tuple(joints)
        self._subscriber = subscriber
        self._pending: list[JointState] = []
        self._names: tuple[str, ...] = ()
        self._fields: tuple[str, ...] = ()
        self._last = -np.inf
        self._step = 0.0
        self._has_stamps = True
        self._last_received = time.monotonic()

    def connect(self) -> SourceDescription:
        """Subscribe; the first messages give joints and rate."""
        if self._subscriber is None:
            self._subscriber = joint_state_subscriber(self.topic)
        self.messages.append(f"{self.topic} is read with {self._subscriber.name}")
        end = time.monotonic() + 10.0
        while len(self._pending) < 10:
            if time.monotonic() > end:
                self.close()
                raise WireError(
                    f"no message came on {self.topic} within 10 s, read with "
                    f"{self._subscriber.name}. Is it published, in this ROS_DOMAIN_ID? Publishers "
                    "of "
                    "ROS 2 Kilted and newer (Fast DDS 3) are understood by their own rclpy only: "
                    "source ROS 2 and install taufit in its Python."
                )
            self._pending += [m for m in self._subscriber.take(0.5) if m.position]
        first = self._pending[0]
        self._names = self._joint_order(first.names)
        if len(first.effort) != len(first.names):
            self.close()
            raise WireError(f"{self.topic} has no effort: there is no torque to record.")
        has_velocity = len(first.velocity) == len(first.names)
        self._fields = ("position", "signal", *(("velocity",) if has_velocity else ()))
        stamps = np.array([m.time for m in self._pending])
        self._has_stamps = bool(np.all(np.diff(stamps) >= 0.0) and stamps[-1] > stamps[0])
        if not self._has_stamps:
            self.close()
            raise WireError(f"{self.topic}: its headers carry no usable time stamps.")
        steps = np.diff(stamps)
        self._step = float(np.median(steps[steps > 0.0]))
        sources = {"current": "motor_current"}
        return SourceDescription(
            joints=len(self._names),
            fields=self._fields,
            torque_kind=self.torque_kind,
            torque_source=sources.get(self.torque_kind, "motor_torque"),
            rate_hz=round(1.0 / self._step, 3),
            meta={
                "source": f"ROS 2 {self.topic}",
                "read_with": self._subscriber.name,
                "joint_names": list(self._names),
            },
        )

    def read(self, seconds: float) -> SampleBlock | None:
        """Samples that arrive within `seconds`, or None."""
        assert self._subscriber is not None
        messages, self._pending = self._pending, []
        if not messages:
            messages = self._subscriber.take(seconds)
        rows = [row for row in (self._row(m) for m in messages) if row is not None]
        current_time = time.monotonic()
        if not rows:
            if current_time - self._last_received > self.give_up:
                raise WireError(
                    f"{self.topic} was silent for {current_time - self._last_received:.0f} s."
                )
            return None
        self._last_received = current_time
        new_rows = [row for row in rows if self._is_new(row[0])]
        if not new_rows:
            return None
        table = {name: np.array([row[1][name] for row in new_rows]) for name in self._fields}
        return SampleBlock(np.array([row[0] for row in new_rows]), table)

    def close(self) -> None:
        if self._subscriber is not None:
            self._subscriber.close()

    def _joint_order(self, names: tuple[str, ...]) -> tuple[str, ...]:
        if self._requested_names is None:
            return names
        missing = [name for name in self._requested_names if name not in names]
        if missing:
            self.close()
            raise WireError(
                f"{self.topic} has no joint {', '.join(missing)}; it has {', '.join(names)}."
            )
        return self._requested_names

    def _row(self, message: JointState) -> tuple[float, Mapping[str, list[float]]] | None:
        """Time and values in joint order; None for messages of other joints."""
        name_index = {name: i for i, name in enumerate(message.names)}
        if any(name not in name_index for name in self._names):
            return None
        indices = [name_index[name] for name in self._names]
        fields = {
            "position": message.position,
            "velocity": message.velocity,
            "signal": message.effort,
        }
        if any(len(fields[name]) != len(message.names) for name in self._fields):
            return None
        return message.time, {name: [fields[name][i] for i in indices] for name in self._fields}

    def _is_new(self, stamp: float) -> bool:
        forward = stamp - self._last
        if forward <= 0.0:
            self.duplicated += 1
            return False
        if np.isfinite(self._last) and forward > _GAP_STEPS * self._step:
            lost = round(forward / self._step) - 1
            self.gaps.append(Gap(float(self._last), stamp, lost, False, "messages missing"))
        self._last = stamp
        return True
