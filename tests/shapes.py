"""Annotations are checked while tests run: every array's shape and type, every argument's class.

tests/conftest.py switches it on unless TAUFIT_SHAPES=0; the axes' letters are bound per call, so
`Float[Array, "n j"]` twice in one signature means the same n and the same j twice.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

# Rooms whose annotations are true; a room joins by being listed and passing.
ROOMS = ["taufit.robot", "taufit.dynamics", "taufit.signals"]

# NumPy's scalars are numbers wherever numbers are meant, and whole numbers are real ones.
_NUMBERS = FrozenDict(
    {float: float | int | np.number, int: int | np.integer, bool: bool | np.bool_}
)

_checked = beartype(conf=BeartypeConf(hint_overrides=_NUMBERS))

# Checks of one function in one test, after which it is left alone until the next: loops over
# samples call theirs a hundred thousand times with the same shapes.
ENOUGH = 40
_calls: Counter[tuple[str, str]] = Counter()
_left: list[Any] = []


def checker(function: Callable[..., Any]) -> Callable[..., Any]:
    """What jaxtyping's import hook asks about the arguments and results of every function."""
    checked = _checked(function)
    place = function.__module__, function.__qualname__

    @functools.wraps(function)
    def counted(*given: Any, **named: Any) -> Any:
        _calls[place] += 1
        if _calls[place] == ENOUGH:
            _leave(*place)
        return checked(*given, **named)

    return counted


def begin_test() -> None:
    """All functions are checked again."""
    _calls.clear()
    while _left:
        del _left.pop().__no_type_check__


def _leave(module: str, name: str) -> None:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    found = inspect.unwrap(found) if callable(found) else None
    if inspect.isfunction(found):
        # What jaxtyping looks for at every call.
        found.__no_type_check__ = True  # type: ignore[attr-defined]
        _left.append(found)
