"""Franka Robotics' control interface: bytes <-> values, and the source.

A client connects over TCP (port 1337) and gives the UDP port to which the robot sends its state at
1 kHz: packed, little-endian, single precision, numbered by the millisecond. Only the load is sent
to the robot, on request; nothing here moves it.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import WireError
from taufit.wire.datagrams import Datagrams
from taufit.wire.reconnection import ReconnectingSource
from taufit.wire.source import SampleBlock, SourceDescription
from taufit.wire.tcp_connection import TcpConnection

PORT = 1337
VERSION = 10
CONNECT, SET_LOAD, GET_MODEL = 0, 9, 11
HEADER = struct.Struct("<III")
_REQUEST, _ANSWER = struct.Struct("<HH"), struct.Struct("<BH")
# Mass, centre of mass and inertia by columns.
_LOAD = struct.Struct("<13d")

# Name and count of the numbers of a state, in order, after its 64-bit number.
FLOATS = (
    ("O_T_EE", 16),
    ("O_T_EE_d", 16),
    ("F_T_EE", 16),
    ("EE_T_K", 16),
    ("F_T_NE", 16),
    ("NE_T_EE", 16),
    ("m_ee", 1),
    ("I_ee", 9),
    ("F_x_Cee", 3),
    ("m_load", 1),
    ("I_load", 9),
    ("F_x_Cload", 3),
    ("elbow", 2),
    ("elbow_d", 2),
    ("tau_J", 7),
    ("tau_J_d", 7),
    ("dtau_J", 7),
    ("q", 7),
    ("q_d", 7),
    ("dq", 7),
    ("dq_d", 7),
    ("ddq_d", 7),
    ("joint_contact", 7),
    ("cartesian_contact", 6),
    ("joint_collision", 7),
    ("cartesian_collision", 6),
    ("tau_ext_hat_filtered", 7),
    ("O_F_ext_hat_K", 6),
    ("K_F_ext_hat_K", 6),
    ("O_dP_EE_d", 6),
    ("O_ddP_O", 3),
    ("elbow_c", 2),
    ("delbow_c", 2),
    ("ddelbow_c", 2),
    ("O_T_EE_c", 16),
    ("O_dP_EE_c", 6),
    ("O_ddP_EE_c", 6),
    ("theta", 7),
    ("dtheta", 7),
    ("accelerometer_top", 18),
    ("accelerometer_bottom", 18),
)
_COUNT = sum(count for _, count in FLOATS)
# Motion generator mode, controller mode, 41 errors twice, robot mode, success rate.
_TAIL = struct.Struct("<BB41?41?Bf")
STATE_BYTES = 8 + 4 * _COUNT + _TAIL.size
IDLE, _OTHER_CONTROLLER = 1, 3
FIELDS = {
    "position": "q",
    "velocity": "dq",
    "signal": "tau_J",
    "commanded_position": "q_d",
    "commanded_velocity": "dq_d",
    "commanded_acceleration": "ddq_d",
}


def state_dtype() -> np.dtype[np.void]:
    """NumPy type of one state."""
    parts: list[Any] = [("number", "<u8")]
    parts += [(name, "<f4", (count,)) for name, count in FLOATS]
    parts += [("modes", "u1", (2,)), ("errors", "u1", (82,)), ("robot_mode", "u1")]
    return np.dtype([*parts, ("success_rate", "<f4")])


def pack_state(number: int, values: Mapping[str, Sequence[float]], robot_mode: int = IDLE) -> bytes:
    """Encode one state, for a simulated robot; missing poses are identity, other values zero."""
    flat = np.zeros(_COUNT, "<f4")
    offset = 0
    for name, count in FLOATS:
        state_values = values.get(name)
        if state_values is not None:
            flat[offset : offset + count] = state_values
        elif "_T_" in name:
            flat[offset : offset + 16] = np.eye(4).ravel()
        offset += count
    tail = _TAIL.pack(0, _OTHER_CONTROLLER, *[False] * 82, robot_mode, 0.0)
    return struct.pack("<Q", number) + flat.tobytes() + tail


def read_states(datagrams: Sequence[bytes]) -> Array:
    """States of equal size as a structured array."""
    for data in datagrams:
        if len(data) != STATE_BYTES:
            raise WireError(
                f"a state of {len(data)} bytes; version {VERSION} of the interface has "
                f"{STATE_BYTES}."
            )
    return np.frombuffer(b"".join(datagrams), state_dtype())


def encode_message(kind: int, number: int, body: bytes = b"") -> bytes:
    """Encode a TCP message."""
    return HEADER.pack(kind, number, HEADER.size + len(body)) + body


def connect_request(udp_port: int, version: int = VERSION) -> bytes:
    """Encode a connection request."""
    return encode_message(CONNECT, 0, _REQUEST.pack(version, udp_port))


def read_connect_request(body: bytes) -> tuple[int, int]:
    """Version and UDP port of a connection request."""
    if len(body) < _REQUEST.size:
        raise WireError("a request to connect that is cut short.")
    version, port = _REQUEST.unpack_from(body)
    return version, port


def connect_reply(number: int, accepted: bool, version: int = VERSION) -> bytes:
    """Encode the robot's answer to a connection request."""
    return encode_message(CONNECT, number, _ANSWER.pack(0 if accepted else 1, version))


def load_request(
    number: int, mass: float, centre: Float[Array, " 3"], inertia: Float[Array, "3 3"]
) -> bytes:
    """Encode the load at the flange: mass, centre [m], inertia about the centre [kg m^2]."""
    body = _LOAD.pack(mass, *centre, *np.asarray(inertia).T.ravel())
    return encode_message(SET_LOAD, number, body)


def read_load_request(body: bytes) -> dict[str, list[float]]:
    """Fields of the state that a load request sets."""
    if len(body) < _LOAD.size:
        raise WireError("a load that is cut short.")
    values = list(_LOAD.unpack_from(body))
    return {"m_load": values[:1], "F_x_Cload": values[1:4], "I_load": values[4:]}


class FrankaState(ReconnectingSource):
    """Source of states of a Franka robot, which can be given its load.

    Args:
        host, port: Address of the robot's control interface.
        patience, give_up: Silence after which the connection is reopened, and after which `read`
            raises [s].
    """

    def __init__(
        self, host: str, *, port: int = PORT, patience: float = 2.0, give_up: float = 30.0
    ) -> None:
        super().__init__(host, 1000.0, patience=patience, give_up=give_up)
        self.port = port
        self._connection: TcpConnection | None = None
        self._udp: Datagrams | None = None

    def connect(self) -> SourceDescription:
        """Request the states."""
        self._open()
        return SourceDescription(
            joints=7,
            fields=tuple(FIELDS),
            torque_kind="torque",
            torque_source="joint_torque_sensor",
            rate_hz=1000.0,
            meta={"controller": "Franka", "interface_version": VERSION, "source": "Franka FCI"},
        )

    def read(self, seconds: float) -> SampleBlock | None:
        """States that arrive within `seconds`, or None; reopens a lost connection."""
        if self._udp is None and not self._reconnect(seconds):
            return None
        assert self._udp is not None
        # The system buffers about 0.1 s of states: read every few milliseconds.
        data = [d for d in self._udp.receive(seconds, gather=0.004) if self._is_state(d)]
        if not data:
            self._drop_if_silent("state")
            return None
        table = read_states(data)
        stamps, keep = self._order_samples(
            table["number"] * 1e-3, table["number"], "datagrams lost"
        )
        if not len(stamps):
            return None
        values = {field: table[name][keep].astype(float) for field, name in FIELDS.items()}
        status = {
            name: table[name][keep].astype(float)
            for name in ("robot_mode", "O_T_EE", "F_T_EE", "F_x_Cload")
        }
        status["m_load"] = table["m_load"][keep, 0].astype(float)
        return SampleBlock(stamps, values, status)

    def set_load(
        self, mass: float, centre: Float[Array, " 3"], inertia: Float[Array, "3 3"]
    ) -> None:
        """Tell the robot what it carries; WireError if it refuses."""
        if self._connection is None:
            raise WireError(f"{self.host} is not connected.")
        self._connection.send(load_request(1, mass, centre, inertia))
        answer = b""
        while len(answer) <= HEADER.size:
            answer += self._connection.receive(5.0)
        if answer[HEADER.size] != 0:
            raise WireError(f"{self.host} refuses a load of {mass:.3f} kg.")

    def close(self) -> None:
        """Close the connection."""
        for endpoint in (self._connection, self._udp):
            if endpoint is not None:
                endpoint.close()
        self._connection = self._udp = None

    def _is_state(self, data: bytes) -> bool:
        if len(data) == STATE_BYTES:
            return True
        text = f"a datagram of {len(data)} bytes is no state of interface version {VERSION}"
        self._note(text, once=True)
        return False

    def _open(self) -> None:
        self.close()
        self._connection = TcpConnection(self.host, self.port)
        # Listen on the address that is reachable from the robot.
        self._udp = Datagrams(self._connection.local_address)
        self._connection.send(connect_request(self._udp.port))
        answer = b""
        end = time.monotonic() + 5.0
        while len(answer) < HEADER.size + _ANSWER.size:
            remaining_s = end - time.monotonic()
            if remaining_s <= 0.0:
                raise WireError(f"{self._connection.name} does not answer.")
            answer += self._connection.receive(remaining_s)
        status, version = _ANSWER.unpack_from(answer, HEADER.size)
        if status != 0:
            self.close()
            raise WireError(
                f"{self.host} speaks version {version} of Franka's interface; taufit reads "
                f"version {VERSION} (robot system 5.9 or newer)."
            )
