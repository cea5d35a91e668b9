"""Readings for other programs: one JSON object per line, or ROS 2 topics."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from taufit.core.plain_data import to_plain_data

if TYPE_CHECKING:
    from taufit.live.reading import Reading
    from taufit.wire.ros.middleware import MessagePublisher

# What `ros2` publishes: the external torque as joint states, and everything as JSON text.
EXTERNAL_TOPIC, READING_TOPIC = "/taufit/external_torque", "/taufit/reading"


class JsonLines:
    """A sink that writes every reading as a line, at once.

    Args:
        stream: Where to; closed at the end where it is a file of its own.
    """

    def __init__(self, stream: TextIO, *, owned: bool = False) -> None:
        self._stream, self._owned = stream, owned

    def __call__(self, reading: Reading) -> None:
        """Write one reading."""
        self._stream.write(json.dumps(to_plain_data(reading.to_dict()), allow_nan=False) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """No more will come."""
        if self._owned:
            self._stream.close()


class Ros2Topics:
    """A sink that publishes every reading: external torque as joint states, all of it as text."""

    def __init__(
        self, joints: Sequence[str], speaker: Callable[[str, str], MessagePublisher] | None = None
    ) -> None:
        from taufit.wire.ros.middleware import message_publisher

        make = message_publisher if speaker is None else speaker
        self._joints = tuple(joints)
        self._external = make(EXTERNAL_TOPIC, "joint_state")
        self._text = make(READING_TOPIC, "text")

    def __call__(self, reading: Reading) -> None:
        """Publish one reading."""
        from taufit.wire.ros.middleware import JointState

        def numbers(values: object) -> tuple[float, ...]:
            return tuple(float(x) for x in values)  # type: ignore[attr-defined]

        self._external.send(
            JointState(
                float(reading.time),
                self._joints,
                numbers(reading.position),
                numbers(reading.velocity),
                numbers(reading.external),
            )
        )
        self._text.send(json.dumps(to_plain_data(reading.to_dict()), allow_nan=False))

    def close(self) -> None:
        """Leave the topics."""
        self._external.close()
        self._text.close()


Publisher = JsonLines | Ros2Topics


def publisher(where: str, joints: Sequence[str]) -> Publisher:
    """The sink that a word names: `-` for standard output, `ros2`, or a file."""
    if where == "-":
        return JsonLines(sys.stdout)
    if where == "ros2":
        return Ros2Topics(joints)
    return JsonLines(Path(where).open("w", encoding="utf-8"), owned=True)
