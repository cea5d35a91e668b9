"""Publishing of readings: one JSON object per line, or ROS 2 topics."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from taufit.core.files import back_up_file
from taufit.core.plain_data import to_plain_data

if TYPE_CHECKING:
    from taufit.live.reading import Reading
    from taufit.wire.ros.middleware import MessagePublisher

# Topics of `ros2`: external torque as joint states, and complete readings as JSON text.
EXTERNAL_TOPIC, READING_TOPIC = "/taufit/external_torque", "/taufit/reading"


class JsonLinesPublisher:
    """Publisher that writes every reading as a line of JSON, immediately.

    Args:
        stream: Output stream.
        owned: Whether `close` closes the stream.
    """

    def __init__(self, stream: TextIO, *, owned: bool = False) -> None:
        self._stream, self._owned = stream, owned

    def __call__(self, reading: Reading) -> None:
        """Write one reading."""
        self._stream.write(json.dumps(to_plain_data(reading.to_dict()), allow_nan=False) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the stream if it is owned."""
        if self._owned:
            self._stream.close()


class Ros2ReadingPublisher:
    """Publisher to ROS 2: external torque as joint states, complete readings as text."""

    def __init__(
        self,
        joints: Sequence[str],
        make_publisher: Callable[[str, str], MessagePublisher] | None = None,
    ) -> None:
        from taufit.wire.ros.middleware import message_publisher

        create = message_publisher if make_publisher is None else make_publisher
        self._joints = tuple(joints)
        self._external = create(EXTERNAL_TOPIC, "joint_state")
        self._text = create(READING_TOPIC, "text")

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
        """Close the topics."""
        self._external.close()
        self._text.close()


ReadingPublisher = JsonLinesPublisher | Ros2ReadingPublisher


def open_publisher(target: str, joints: Sequence[str]) -> ReadingPublisher:
    """Open a publisher: `-` for standard output, `ros2`, or a file."""
    if target == "-":
        return JsonLinesPublisher(sys.stdout)
    if target == "ros2":
        return Ros2ReadingPublisher(joints)
    back_up_file(target)
    return JsonLinesPublisher(Path(target).open("w", encoding="utf-8"), owned=True)
