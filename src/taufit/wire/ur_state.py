"""Universal Robots' state messages, ports 30001 to 30003: bytes <-> values, no sockets.

30001 and 30002 send packages of sub-packages at 10 Hz; the kinematics package contains the
calibrated
Denavit-Hartenberg table of the robot. 30003 sends one flat table of doubles per step; its length
depends on the software, its beginning is common to all.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError

ROBOT_STATE, ROBOT_MESSAGE = 16, 20
MODE, JOINTS, KINEMATICS = 0, 1, 5
MAX_PACKAGE_BYTES = 1 << 16

_MODE = struct.Struct(">Q7?BBdddB")
_JOINT = struct.Struct(">3d4fB")
_DH = struct.Struct(">6I24dI")
_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">iB")

# Name and count of doubles of a 30003 packet, from byte 4 on.
REALTIME = (
    ("time", 1),
    ("target_q", 6),
    ("target_qd", 6),
    ("target_qdd", 6),
    ("target_current", 6),
    ("target_moment", 6),
    ("actual_q", 6),
    ("actual_qd", 6),
    ("actual_current", 6),
    ("control_current", 6),
    ("tool", 6),
    ("tcp_speed", 6),
    ("tcp_force", 6),
    ("tool_target", 6),
    ("tcp_speed_target", 6),
    ("digital_inputs", 1),
    ("joint_temperatures", 6),
    ("controller_timer", 1),
    ("test", 1),
    ("robot_mode", 1),
    ("joint_modes", 6),
    ("safety_mode", 1),
)
# Smallest packet of any controller, and sizes from which temperatures and modes are included
# [bytes].
MIN_PACKET_BYTES, WITH_TEMPERATURES, WITH_MODES = 540, 740, 820


@dataclass(slots=True)
class PackageParser:
    """Splits a byte stream into packages that begin with their size."""

    smallest: int = 5
    buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """Complete packages, size included."""
        self.buffer += data
        out: list[bytes] = []
        while len(self.buffer) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self.buffer)
            if not self.smallest <= size <= MAX_PACKAGE_BYTES:
                if out:
                    break
                raise WireError(f"a package of {size} bytes is none of this protocol.")
            if len(self.buffer) < size:
                break
            out.append(bytes(self.buffer[:size]))
            del self.buffer[:size]
        return out


def encode_package(kind: int, parts: Sequence[tuple[int, bytes]]) -> bytes:
    """Encode a package of sub-packages."""
    body = b"".join(_HEAD.pack(_HEAD.size + len(data), number) + data for number, data in parts)
    return _HEAD.pack(_HEAD.size + len(body), kind) + body


def read_package(data: bytes) -> tuple[int, dict[int, bytes]]:
    """Kind and sub-packages; a message (not a state) has none."""
    if len(data) < _HEAD.size:
        raise WireError("a package without a head.")
    _, kind = _HEAD.unpack_from(data)
    parts: dict[int, bytes] = {}
    offset = _HEAD.size
    while kind == ROBOT_STATE and offset < len(data):
        if len(data) - offset < _HEAD.size:
            raise WireError("a package that ends inside a sub-package.")
        size, number = _HEAD.unpack_from(data, offset)
        if size < _HEAD.size or offset + size > len(data):
            raise WireError(f"a sub-package of {size} bytes in a package of {len(data)}.")
        parts[number] = data[offset + _HEAD.size : offset + size]
        offset += size
    return kind, parts


def encode_modes(
    time: float, robot_mode: int, flags: Mapping[str, bool], fraction: float, scaling: float
) -> bytes:
    """Encode the sub-package of modes; flags: power, emergency, protective, running, paused."""
    flag = flags.get
    return _MODE.pack(
        int(time * 1e6),
        True,
        True,
        flag("power", False),
        flag("emergency", False),
        flag("protective", False),
        flag("running", False),
        flag("paused", False),
        robot_mode,
        0,
        fraction,
        scaling,
        1.0,
        0,
    )


def encode_joints(rows: Sequence[Sequence[float]]) -> bytes:
    """Encode the sub-package of joints: position, target, speed, current, voltage, two
    temperatures, mode.
    """
    return b"".join(_JOINT.pack(*row[:7], int(row[7])) for row in rows)


def encode_version(time: float, name: str, version: tuple[int, int, int, int]) -> bytes:
    """Encode the greeting message of a controller."""
    major, minor, fix, build = version
    text = name.encode()
    body = struct.pack(">QbBB", int(time * 1e6), -2, 3, len(text)) + text
    body += struct.pack(">BBii", major & 0xFF, minor & 0xFF, fix, build) + b"\0"
    return _HEAD.pack(_HEAD.size + len(body), ROBOT_MESSAGE) + body


@dataclass(frozen=True, slots=True, eq=False)
class DhTable:
    """Denavit-Hartenberg table of a robot from its controller.

    Attributes:
        theta, a, d, alpha: Parameters per joint [rad, m].
        calibrated: Whether it was measured on this robot.
    """

    theta: Float[Array, " 6"]
    a: Float[Array, " 6"]
    d: Float[Array, " 6"]
    alpha: Float[Array, " 6"]
    calibrated: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a recording's provenance."""
        return {
            **{name: getattr(self, name).tolist() for name in ("theta", "a", "d", "alpha")},
            "calibrated": self.calibrated,
        }


def encode_kinematics(table: DhTable) -> bytes:
    """Encode the sub-package of the Denavit-Hartenberg table."""
    sums = [int(abs(x) * 1e6) & 0xFFFFFFFF for x in table.a]
    rows = np.concatenate([table.theta, table.a, table.d, table.alpha])
    return _DH.pack(*sums, *rows.tolist(), 0 if table.calibrated else 2)


def read_kinematics(data: bytes) -> DhTable:
    """Inverse of `kinematics_data`."""
    if len(data) != _DH.size:
        raise WireError(f"a kinematics package of {len(data)} bytes; expected {_DH.size}.")
    values = _DH.unpack(data)
    rows = np.array(values[6:30], float).reshape(4, 6)
    if not np.all(np.isfinite(rows)):
        raise WireError("the controller's kinematics table is not finite.")
    theta, a, d, alpha = rows
    return DhTable(theta, a, d, alpha, values[30] == 0)


def realtime_size(version: tuple[int, int, int, int]) -> int:
    """Size of a 30003 packet of a software version [bytes]."""
    if version[0] >= 5:
        return 1220 if version[:2] >= (5, 10) else 1116
    return 1108 if version[:2] >= (3, 5) else 1060


def encode_realtime(values: Mapping[str, Any], size: int) -> bytes:
    """Encode a 30003 packet; missing values are zero."""
    flat: list[float] = []
    for name, count in REALTIME:
        value = values.get(name, 0.0 if count == 1 else [0.0] * count)
        flat.extend([value] if count == 1 else value)
    total = (size - 4) // 8
    flat = (flat + [0.0] * total)[:total]
    return struct.pack(f">i{total}d", size, *flat)


def read_realtime(packets: Sequence[bytes]) -> dict[str, Array]:
    """Columns of packets of equal size; fields beyond the end are omitted."""
    sizes = {len(packet) for packet in packets}
    if len(sizes) != 1:
        raise WireError(f"the size of the packets changed mid-stream: {sorted(sizes)} bytes.")
    size = sizes.pop()
    if size < MIN_PACKET_BYTES or (size - 4) % 8:
        raise WireError(f"a packet of {size} bytes is none of a real-time port.")
    table = np.frombuffer(b"".join(packets), np.uint8).reshape(len(packets), size)[:, 4:]
    numbers = np.ascontiguousarray(table).view(">f8").astype(float)
    out: dict[str, Array] = {}
    offset = 0
    for name, count in REALTIME:
        if offset + count > numbers.shape[1]:
            break
        out[name] = numbers[:, offset] if count == 1 else numbers[:, offset : offset + count]
        offset += count
    return out
