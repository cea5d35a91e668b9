"""RTDE version 2, Universal Robots' data exchange (port 30004): bytes <-> values, no sockets.

Big-endian. A frame is `u16 size, u8 kind` and a body; the body of a data frame is a recipe number
and
the packed values of that recipe.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError

HEADER = struct.Struct(">HB")
VERSION = 2
# Kinds of frames.
PROTOCOL, URCONTROL = ord("V"), ord("v")
OUTPUTS, INPUTS, DATA = ord("O"), ord("I"), ord("U")
START, PAUSE, TEXT = ord("S"), ord("P"), ord("M")
KINDS = (PROTOCOL, URCONTROL, OUTPUTS, INPUTS, DATA, START, PAUSE, TEXT)

NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
# struct format, NumPy type and count of every RTDE type.
TYPES: dict[str, tuple[str, str, int]] = {
    "BOOL": ("?", "?", 1),
    "UINT8": ("B", "u1", 1),
    "UINT32": ("I", ">u4", 1),
    "UINT64": ("Q", ">u8", 1),
    "INT32": ("i", ">i4", 1),
    "DOUBLE": ("d", ">f8", 1),
    "VECTOR3D": ("3d", ">f8", 3),
    "VECTOR6D": ("6d", ">f8", 6),
    "VECTOR6INT32": ("6i", ">i4", 6),
    "VECTOR6UINT32": ("6I", ">u4", 6),
}
# Largest size of a name list accepted by controllers [bytes].
MAX_LIST_BYTES = 2048


def frame(kind: int, body: bytes = b"") -> bytes:
    """Encode a frame."""
    if len(body) > 0xFFFF - HEADER.size:
        raise WireError(f"a frame of {len(body)} bytes is longer than the protocol allows.")
    return HEADER.pack(HEADER.size + len(body), kind) + body


@dataclass(slots=True)
class FrameParser:
    """Splits a byte stream into frames.

    Invalid frames (size below the header's, unknown kind) raise: the stream cannot be
    resynchronised.
    """

    buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Kind and body of every complete frame."""
        self.buffer += data
        out: list[tuple[int, bytes]] = []
        offset = 0
        try:
            while len(self.buffer) - offset >= HEADER.size:
                size, kind = HEADER.unpack_from(self.buffer, offset)
                if size < HEADER.size or kind not in KINDS:
                    if out:
                        # Return the frames before; the next call starts here and raises.
                        break
                    raise WireError(
                        f"not RTDE: a frame of {size} bytes and kind {kind}; expected one of "
                        f"{', '.join(chr(k) for k in KINDS)}."
                    )
                if len(self.buffer) - offset < size:
                    break
                out.append((kind, bytes(self.buffer[offset + HEADER.size : offset + size])))
                offset += size
        finally:
            del self.buffer[:offset]
        return out


@dataclass(frozen=True, slots=True)
class Recipe:
    """Values of a data frame, in order.

    Attributes:
        number: Recipe number, 1 to 255.
        names: Variable names.
        types: RTDE type of each variable.
    """

    number: int
    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def size(self) -> int:
        """Size of a data frame's body, recipe number included [bytes]."""
        return 1 + struct.calcsize(self.format)

    @property
    def format(self) -> str:
        return ">" + "".join(TYPES[kind][0] for kind in self.types)

    @property
    def dtype(self) -> np.dtype[np.void]:
        parts = [("recipe", "u1")]
        for name, kind in zip(self.names, self.types, strict=True):
            _, letter, count = TYPES[kind]
            parts.append((name, letter, (count,)) if count > 1 else (name, letter))  # type: ignore[arg-type]
        return np.dtype(parts)

    def pack(self, values: Mapping[str, Any]) -> bytes:
        """Encode the body of a data frame."""
        flat: list[Any] = [self.number]
        for name, kind in zip(self.names, self.types, strict=True):
            value = values[name]
            flat.extend(value) if TYPES[kind][2] > 1 else flat.append(value)
        return struct.pack(">B" + self.format[1:], *flat)

    def unpack(self, body: bytes) -> dict[str, Any]:
        """Values of one data frame by name."""
        if len(body) != self.size:
            raise WireError(f"a data frame of {len(body)} bytes; its recipe has {self.size}.")
        flat = struct.unpack(">B" + self.format[1:], body)
        out: dict[str, Any] = {}
        offset = 1
        for name, kind in zip(self.names, self.types, strict=True):
            count = TYPES[kind][2]
            out[name] = list(flat[offset : offset + count]) if count > 1 else flat[offset]
            offset += count
        return out

    def table(self, bodies: Sequence[bytes]) -> Array:
        """Data frames as one structured array."""
        for body in bodies:
            if len(body) != self.size:
                raise WireError(
                    f"the size of the data changed mid-stream: {len(body)} bytes, expected "
                    f"{self.size}."
                )
        return np.frombuffer(b"".join(bodies), self.dtype)


def outputs_request(rate_hz: float, names: Sequence[str]) -> bytes:
    """Encode a request for output variables at a rate."""
    text = ",".join(names).encode()
    if len(text) > MAX_LIST_BYTES:
        raise WireError(f"{len(names)} variables make a list longer than {MAX_LIST_BYTES} bytes.")
    return frame(OUTPUTS, struct.pack(">d", rate_hz) + text)


def read_outputs_request(body: bytes) -> tuple[float, list[str]]:
    """Inverse of `outputs_request`, for a controller."""
    if len(body) < 8:
        raise WireError("a request for outputs without a rate.")
    return struct.unpack_from(">d", body)[0], _names(body[8:])


def inputs_request(names: Sequence[str]) -> bytes:
    """Encode a request to write input variables."""
    return frame(INPUTS, ",".join(names).encode())


def read_inputs_request(body: bytes) -> list[str]:
    """Inverse of `inputs_request`, for a controller."""
    return _names(body)


def types_reply(kind: int, number: int, types: Sequence[str]) -> bytes:
    """Encode a controller's answer to a request for variables; number 0 rejects it."""
    return frame(kind, bytes([number]) + ",".join(types).encode())


def read_types_reply(body: bytes) -> tuple[int, list[str]]:
    """Recipe number and type of every variable; NOT_FOUND or IN_USE if unavailable."""
    if not body:
        raise WireError("an empty answer to a request for variables.")
    types = _names(body[1:])
    unknown_types = [t for t in types if t not in TYPES and t not in (NOT_FOUND, IN_USE)]
    if unknown_types:
        raise WireError(f"the controller names a type {unknown_types[0]!r} that is not known.")
    return body[0], types


def text_message(text: str, source: str = "", level: int = 3) -> bytes:
    """Encode a message of the controller (0 exception, 1 error, 2 warning, 3 information)."""
    parts = [part.encode()[:255] for part in (text, source)]
    return frame(TEXT, b"".join(bytes([len(p)]) + p for p in parts) + bytes([level]))


def read_text_message(body: bytes) -> tuple[str, str, int]:
    """Text, source and level; truncated messages are read as far as possible."""
    parts: list[str] = []
    offset = 0
    for _ in range(2):
        length = body[offset] if offset < len(body) else 0
        parts.append(body[offset + 1 : offset + 1 + length].decode(errors="replace"))
        offset += 1 + length
    return parts[0], parts[1], body[offset] if offset < len(body) else 3


def version_reply(version: tuple[int, int, int, int]) -> bytes:
    """Encode a controller's software version."""
    return frame(URCONTROL, struct.pack(">4I", *version))


def read_version_reply(body: bytes) -> tuple[int, int, int, int]:
    """Major, minor, bug fix, build."""
    if len(body) != 16:
        raise WireError(f"a controller version of {len(body)} bytes; expected 16.")
    major, minor, fix, build = struct.unpack(">4I", body)
    return major, minor, fix, build


def is_accepted(body: bytes) -> bool:
    """Whether a request for protocol version, start or pause was accepted."""
    return body[:1] == b"\x01"


def _names(text: bytes) -> list[str]:
    try:
        words = text.decode("ascii").split(",")
    except UnicodeDecodeError:
        raise WireError("a list of variables that is not text.") from None
    return [word for word in words if word]
