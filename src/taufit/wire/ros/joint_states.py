"""ROS 2 joint states: by an installed rclpy where there is one, else by Cyclone DDS.

Effort on a joint_states topic can be anything (newton metres, amperes, torque without gravity), and
the order of the joints is the publisher's: the effort must be named, joints go by their names.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from taufit.core.errors import WireError
from taufit.wire.ros.middleware import JointState, JointStateSubscriber, joint_state_subscriber
from taufit.wire.source import EFFORTS, Block, Description, Gap

# A step this many times the usual one is a gap; publishers' clocks jitter.
_GAP = 2.5


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
        listener: JointStateSubscriber | None = None,
        give_up: float = 30.0,
    ) -> None:
        if effort not in EFFORTS:
            raise WireError(
                f"a joint_states topic does not say what its effort is: give --torque-kind, one of "
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
            self._listener = joint_state_subscriber(self.topic)
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
