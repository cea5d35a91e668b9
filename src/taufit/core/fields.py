"""Checked access to plain data; errors name the place in the file.

    Field(data, "model.json")["range"]["velocity"]["low"].numbers(6)

fails with "model.json: range.velocity.low[2] is 'fast', expected a number."
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError

# Larger numbers would overflow when squared.
MAX_MAGNITUDE = 1e100


@dataclass(frozen=True, slots=True)
class Field:
    """Value with its place in a file.

    Attributes:
        value: Value from JSON.
        source: File name.
        path: Place within the file, e.g. "range.velocity.low[2]".
    """

    value: Any
    source: str
    path: str = ""

    def fail(self, expected: str) -> NoReturn:
        """Raise an error with the value and the expectation."""
        raise TaufitError(
            f"{self.source}: {self.path or 'the file'} is {self.display_text}, expected "
            f"{expected}. Correct the file, or fit again."
        )

    @property
    def display_text(self) -> str:
        """Value shortened for messages."""
        text = repr(self.value)
        return text if len(text) <= 60 else f"{text[:57]}..."

    @property
    def missing(self) -> bool:
        """Whether the key is absent or null."""
        return self.value is None

    def __getitem__(self, key: str) -> Field:
        """Field under a key; missing if there is none."""
        path = f"{self.path}.{key}" if self.path else key
        return Field(self.mapping().get(key), self.source, path)

    def mapping(self) -> Mapping[str, Any]:
        """Object of named values; empty if missing."""
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            self.fail("an object of named values")
        return self.value

    def required(self) -> Field:
        """This field; raises if missing."""
        if self.value is None:
            raise TaufitError(
                f"{self.source} is incomplete: it has no {self.path}. Correct the file, or fit "
                "again."
            )
        return self

    def items(self) -> Iterator[Field]:
        """Fields of a list."""
        if not isinstance(self.value, (list, tuple)):
            self.fail("a list")
        for i, value in enumerate(self.value):
            yield Field(value, self.source, f"{self.path}[{i}]")

    def text(self, default: str | None = None) -> str:
        """String value."""
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, str):
            self.fail("text")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """List of strings; empty if missing."""
        return () if self.value is None else tuple(item.text() for item in self.items())

    def flag(self) -> bool:
        """Boolean value."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value

    def number(
        self,
        default: float | None = None,
        *,
        low: float = -math.inf,
        above: float = -math.inf,
        most: float = MAX_MAGNITUDE,
        missing: float | None = None,
    ) -> float:
        """Finite number.

        Args:
            default: Value if missing.
            low: Smallest value.
            above: Exclusive lower bound.
            most: Largest magnitude.
            missing: Value of null within lists.
        """
        if self.value is None and default is not None:
            return default
        if self.value is None and missing is not None:
            return missing
        value = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail("a number")
        try:
            number = float(value)
        except OverflowError:
            self.fail("a finite number")
        if not math.isfinite(number):
            self.fail("a finite number")
        if abs(number) > most:
            self.fail(f"a number of at most {most:g} in magnitude")
        if number < low:
            self.fail(f"a number of at least {low:g}")
        if number <= above:
            self.fail(f"a number above {above:g}")
        return number

    def numbers(self, length: int | None = None, **limits: float) -> Float[Array, " m"]:
        """List of finite numbers, of a given length."""
        values = self._read_all_numbers(**limits)
        if values is None:
            values = np.array([item.number(**limits) for item in self.items()], float)
        if length is not None and len(values) != length:
            self.fail(f"a list of {length} numbers, not {len(values)}")
        return values

    def _read_all_numbers(
        self,
        *,
        low: float = -math.inf,
        above: float = -math.inf,
        most: float = MAX_MAGNITUDE,
        missing: float = math.nan,
    ) -> Float[Array, " m"] | None:
        """All numbers at once if all are valid, else None."""
        if not isinstance(self.value, list) or not {type(x) for x in self.value} <= {float, int}:
            return None
        try:
            values = np.array(self.value, float)
        except OverflowError:
            return None
        # Comparisons with NaN are false.
        is_valid = np.all((np.abs(values) <= most) & (values >= low) & (values > above))
        return values if is_valid else None

    def matrix(self, rows: int, columns: int, **limits: float) -> Float[Array, "r c"]:
        """List of rows of finite numbers."""
        values = [row.numbers(columns, **limits) for row in self.items()]
        if len(values) != rows:
            self.fail(f"a list of {rows} rows, not {len(values)}")
        return np.array(values, float).reshape(rows, columns)
