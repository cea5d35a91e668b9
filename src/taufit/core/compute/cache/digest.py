"""Digest of everything a result depends on: equal only for equal inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

import taufit

SIZE = 20
# Packages that use cached results but produce none.
_USERS = ("cli", "contact", "excitation", "export", "health", "live", "papers", "payload",
          "report", "sim", "virtual", "wire")  # fmt: skip


def digest(*values: Any) -> bytes:
    """Digest of values, arrays, dataclasses and named functions, by content.

    Digests are equal exactly for equal types and values, bit by bit. A class may list its relevant
    attributes in `digest_of`.

    Raises:
        TypeError: If a value has no comparable content, such as a lambda.
    """
    total = hashlib.blake2b(digest_size=SIZE)
    for value in values:
        _add(total.update, value)
    return total.digest()


@cache
def code_digest() -> bytes:
    """Digest of taufit itself: results of other versions are not reused."""
    total = hashlib.blake2b(digest_size=SIZE)
    top = Path(taufit.__file__).parent
    kernel = find_spec("taufit._kernel")
    if kernel is not None and kernel.origin is not None:
        total.update(Path(kernel.origin).read_bytes())
    for path in sorted(top.rglob("*.py")):
        name = path.relative_to(top)
        if name.parts[0] not in _USERS:
            total.update(str(name).encode())
            total.update(path.read_bytes())
    return total.digest()


def _add(update: Callable[[bytes], None], value: Any) -> None:
    kind = type(value)
    update(f"{kind.__module__}.{kind.__qualname__}(".encode())
    if value is None or isinstance(value, (bool, int, float, str, PurePath)):
        update(repr(value).encode())
    elif isinstance(value, bytes):
        update(value)
    elif isinstance(value, (np.ndarray, np.generic)):
        _add_array(update, np.asarray(value))
    elif isinstance(value, (tuple, list)):
        _add_all(update, value)
    elif isinstance(value, (set, frozenset)):
        _add_all(update, sorted(value, key=repr))
    elif isinstance(value, Mapping):
        _add_all(update, chain.from_iterable(sorted(value.items(), key=repr)))
    elif isinstance(value, partial):
        _add_all(update, [value.func, value.args, value.keywords])
    elif isinstance(value, (FunctionType, BuiltinFunctionType, MethodType, type)):
        _add_function(update, value)
    elif hasattr(kind, "digest_of"):
        _add_all(update, [getattr(value, name) for name in kind.digest_of])
    elif is_dataclass(value):
        for dataclass_field in fields(value):
            update(dataclass_field.name.encode())
            _add(update, getattr(value, dataclass_field.name))
    else:
        raise TypeError(f"a {kind.__name__} has no content to compare")
    update(b")")


def _add_all(update: Callable[[bytes], None], values: Any) -> None:
    for value in values:
        _add(update, value)


def _add_array(update: Callable[[bytes], None], array: Any) -> None:
    if array.dtype.hasobject:
        raise TypeError("an array of objects has no content to compare")
    update(f"{array.dtype.str}{array.shape}".encode())
    update(np.ascontiguousarray(array).tobytes())


def _add_function(update: Callable[[bytes], None], function: Any) -> None:
    if "<" in function.__qualname__:
        raise TypeError(f"{function.__qualname__} has no name to be found by")
    update(f"{function.__module__}.{function.__qualname__}".encode())
    if isinstance(function, MethodType) and not isinstance(function.__self__, type):
        _add(update, function.__self__)
