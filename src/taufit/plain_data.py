"""JSON and YAML from anybody: read with limits, refused in one sentence where they break a rule.

Nesting and digits are bounded, a key may be given once, numbers are finite, YAML has no aliases
and no tags. `conform` checks data against a JSON Schema and names the place that does not.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from taufit.errors import TaufitError
from taufit.limits import check_text

MOST_DIGITS = 30
DEEPEST = 50
LARGEST_YAML = 2_000_000
_LARGE_EXPONENT = re.compile(r"\d[eE]\+?\d{3}")


class _Rule(ValueError):
    """What a text breaks, as the end of a sentence."""


def read_text(
    path: str | os.PathLike[str], what: str, *, error: type[TaufitError] = TaufitError
) -> str:
    """The text of a file; `what` it should be goes into the message."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            check_text(path, os.fstat(file.fileno()).st_size, error=error)
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path} is not {what}: it is not UTF-8 text.") from None
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror or problem}.") from None


def parse_json(
    text: str | bytes, source: object, what: str, *, error: type[TaufitError] = TaufitError
) -> Any:
    """The data of a JSON text."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        real = _finite if _LARGE_EXPONENT.search(text) else None
        return json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=_short,
            parse_float=real,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as problem:
        reason = f"line {problem.lineno} is no JSON ({problem.msg})"
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except RecursionError:
        reason = "it is nested too deeply"
    except _Rule as problem:
        reason = str(problem)
    raise error(f"{source} is not {what}: {reason}.") from None


def read_json(
    path: str | os.PathLike[str], what: str, *, error: type[TaufitError] = TaufitError
) -> Any:
    """The data of a JSON file."""
    return parse_json(read_text(path, what, error=error), path, what, error=error)


def parse_yaml(
    text: str, source: object, what: str, *, error: type[TaufitError] = TaufitError
) -> Any:
    """The data of a YAML text."""
    import yaml

    try:
        return _yaml(text)
    except _Rule as problem:
        reason = str(problem)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        reason = (
            where + f"{getattr(problem, 'problem', None) or 'characters that YAML does not allow'}"
        )
    except RecursionError:
        reason = "it is nested too deeply"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # Numbers and dates that YAML recognises by their form and then cannot make sense of.
        reason = "a value in it looks like a number or date and is none; quote it"
    raise error(f"{source} is not {what}: {reason}.") from None


def _yaml(text: str) -> Any:
    import yaml

    if len(text) > LARGEST_YAML:
        raise _Rule(f"it has {len(text)} characters, and such files have at most {LARGEST_YAML}")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Once(loader):  # type: ignore[misc, valid-type]
        """The loader, with every key given once."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in getattr(node, "value", ()):
                if not isinstance(key.value, str):
                    continue
                if key.value in seen:
                    raise _Rule(f"line {key.start_mark.line + 1} gives {key.value[:60]!r} twice")
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.events.AliasEvent):
            raise _Rule("YAML aliases (*name) are not supported: write the value out")
        depth += isinstance(event, yaml.events.CollectionStartEvent)
        depth -= isinstance(event, yaml.events.CollectionEndEvent)
        if depth > DEEPEST:
            raise _Rule("it is nested too deeply")
    return yaml.load(text, Loader=Once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _Rule(f"it gives {key[:60]!r} twice")
            seen.add(key)
    return out


def _short(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise _Rule(f"a number has {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Rule(f"the number {text[:40]} is too large")
    return value


def _no_constant(text: str) -> float:
    raise _Rule(f"{text} is no number")


def conform(data: Any, schema: Mapping[str, Any]) -> str | None:
    """The first place where data breaks a JSON Schema, as the end of a sentence; None where none.

    Understood are type, const, enum, required, properties, additionalProperties, items, anyOf,
    minItems, maxItems, minimum, maximum, exclusiveMinimum, maxLength and $ref to #/$defs.
    """
    return _conform(data, schema, schema, "")


_TYPES: dict[str, Any] = {
    "object": lambda x: isinstance(x, Mapping),
    "array": lambda x: isinstance(x, Sequence) and not isinstance(x, str),
    "string": lambda x: isinstance(x, str),
    "boolean": lambda x: isinstance(x, bool),
    "null": lambda x: x is None,
    "integer": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "number": lambda x: (
        isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)
    ),
}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "integer": "a whole number",
    "number": "a finite number",
}


def _conform(data: Any, schema: Any, whole: Mapping[str, Any], path: str) -> str | None:
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        found = [_conform(data, one, whole, path) for one in schema["anyOf"]]
        # The alternative that fits furthest says most.
        return None if None in found else max((f for f in found if f), key=len)
    return (
        _kind(data, schema, path)
        or _bounds(data, schema, path)
        or _members(data, schema, whole, path)
    )


def _at(path: str) -> str:
    return path.lstrip(".") or "the file"


def _shown(data: Any) -> str:
    return repr(data)[:60] if not isinstance(data, (Mapping, list)) else type(data).__name__


def _kind(data: Any, schema: Mapping[str, Any], path: str) -> str | None:
    kinds = schema.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not any(_TYPES[kind](data) for kind in kinds):
            words = " or ".join(_WORDS[kind] for kind in kinds)
            return f"{_at(path)} is {_shown(data)} where {words} belongs"
    if "const" in schema and data != schema["const"]:
        return f"{_at(path)} is {_shown(data)} where {schema['const']!r} belongs"
    if "enum" in schema and data not in schema["enum"]:
        return f"{_at(path)} is {_shown(data)} where one of {schema['enum']} belongs"
    return None


def _bounds(data: Any, schema: Mapping[str, Any], path: str) -> str | None:
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        high = schema.get("maximum")
        if (
            (low is not None and data < low)
            or (above is not None and data <= above)
            or (high is not None and data > high)
        ):
            return f"{_at(path)} is {_shown(data)}, which is out of range"
    if isinstance(data, str) and len(data) > schema.get("maxLength", math.inf):
        return f"{_at(path)} has {len(data)} characters, more than {schema['maxLength']}"
    if isinstance(data, list):
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        if not least <= len(data) <= most:
            need = least if least == most else f"{least} to {most}"
            return f"{_at(path)} has {len(data)} entries where {need} belong"
    return None


def _members(
    data: Any, schema: Mapping[str, Any], whole: Mapping[str, Any], path: str
) -> str | None:
    if isinstance(data, Mapping):
        for key in schema.get("required", ()):
            if key not in data:
                return f"{_at(path)} has no {key!r}"
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for key, value in data.items():
            rule = known.get(key, others)
            if rule is False:
                return f"{_at(path)} has {str(key)[:60]!r}, which is not known"
            if isinstance(rule, Mapping) and rule:
                found = _conform(value, rule, whole, f"{path}.{str(key)[:60]}")
                if found:
                    return found
    if isinstance(data, list) and schema.get("items"):
        for i, value in enumerate(data):
            found = _conform(value, schema["items"], whole, f"{path}[{i}]")
            if found:
                return found
    return None
