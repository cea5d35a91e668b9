"""Conversion of frozen dataclasses to plain data, and back with checks that name the place.

    rate_hz: Annotated[float, Limits(low=0.1, most=1e6)] = 100.0
    covariance: Annotated[Float[Array, "b b"], Limits(missing=math.nan)]

`read(cls, field, j=6)` uses shapes and limits of the annotations. A letter of a shape without given
size gets it from the first array that has the letter. `write` is the inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.fields import Field

T = TypeVar("T")
Checks = Mapping[type, Callable[[Any, Field], None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the numbers of a field, besides its type.

    Attributes:
        low: Smallest value.
        above: Exclusive lower bound.
        most: Largest magnitude.
        missing: Value of null within lists.
        null: Value of null in place of a number.
    """

    low: float | None = None
    above: float | None = None
    most: float | None = None
    missing: float | None = None
    null: float | None = None

    def keywords(self) -> dict[str, float]:
        """Arguments for `Field.number`."""
        limits = {"low": self.low, "above": self.above, "most": self.most, "missing": self.missing}
        return {name: value for name, value in limits.items() if value is not None}


def write(instance: Any) -> dict[str, Any]:
    """Fields of a dataclass by name, nested dataclasses included; arrays stay arrays."""
    return {
        dataclass_field.name: _to_plain(getattr(instance, dataclass_field.name))
        for dataclass_field in fields(instance)
    }


def _to_plain(value: Any) -> Any:
    if is_dataclass(value):
        return write(value)
    return [_to_plain(item) for item in value] if isinstance(value, tuple) else value


def read(cls: type[T], data: Field, checks: Checks | None = None, **sizes: int) -> T:
    """Dataclass from plain data; absent entries take the defaults of the class.

    Args:
        cls: Frozen dataclass with annotated fields.
        data: Object of named values.
        checks: Joint conditions on the values of a class; fail with the place.
        sizes: Size of each letter in shapes, e.g. j=6.

    Raises:
        TaufitError: If an entry is missing or violates its annotation or limits.
    """
    values: dict[str, Any] = {}
    hints = _hints(cls)  # type: ignore[arg-type]
    for dataclass_field in fields(cls):  # type: ignore[arg-type]
        entry = data[dataclass_field.name]
        hint, limits = hints[dataclass_field.name]
        if not entry.missing:
            values[dataclass_field.name] = _value(
                hint, entry, limits.keywords(), checks or {}, sizes
            )
        elif limits.null is not None and dataclass_field.name in data.mapping():
            values[dataclass_field.name] = limits.null
        elif dataclass_field.default is MISSING and dataclass_field.default_factory is MISSING:
            entry.required()
    instance = cls(**values)
    for kind, check in (checks or {}).items():
        if isinstance(instance, kind):
            check(instance, data)
    return instance


def read_optional(
    cls: type[T], data: Field, checks: Checks | None = None, **sizes: int
) -> T | None:
    """`read`, or None if there is no entry."""
    return None if data.missing else read(cls, data, checks, **sizes)


@cache
def _hints(cls: type) -> dict[str, tuple[Any, Limits]]:
    """Type and limits of every field."""
    hints = get_type_hints(cls, include_extras=True)
    types = get_type_hints(cls)
    return {
        name: (types[name], next((x for x in get_args(hint) if isinstance(x, Limits)), Limits()))
        for name, hint in hints.items()
    }


def _value(
    hint: Any, data: Field, limits: dict[str, Any], checks: Checks, sizes: dict[str, int]
) -> Any:
    if get_origin(hint) in (Union, UnionType):
        alternatives = [part for part in get_args(hint) if part is not type(None)]
        # A number, or one per joint.
        is_list = isinstance(data.value, list) and len(alternatives) > 1
        hint = alternatives[-1 if is_list else 0]
    if hasattr(hint, "dim_str"):
        return _array(hint.dim_str.split(), data, limits, sizes)
    if is_dataclass(hint):
        return read(hint, data, checks, **sizes)  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        return _tuple(get_args(hint), data, limits, checks, sizes)
    if hint is str:
        return data.text()
    if hint is bool:
        return data.flag()
    if hint in (int, float):
        return hint(data.number(**limits))
    return dict(data.mapping())


def _tuple(
    hints: tuple[Any, ...],
    data: Field,
    limits: dict[str, Any],
    checks: Checks,
    sizes: dict[str, int],
) -> tuple[Any, ...]:
    items = list(data.items())
    if hints[-1] is not Ellipsis and len(items) != len(hints):
        data.fail(f"a list of {len(hints)}, not {len(items)}")
    return tuple(_value(hints[0], item, limits, checks, dict(sizes)) for item in items)


def _array(
    letters: list[str], data: Field, limits: dict[str, Any], sizes: dict[str, int]
) -> Float[Array, ...]:
    shape = [int(letter) if letter.isdigit() else sizes.get(letter) for letter in letters]
    if len(letters) == 1:
        values = data.numbers(length=shape[0], **limits)
    else:
        rows = list(data.items())
        width = shape[1]
        if width is None:
            width = len(rows[0].numbers(**limits)) if rows else 0
        values = data.matrix(len(rows) if shape[0] is None else shape[0], width, **limits)
    for letter, size in zip(letters, np.shape(values), strict=True):
        if not letter.isdigit():
            sizes.setdefault(letter, size)
    return values
