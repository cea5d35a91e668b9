"""Integers of variable length, as in Protocol Buffers and Thrift: seven bits per byte."""

from __future__ import annotations


def encode_varint(value: int) -> bytes:
    """Encode an integer >= 0, least significant bits first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
