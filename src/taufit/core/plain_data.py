"""Reading of untrusted JSON and YAML, with limits and errors in one sentence.

Nesting and digits are limited, keys are unique, numbers finite, YAML has no aliases and tags. The
meaning of values is checked by `fields`. `to_plain_data` converts results to JSON values.
"""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.bounded_reading import read_bytes
from taufit.core.decompression_limits import MAX_TEXT, limits_are_lifted
from taufit.core.errors import TaufitError

MAX_DIGITS = 30
MAX_DEPTH = 50
MAX_YAML = 2_000_000
_LARGE_EXPONENT = re.compile(r"\d[eE]\+?\d{3}")


class _RuleViolation(ValueError):
    """Violated rule of a text, as the end of a sentence."""


def read_text(
    path: str | os.PathLike[str], expected: str, *, error: type[TaufitError] = TaufitError
) -> str:
    """Text of a file; `expected` describes it in messages."""
    path = Path(path)
    data = read_bytes(path, None if limits_are_lifted() else MAX_TEXT, error=error)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path} is not {expected}: it is not UTF-8 text.") from None


def parse_json(
    text: str | bytes, source: object, expected: str, *, error: type[TaufitError] = TaufitError
) -> Any:
    """Data of a JSON text."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        parse_float = _parse_float if _LARGE_EXPONENT.search(text) else None
        return json.loads(
            text,
            object_pairs_hook=_require_unique_keys,
            parse_int=_parse_int,
            parse_float=parse_float,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as problem:
        reason = f"line {problem.lineno} is not JSON ({problem.msg})"
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except RecursionError:
        reason = "it is nested too deeply"
    except _RuleViolation as problem:
        reason = str(problem)
    raise error(f"{source} is not {expected}: {reason}.") from None


def read_json(
    path: str | os.PathLike[str], expected: str, *, error: type[TaufitError] = TaufitError
) -> Any:
    """Data of a JSON file."""
    return parse_json(read_text(path, expected, error=error), path, expected, error=error)


def parse_yaml(
    text: str, source: object, expected: str, *, error: type[TaufitError] = TaufitError
) -> Any:
    """Data of a YAML text."""
    import yaml

    try:
        return _load_yaml(text)
    except _RuleViolation as problem:
        reason = str(problem)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        location = f"line {mark.line + 1}: " if mark else ""
        reason = (
            location
            + f"{getattr(problem, 'problem', None) or 'characters that YAML does not allow'}"
        )
    except RecursionError:
        reason = "it is nested too deeply"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # Values in the form of numbers or dates that YAML cannot convert.
        reason = "a value in it looks like a number or date and is none; quote it"
    raise error(f"{source} is not {expected}: {reason}.") from None


def _load_yaml(text: str) -> Any:
    import yaml

    if len(text) > MAX_YAML:
        raise _RuleViolation(
            f"it has {len(text)} characters, and such files have at most {MAX_YAML}"
        )
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Once(loader):  # type: ignore[misc]
        """YAML loader that rejects duplicate keys."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = set()
            for key, _ in getattr(node, "value", ()):
                if not isinstance(key.value, str):
                    continue
                if key.value in keys:
                    raise _RuleViolation(
                        f"line {key.start_mark.line + 1} gives {key.value[:60]!r} twice"
                    )
                keys.add(key.value)
            return super().construct_mapping(node, deep)

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.events.AliasEvent):
            raise _RuleViolation("YAML aliases (*name) are not supported: write the value out")
        depth += isinstance(event, yaml.events.CollectionStartEvent)
        depth -= isinstance(event, yaml.events.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _RuleViolation("it is nested too deeply")
    return yaml.load(text, Loader=Once)


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        keys = set()
        for key, _ in pairs:
            if key in keys:
                raise _RuleViolation(f"it gives {key[:60]!r} twice")
            keys.add(key)
    return out


def _parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _RuleViolation(f"a number has {len(text)} digits")
    return int(text)


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _RuleViolation(f"the number {text[:40]} is too large")
    return value


def _reject_constant(text: str) -> float:
    raise _RuleViolation(f"{text} is not a number")


def to_plain_data(value: Any) -> Any:
    """Plain Python data for JSON: arrays become lists, non-finite numbers null."""
    if isinstance(value, dict):
        return {str(key): to_plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        # Most items are finite numbers.
        return [
            item if type(item) is float and item - item == 0.0 else to_plain_data(item)
            for item in value
        ]
    if isinstance(value, np.ndarray):
        numbers = value.tolist()
        is_plain = value.dtype.kind in "biu" or (
            value.dtype.kind == "f" and np.isfinite(value).all()
        )
        return numbers if is_plain else to_plain_data(numbers)
    if isinstance(value, np.generic):
        return to_plain_data(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
