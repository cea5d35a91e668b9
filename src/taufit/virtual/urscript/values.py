"""Values of a program (numbers, texts, lists) and their operators.

Lists are copied on assignment. Integers have 32 bits; lists, texts and matrices have a maximum
size, so
that a program cannot exhaust the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taufit.virtual.urscript.lexer import ScriptError

Value = Any  # int, float, bool, str, None, UrList
MAX_LIST_LENGTH, MAX_TEXT_LENGTH = 1000, 1023
_LIMIT = 2**31


class UrList(list[Value]):
    """A list, a matrix (list of lists) or a pose."""

    __slots__ = ()


def make_list(items: list[Value]) -> UrList:
    """List of numbers, texts or flat lists."""
    if sum(len(item) if isinstance(item, list) else 1 for item in items) > MAX_LIST_LENGTH:
        raise ScriptError(f"a list of more than {MAX_LIST_LENGTH} elements.")
    for item in items:
        if isinstance(item, list) and any(isinstance(inner, list) for inner in item):
            raise ScriptError("a list of lists of lists.")
    return UrList(copy_value(item) for item in items)


def copy_value(value: Value) -> Value:
    """Copy of a value for another variable."""
    if isinstance(value, list):
        return UrList(UrList(x) if isinstance(x, list) else x for x in value)
    return value


def is_true(value: Value) -> bool:
    """Truth value of a condition; raises for other types."""
    if isinstance(value, (bool, int, float)):
        return bool(value)
    raise ScriptError(f"a condition is true or false, not {format_value(value)}.")


def number(value: Value) -> float | int:
    """Number; raises for other types."""
    if isinstance(value, (int, float)):
        return value
    raise ScriptError(f"a number expected, found {format_value(value)}.")


def format_value(value: Value) -> str:
    """Text of a value, of bounded length."""
    if isinstance(value, list):
        text = "[" + ", ".join(format_value(item) for item in value[:50]) + "]"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = str(value)
    return text[:MAX_TEXT_LENGTH]


def _require_int32(value: float | int) -> float | int:
    if value.__class__ is int and not -_LIMIT <= value < _LIMIT:
        raise ScriptError(
            f"{format_value(float(value))} does not fit into a whole number of 32 bits."
        )
    return value


def _arithmetic(sign: str, function: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def apply(a: Value, b: Value) -> Value:
        kinds = a.__class__, b.__class__
        if kinds == (float, float):
            return function(a, b)
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return _require_int32(function(a, b))
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                raise ScriptError(f"lists of {len(a)} and {len(b)} elements in one {sign!r}.")
            return UrList(apply(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, list) and isinstance(b, (int, float)):
            return UrList(apply(x, b) for x in a)
        if isinstance(b, list) and isinstance(a, (int, float)):
            return UrList(apply(a, y) for y in b)
        raise ScriptError(f"{format_value(a)} {sign} {format_value(b)} has no meaning.")

    return apply


def _divide(a: float | int, b: float | int) -> float | int:
    if b == 0:
        raise ScriptError("a division by zero.")
    out = a / b
    # Integers that divide evenly give an integer, so it can be an index.
    return int(out) if a.__class__ is int and b.__class__ is int and out.is_integer() else out


def _modulo(a: float | int, b: float | int) -> float | int:
    if b == 0:
        raise ScriptError("a division by zero.")
    out = math.fmod(a, b)
    return int(out) if a.__class__ is int and b.__class__ is int else out


def _compare(sign: str, function: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def apply(a: Value, b: Value) -> bool:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return function(a, b)
        raise ScriptError(f"{format_value(a)} {sign} {format_value(b)} has no meaning.")

    return apply


OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": _arithmetic("+", lambda a, b: a + b),
    "-": _arithmetic("-", lambda a, b: a - b),
    "*": _arithmetic("*", lambda a, b: a * b),
    "/": _arithmetic("/", _divide),
    "%": _arithmetic("%", _modulo),
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": _compare("<", lambda a, b: a < b),
    ">": _compare(">", lambda a, b: a > b),
    "<=": _compare("<=", lambda a, b: a <= b),
    ">=": _compare(">=", lambda a, b: a >= b),
    "xor": lambda a, b: is_true(a) != is_true(b),
}


def negate(value: Value) -> Value:
    """Negation -x, element by element."""
    return OPERATORS["*"](-1, value)


def element(value: Value, index: Value) -> Value:
    """Element value[index]; raises if it does not exist."""
    if not isinstance(value, list):
        raise ScriptError(
            f"{format_value(value)} is not a list: it has no element {format_value(index)}."
        )
    return value[list_index(value, index)]


def list_index(value: list[Value], index: Value) -> int:
    """Valid index of a list; raises if it is out of range."""
    if not isinstance(index, (int, float)) or not math.isfinite(index):
        raise ScriptError(f"an index is a number, not {format_value(index)}.")
    integer = int(index)
    if not 0 <= integer < len(value):
        raise ScriptError(f"element {integer} of a list of {len(value)}.")
    return integer
