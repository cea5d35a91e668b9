"""Values of a column map, checked one by one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError

# No gain, offset or rate of a robot comes near.
_LARGEST = 1e30


class MapValues:
    """Checks the pieces of one map; every complaint starts with where the map came from."""

    def __init__(self, source: str) -> None:
        self.source = source

    def refuse(self, text: str) -> RecordingError:
        """The error to raise."""
        return RecordingError(f"{self.source}: {text}")

    def known(self, data: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        """Refuse keys that are not known."""
        for key in data:
            if key not in keys:
                close = difflib.get_close_matches(str(key), keys, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise self.refuse(f"{where} has no key {key!r}; it knows {', '.join(keys)}.{hint}")

    def number(self, value: Any, where: str) -> float:
        """A finite number, also as text or as a ratio such as 1798/7."""
        if isinstance(value, str):
            # YAML 1.1 reads 1e-3 as text; ratios such as 1798/7 are easier to check than decimals.
            match = re.fullmatch(r"\s*([-+.\deE]+)\s*(?:/\s*([-+.\deE]+))?\s*", value)
            try:
                value = float(match[1]) / float(match[2] or 1) if match else None
            except (ValueError, ZeroDivisionError):
                value = None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(f"{where} must be a number, not {value!r}.")
        if not abs(value) < _LARGEST:
            raise self.refuse(f"{where} must be finite, not {value!r}.")
        return float(value)

    def numbers(self, value: Any, where: str) -> tuple[float, ...]:
        """One or several numbers."""
        items = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        if not len(items):
            raise self.refuse(f"{where} is empty.")
        return tuple(self.number(item, where) for item in items)

    def array(self, value: Any, where: str) -> Float[Array, " j"] | None:
        """Numbers as an array, or None."""
        return None if value is None else np.array(self.numbers(value, where))

    def text(self, value: Any, where: str) -> str | None:
        """Text, or None."""
        if value is None or isinstance(value, str):
            return value
        raise self.refuse(f"{where} must be text, not {value!r}.")

    def flag(self, value: Any, where: str) -> bool:
        """True or false."""
        if isinstance(value, bool):
            return value
        raise self.refuse(f"{where} must be true or false, not {value!r}.")

    def choice(self, value: Any, choices: Sequence[str], where: str) -> str:
        """One of the choices."""
        if value in choices:
            return str(value)
        raise self.refuse(f"{where} must be {' or '.join(choices)}, not {value!r}.")
