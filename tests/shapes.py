"""Annotations are checked while tests run: every array's shape and type, every argument's class.

tests/conftest.py switches it on unless TAUFIT_SHAPES=0; the axes' letters are bound per call, so
`Float[Array, "n j"]` twice in one signature means the same n and the same j twice.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from types import UnionType
from typing import IO, Any, NamedTuple, Union, get_args, get_origin

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype
from beartype.roar import BeartypeDecorHintException

# All rooms; the URScript interpreter has no arrays, and its tests count calls and their depth.
_PACKAGE = Path(__file__).parents[1] / "src" / "taufit"
ROOMS = [
    f"taufit.{path.relative_to(_PACKAGE).as_posix().removesuffix('.py').replace('/', '.')}"
    for path in [*_PACKAGE.glob("*"), *_PACKAGE.glob("virtual/*")]
    if path.name not in ("virtual", "urscript") and not path.name.startswith("_")
]

# NumPy's scalars are numbers wherever numbers are meant, and whole numbers are real ones.
_NUMBERS = FrozenDict(
    {
        float: float | int | np.number,
        int: int | np.integer,
        bool: bool | np.bool_,
        # Streams of the standard library do not derive from it.
        IO[str]: object,
    }
)

_beartyped = beartype(conf=BeartypeConf(hint_overrides=_NUMBERS))

# Checks of one function (arguments, then arguments and result), after which it is left alone until
# a later test: loops over samples call theirs a hundred thousand times with the same shapes.
ENOUGH = 2
_calls: Counter[tuple[str, str]] = Counter()
_left: list[tuple[tuple[str, str], _Function]] = []


def checker(function: Callable[..., Any]) -> Callable[..., Any]:
    """What jaxtyping's import hook asks about the arguments and results of every function.

    The check is made at the first call: most functions are not called in most processes.
    """
    place = function.__module__, function.__qualname__
    checked: Callable[..., Any] | None = None

    @functools.wraps(function)
    def counted(*given: Any, **named: Any) -> Any:
        nonlocal checked
        _calls[place] += 1
        if _calls[place] == ENOUGH:
            _leave(*place)
        if any(map(_is_left_alone, (*given, *named.values()))):
            return function(*given, **named)
        if checked is None:
            function.__annotations__ = {
                name: _without_items(hint) for name, hint in function.__annotations__.items()
            }
            try:
                checked = _beartyped(function)
            except BeartypeDecorHintException:
                # Types of a library that beartype cannot read.
                checked = function
        return checked(*given, **named)

    return counted


def _without_items(hint: Any) -> Any:
    """Containers without the type of their items, of which beartype would look at a random one.

    Arrays in a list may differ in length, which the letters of their axes do not allow.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(map(_without_items, parts))]  # noqa: UP007 - made while running
    if origin is tuple and parts and ... not in parts:
        return tuple[tuple(map(_without_items, parts))]
    is_container = isinstance(origin, type) and issubclass(origin, Container | Iterable)
    return origin if is_container else hint


def _is_left_alone(value: Any) -> bool:
    """Whether it is traced, or a collection of files whose items are read on access."""
    return type(value).__name__ in ("RecordingFiles", "HoldoutFiles") or _is_traced(value)


def _is_traced(value: Any) -> bool:
    """Whether it holds symbols in place of arrays, as when code is made of a term.

    By name: nothing of taufit may be imported before the hook.
    """
    kind = type(value).__name__
    if kind == "TermInput":
        return any(map(_is_traced, getattr(value, "_parts", {}).values()))
    return kind in ("_Symbol", "_Stack") or (
        kind in ("tuple", "list") and any(map(_is_traced, value[:3]))
    )


# Functions are checked again in one test of so many of a file, and in its first one; which test it
# is differs from function to function. `make long` checks them in every test.
PERIOD = 1 if os.environ.get("TAUFIT_LONG") == "1" else 4
_file: Path | None = None
_number = 0


def begin_test(file: Path | None = None) -> None:
    """Check again: all functions in the first test of a file, a part of them in the others."""
    global _file, _number
    _number = 0 if file is None or file != _file else _number + 1
    _file = file
    left = []
    for place, function in _left:
        if _number and (zlib.crc32(".".join(place).encode()) + _number) % PERIOD:
            left.append((place, function))
        else:
            function.check()
            del _calls[place]
    _left[:] = left
    if not _number:
        _calls.clear()


class _Function(NamedTuple):
    """A checked function: where it is, what is there (the check), and the function itself."""

    holder: Any
    name: str
    checked: Any
    itself: Any

    def leave(self) -> None:
        """Check it no longer; a method is put in place of its check, which costs time in loops."""
        # What jaxtyping looks for at every call.
        self.itself.__no_type_check__ = True
        self._exchange(self.checked, self.itself)

    def check(self) -> None:
        """Check it again."""
        del self.itself.__no_type_check__
        self._exchange(self.itself, self.checked)

    def _exchange(self, old: Any, new: Any) -> None:
        # Other decorators stay, and so does what a test has put there.
        is_method = inspect.isclass(self.holder) and inspect.isfunction(self.checked)
        is_check_alone = is_method and self.checked.__code__.co_name == "wrapped_fn"
        if is_check_alone and vars(self.holder).get(self.name) is old:
            setattr(self.holder, self.name, new)


def _leave(module: str, name: str) -> None:
    found = _function(module, name)
    if found is not None:
        found.leave()
        _left.append(((module, name), found))


@functools.cache
def _function(module: str, name: str) -> _Function | None:
    """A function by its name; None if it is made within another one."""
    holder, found = None, sys.modules.get(module)
    for part in name.split("."):
        holder, found = found, inspect.getattr_static(found, part, None)
    itself = getattr(found, "fget", None) or getattr(found, "__func__", found)
    itself = inspect.unwrap(itself) if callable(itself) else None
    if not inspect.isfunction(itself):
        return None
    return _Function(holder, name.split(".")[-1], found, itself)
