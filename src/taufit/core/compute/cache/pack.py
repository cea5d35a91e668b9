"""Results as bytes and back. Bytes from a folder that others can write to are not trusted.

Pickle's format, read by an unpickler that knows arrays, plain values and taufit's own dataclasses
and nothing else: whatever the bytes say, no other class or function is called.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
from dataclasses import is_dataclass
from functools import cache
from typing import Any

_MARK = b"taufit2"
_CHECK = 16
# What NumPy's arrays and numbers and Python's plain values are made of.
_PLAIN = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("builtins", "complex"),
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "slice"),
    ("pathlib", "PosixPath"),
    ("pathlib", "WindowsPath"),
    ("pathlib", "PurePosixPath"),
}


class DamagedError(Exception):
    """Bytes that are not what was written."""


def pack(value: Any) -> bytes:
    """A value as bytes, with a check sum. Doubles hardly compress, so nothing is compressed."""
    body = pickle.dumps(value, protocol=5)
    return _MARK + _sum(body) + body


def unpack(data: bytes) -> Any:
    """The value of `pack`; DamagedError where the bytes are anything else."""
    start = len(_MARK) + _CHECK
    body = data[start:]
    if data[: len(_MARK)] != _MARK or data[len(_MARK) : start] != _sum(body):
        raise DamagedError("the check sum is wrong")
    try:
        return _Unpickler(io.BytesIO(body)).load()
    except Exception as error:  # whatever a damaged or hostile pickle runs into
        raise DamagedError(str(error)) from None


def _sum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK).digest()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _known(module, name)


@cache
def _known(module: str, name: str) -> Any:
    if (module, name) in _PLAIN:
        return getattr(importlib.import_module(module), name)
    if module == "taufit" or module.startswith("taufit."):
        found = getattr(importlib.import_module(module), name, None)
        plain = isinstance(found, type) and (is_dataclass(found) or hasattr(found, "digest_of"))
        if plain and found.__module__ == module:
            return found
    raise DamagedError(f"{module}.{name} is not among what results are made of")
