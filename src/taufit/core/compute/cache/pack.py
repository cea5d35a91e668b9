"""Serialisation of results. Bytes from a folder that others can write to are not trusted.

    mark, keyed hash (BLAKE2b) of the entry's key and of everything that follows, length of the
    head, head (JSON), arrays (little-endian, each on a multiple of eight bytes)

The hash uses a secret of the user, so nobody else can create or alter an entry or change its key.
Reading calls no function named in the bytes: values are plain, arrays of listed types, and
dataclasses of taufit, whose fields are set and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import numpy as np

_MARK = b"taufit3\0"
_HASH = 32
_START = len(_MARK) + _HASH
_ARRAYS = frozenset(("<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "<c16", "|b1", "|u1", "|i1"))
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}


class DamagedError(Exception):
    """Bytes that this user did not write."""


def pack(value: Any, key: bytes, secret: bytes) -> bytes:
    """Serialise a value. Doubles hardly compress, so nothing is compressed.

    Args:
        value: Plain values, arrays, dataclasses of taufit, and lists, tuples, sets and dicts of
            those; TypeError for anything else.
        key: Key of the entry, part of the hash.
        secret: Secret of the user.
    """
    packer = _Packer()
    page = packer.page(value)
    head = json.dumps(
        [packer.kinds, page], separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8", "surrogatepass")
    body = [len(head).to_bytes(8, "little"), _pad(head)]
    body += [_pad(array.tobytes("A")) for array in packer.arrays]
    return b"".join((_MARK, _hash(key, secret, body), *body))


def unpack(data: bytes, key: bytes, secret: bytes) -> Any:
    """Inverse of `pack`; raises DamagedError if key, secret or any bit differs."""
    body = memoryview(data)[_START:]
    expected = _hash(key, secret, [body])
    if data[: len(_MARK)] != _MARK or not hmac.compare_digest(data[len(_MARK) : _START], expected):
        raise DamagedError("it was altered, or not made by this user")
    try:
        length = int.from_bytes(body[:8], "little")
        head = bytes(body[8 : 8 + length]).decode("utf-8", "surrogatepass")
        kinds, page = json.loads(head)
        return _value(page, _arrays(kinds, body[8 + length + -length % 8 :]))
    except Exception as error:  # written by a version that knew other values
        raise DamagedError(str(error)) from None


def _hash(key: bytes, secret: bytes, body: Sequence[bytes | memoryview]) -> bytes:
    total = hashlib.blake2b(len(key).to_bytes(8, "little") + key, key=secret, digest_size=_HASH)
    for part in body:
        total.update(part)
    return total.digest()


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


class _Packer:
    """JSON pages and the arrays they refer to; repeated arrays are stored once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.kinds: list[tuple[str, tuple[int, ...], str]] = []
        self._array_indices: dict[int, int] = {}
        # References prevent the reuse of ids.
        self._references: list[Any] = []

    def page(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else ["float", repr(value)]
        if kind in _SEQUENCES:
            inner = sorted(value, key=repr) if kind in (set, frozenset) else value
            return [_SEQUENCES[kind], *map(self.page, inner)]
        if kind is dict:
            return ["dict", *([self.page(k), self.page(v)] for k, v in value.items())]
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return ["number", self._array(np.asarray(value))]
        if kind is complex:
            return ["complex", repr(value.real), repr(value.imag)]
        if kind is bytes:
            return ["bytes", value.hex()]
        if isinstance(value, PurePath):
            return ["path", str(value)]
        if kind is slice:
            return ["slice", *map(self.page, (value.start, value.stop, value.step))]
        return self._object(value)

    def _array(self, value: Any) -> Any:
        if value.dtype.kind == "U":
            return ["texts", list(value.shape), value.dtype.str, *value.ravel().tolist()]
        if value.dtype.str not in _ARRAYS:
            raise TypeError(f"arrays of {value.dtype} are not kept")
        index = self._array_indices.get(id(value))
        if index is None:
            index = self._array_indices[id(value)] = len(self.arrays)
            self._references.append(value)
            by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
            self.arrays.append(value if by_columns else np.ascontiguousarray(value))
            self.kinds.append((value.dtype.str, value.shape, "F" if by_columns else "C"))
        return ["array", index]

    def _object(self, value: Any) -> Any:
        kind: Any = type(value)
        name = f"{kind.__module__}:{kind.__qualname__}"
        if _class(name) is not kind:
            raise TypeError(f"a {kind.__name__} is not kept")
        if _has_state(kind):
            return ["state", name, self.page(value.__getstate__())]
        if issubclass(kind, tuple):
            return ["named", name, *map(self.page, value)]
        return ["object", name, *(self.page(getattr(value, field)) for field in _fields(kind))]


def _arrays(kinds: Any, body: memoryview) -> list[Any]:
    out, start = [], 0
    for text, shape, order in kinds:
        if text not in _ARRAYS:
            raise DamagedError(f"arrays of {text} are not kept")
        size = np.dtype(text).itemsize * math.prod(shape)
        flat = np.frombuffer(body[start : start + size], text)
        out.append(flat.reshape(shape, order=order).copy(order="K"))
        start += size + -size % 8
    return out


def _value(page: Any, arrays: list[Any]) -> Any:
    if type(page) is not list:
        return page
    tag, *inner = page
    if tag == "array":
        return arrays[inner[0]]
    if tag in ("object", "state", "named"):
        return _construct(tag, _class(inner[0]), [_value(part, arrays) for part in inner[1:]])
    if tag == "dict":
        return {_value(key, arrays): _value(value, arrays) for key, value in inner}
    if tag == "texts":
        return np.array(inner[2:], dtype=inner[1]).reshape(inner[0])
    return _PLAIN[tag]([_value(part, arrays) for part in inner])


_PLAIN: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "float": lambda inner: float(inner[0]),
    "number": lambda inner: inner[0][()],
    "complex": lambda inner: complex(float(inner[0]), float(inner[1])),
    "bytes": lambda inner: bytes.fromhex(inner[0]),
    "path": lambda inner: Path(inner[0]),
    "slice": lambda inner: slice(*inner),
}


def _construct(tag: str, kind: Any, inner: list[Any]) -> Any:
    if kind is None:
        raise DamagedError("a class that results are not made of")
    if tag == "named":
        return tuple.__new__(kind, inner)
    instance: Any = object.__new__(kind)
    if tag == "state":
        instance.__setstate__(inner[0])
        return instance
    for name, value in zip(_fields(kind), inner, strict=True):
        object.__setattr__(instance, name, value)
    return instance


@cache
def _class(name: str) -> Any:
    """Class of taufit that consists of its fields; None for any other."""
    module, _, class_name = name.partition(":")
    if not module.startswith("taufit.") or "." in class_name:
        return None
    cls: Any = getattr(importlib.import_module(module), class_name, None)
    if not isinstance(cls, type) or cls.__module__ != module:
        return None
    is_plain = is_dataclass(cls) or hasattr(cls, "digest_of") or issubclass(cls, tuple)
    return cls if is_plain or _has_state(cls) else None


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(kind.digest_of)


def _has_state(kind: Any) -> bool:
    """Whether a class defines a compact state of its own."""
    state = kind.__dict__.get("__getstate__")
    return state is not None and state.__module__ == kind.__module__
