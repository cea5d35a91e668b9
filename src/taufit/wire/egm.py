"""ABB's Externally Guided Motion, read only: protobuf bytes <-> values, and the source.

The robot sends a datagram per cycle (default 4 ms) to a UDP port of this computer. Joint angles are
in degrees. `torqueRef` is the controller's reference torque, not a measurement.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Mapping, Sequence

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError
from taufit.core.varint import encode_varint
from taufit.wire.datagrams import Datagrams
from taufit.wire.reconnection import ReconnectingSource
from taufit.wire.source import SampleBlock, SampleClock, SourceDescription

PORT = 6510
# Field numbers of an EgmRobot message.
_HEADER, _FEEDBACK, _PLANNED, _MOTORS, _RAPID, _TORQUE = 1, 2, 3, 4, 8, 14
_MAX_FIELDS = 1000


@dataclass(frozen=True, slots=True)
class EgmState:
    """Content of one EGM datagram.

    Attributes:
        number: Sequence number of the datagram.
        time: Controller time [s].
        position, planned: Measured and planned joint positions [rad].
        torque: Reference torque [N m]; empty if the controller sends none.
        motors_on, running: State of the drives and of the RAPID program.
    """

    number: int
    time: float
    position: tuple[float, ...]
    planned: tuple[float, ...]
    torque: tuple[float, ...]
    motors_on: bool = True
    running: bool = True


def encode_state(state: EgmState) -> bytes:
    """Encode a datagram, for a simulated robot."""
    seconds, micro = divmod(round(state.time * 1e6), 1_000_000)
    header = _integer_entry(1, state.number & 0xFFFFFFFF) + _integer_entry(
        2, round(state.time * 1e3) & 0xFFFFFFFF
    )
    header += _integer_entry(3, 2)
    clock = _integer_entry(1, seconds) + _integer_entry(2, micro)
    out = _bytes_entry(_HEADER, header)
    out += _bytes_entry(
        _FEEDBACK,
        _bytes_entry(1, _double_entries(_degrees(state.position))) + _bytes_entry(4, clock),
    )
    out += _bytes_entry(_PLANNED, _bytes_entry(1, _double_entries(_degrees(state.planned))))
    out += _bytes_entry(_MOTORS, _integer_entry(1, 1 if state.motors_on else 2))
    out += _bytes_entry(5, _integer_entry(1, 3))
    out += _bytes_entry(_RAPID, _integer_entry(1, 2 if state.running else 1))
    return out + (_bytes_entry(_TORQUE, _double_entries(state.torque)) if state.torque else b"")


def decode_state(data: bytes) -> EgmState:
    """Decode a datagram; raises a `WireError` if it is invalid."""
    message = _fields(data)
    header = _fields(_bytes_field(message, _HEADER))
    feedback = _fields(_bytes_field(message, _FEEDBACK))
    number, milliseconds = _integer_field(header, 1), _integer_field(header, 2)
    stamp = milliseconds * 1e-3
    if 4 in feedback:
        clock = _fields(_bytes_field(feedback, 4))
        stamp = _integer_field(clock, 1) + 1e-6 * _integer_field(clock, 2)
    position = _read_angles(_bytes_field(feedback, 1))
    planned: tuple[float, ...] = ()
    if _PLANNED in message:
        planned_fields = _fields(_bytes_field(message, _PLANNED))
        planned = _read_angles(_bytes_field(planned_fields, 1)) if 1 in planned_fields else ()
    torque = _read_doubles(_bytes_field(message, _TORQUE)) if _TORQUE in message else ()
    motors = _integer_field(_fields(_bytes_field(message, _MOTORS)), 1) if _MOTORS in message else 1
    rapid = _integer_field(_fields(_bytes_field(message, _RAPID)), 1) if _RAPID in message else 2
    return EgmState(number, stamp, position, planned, torque, motors == 1, rapid == 2)


def _integer_entry(field: int, value: int) -> bytes:
    return encode_varint(field << 3) + encode_varint(value)


def _bytes_entry(field: int, data: bytes) -> bytes:
    return encode_varint(field << 3 | 2) + encode_varint(len(data)) + data


def _double_entries(values: Sequence[float]) -> bytes:
    return b"".join(encode_varint(1 << 3 | 1) + struct.pack("<d", value) for value in values)


def _degrees(values: Sequence[float]) -> list[float]:
    return [math.degrees(value) for value in values]


_Fields = dict[int, list[int | bytes]]


def _fields(data: bytes) -> _Fields:
    """Fields of a protobuf message by number: integers, or bytes."""
    out: _Fields = {}
    offset = count = 0
    while offset < len(data):
        count += 1
        key, offset = _read_varint(data, offset)
        kind, value = key & 7, 0
        if kind == 0:
            number, offset = _read_varint(data, offset)
            out.setdefault(key >> 3, []).append(number)
            continue
        if kind in (1, 5):
            value = 8 if kind == 1 else 4
        elif kind == 2:
            value, offset = _read_varint(data, offset)
        if kind not in (1, 2, 5) or offset + value > len(data) or count > _MAX_FIELDS:
            raise WireError("a datagram that is no EGM message.")
        out.setdefault(key >> 3, []).append(data[offset : offset + value])
        offset += value
    return out


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(data) and shift < 64:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return value, offset
    raise WireError("a datagram that is no EGM message.")


def _bytes_field(fields: _Fields, number: int) -> bytes:
    value = fields.get(number, [0])[-1]
    if not isinstance(value, bytes):
        raise WireError(f"an EGM message without its field {number}.")
    return value


def _integer_field(fields: _Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int):
        raise WireError(f"an EGM message whose field {number} is no number.")
    return value


def _read_doubles(data: bytes) -> tuple[float, ...]:
    """Repeated doubles, packed or one by one."""
    out: list[float] = []
    for part in _fields(data).get(1, []):
        if not isinstance(part, bytes) or len(part) % 8 or len(part) > 8 * 64:
            raise WireError("joint values that are no doubles.")
        out += struct.unpack(f"<{len(part) // 8}d", part)
    if not all(math.isfinite(value) for value in out):
        raise WireError("joint values that are not finite.")
    return tuple(out)


def _read_angles(data: bytes) -> tuple[float, ...]:
    return tuple(math.radians(value) for value in _read_doubles(data))


class AbbEgm(ReconnectingSource):
    """Source of EGM datagrams of an ABB controller; nothing is sent back.

    Args:
        address: Address of this computer to listen on, reachable by the robot.
        port: UDP port the robot sends to.
        give_up: Silence after which `read` raises [s].
    """

    def __init__(
        self, address: str = "127.0.0.1", port: int = PORT, *, give_up: float = 30.0
    ) -> None:
        super().__init__("the robot", 250.0, patience=give_up, give_up=give_up)
        self.address, self.port = address, port
        self._udp: Datagrams | None = None
        self._pending: list[EgmState] = []
        self._joints = 0

    def connect(self) -> SourceDescription:
        """Wait for the first datagrams, which give the number of joints and the rate."""
        self._udp = Datagrams(self.address, self.port)
        self.port = self._udp.port
        self._last_received = time.monotonic()
        end = self._last_received + 10.0
        while len(self._pending) < 5:
            if time.monotonic() > end:
                self.close()
                raise WireError(
                    f"no EGM datagram came to UDP {self.address}:{self.port} within 10 s. Start "
                    "EGM on the robot, with this computer's address and port configured there."
                )
            self._pending += self._receive(0.5)
        first = self._pending[0]
        self._joints = len(first.position)
        if not first.torque:
            self.close()
            raise WireError(
                "this controller's EGM sends no torque reference; newer RobotWare does (field "
                "torqueRef)."
            )
        steps = np.diff([state.time for state in self._pending])
        rate = 1.0 / max(float(np.median(steps)), 1e-4)
        self._clock = SampleClock(round(rate))
        planned = ("commanded_position",) if first.planned else ()
        return SourceDescription(
            joints=self._joints,
            fields=("position", "signal", *planned),
            torque_kind="torque",
            torque_source="motor_torque",
            rate_hz=float(round(rate)),
            meta={
                "controller": "ABB",
                "source": "ABB EGM",
                "torque": "reference torque of the controller, not a measurement",
            },
        )

    def read(self, seconds: float) -> SampleBlock | None:
        """Samples of the datagrams that arrive within `seconds`, or None."""
        states, self._pending = self._pending, []
        if not states:
            states = self._receive(seconds)
        states = [s for s in states if len(s.position) == len(s.torque) == self._joints]
        if not states:
            self._give_up_if_silent()
            return None
        stamps, keep = self._order_samples(
            np.array([s.time for s in states]),
            np.array([s.number for s in states]),
            "datagrams lost",
        )
        if not len(stamps):
            return None
        values = {
            "position": np.array([s.position for s in states])[keep],
            "signal": np.array([s.torque for s in states])[keep],
        }
        if all(len(s.planned) == self._joints for s in states):
            values["commanded_position"] = np.array([s.planned for s in states])[keep]
        status: Mapping[str, np.ndarray] = {
            "motors_on": np.array([float(s.motors_on) for s in states])[keep]
        }
        return SampleBlock(stamps, values, status)

    def close(self) -> None:
        if self._udp is not None:
            self._udp.close()
            self._udp = None

    def _receive(self, seconds: float) -> list[EgmState]:
        if self._udp is None:
            return []
        out = []
        for data in self._udp.receive(seconds, gather=0.01):
            try:
                out.append(decode_state(data))
            except WireError as error:
                self._note(str(error), once=True)
        return out
