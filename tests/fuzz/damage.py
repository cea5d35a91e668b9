"""Ways to damage a file: bytes at random, and values of JSON and YAML where they stand."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import yaml

# What a value may be replaced by. None of it is what any field expects everywhere.
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 10**20, 10**29, -(10**15), 0.5, -0.0, 1e-300, 1e308, -1e308,
    1e15, 1e6, -1e6, "", "x", "<script>alert(1)</script>", "arm[/b]", "\x1b]0;OWNED\x07", "1",
    "nan", "../../etc/passwd", "x" * 3000, "\u202e", "*/ int evil; /*", [], [[]], [None], [0],
    [1, "a"], {},
    {"a": 1}, [1e308] * 6, ["a"] * 6, [[0.0] * 6] * 6, [0] * 1000,
)  # fmt: skip
# Texts that are not what json.dumps writes, put in the place of a value.
RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "[" * 100_000, '{"a":' * 50_000, "\\", "",
    '"\\ud800"', "1.0.0", "'x'", "// no",
)  # fmt: skip
_MARK = "@@here@@"


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand; of long lists only some, so that every kind of place is as likely."""
    out = [path] if path else []
    if isinstance(data, dict):
        for key, value in data.items():
            out += places(value, (*path, key))
    elif isinstance(data, list):
        for i in range(min(len(data), 3)):
            out += places(data[i], (*path, i))
    return out


def edited(data: Any, rng: np.random.Generator) -> str:
    """JSON with one or two values changed, removed, doubled or replaced by raw text."""
    data = json.loads(json.dumps(data))
    raw = None
    for _ in range(1 + int(rng.random() < 0.2)):
        spots = places(data)
        if not spots:
            break
        *way, last = spots[rng.integers(len(spots))]
        holder = data
        for step in way:
            holder = holder[step]
        kind = rng.random()
        if kind < 0.15:
            del holder[last]
        elif kind < 0.25 and isinstance(holder, list):
            holder.insert(int(rng.integers(len(holder) + 1)), holder[last])
        elif kind < 0.30 and isinstance(holder, dict):
            holder[str(last) + "x"] = holder.pop(last)
        elif kind < 0.40:
            raw = RAW[rng.integers(len(RAW))]
            holder[last] = _MARK
        else:
            holder[last] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    text = json.dumps(data)
    if raw is not None:
        text = text.replace(json.dumps(_MARK), raw)
    if rng.random() < 0.05:
        # A key twice.
        text = text.replace("{", '{"format": 1, ', 1)
    return text


def edited_yaml(text: str, rng: np.random.Generator) -> str:
    """YAML with values changed where they stand, or tricks of its own."""
    kind = rng.random()
    if kind < 0.7:
        changed = edited(yaml.safe_load(text), rng)
        try:
            return yaml.safe_dump(json.loads(changed), sort_keys=False)
        except (ValueError, RecursionError, yaml.YAMLError):
            return changed
    lines = text.split("\n")
    trick = (
        "a: &x [1]\nb: *x", "<<: {a: 1}", "!!python/object/apply:os.system [echo]", "? [1, 2]\n: x",
        "key: 2001-99-99", "key: 0o99", "key: .inf", "key: " + "9" * 5000, "\t- x", "- [" * 200,
        "key: |\n  x", "%YAML 9.9", "--- ", "key: 1:99:99", "\x00", "\ufeff",
    )[rng.integers(16)]  # fmt: skip
    at = int(rng.integers(len(lines) + 1))
    return "\n".join([*lines[:at], trick, *lines[at:]])


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 20))):
        out[rng.integers(len(out))] = int(rng.integers(256))
    return bytes(out)


def near_the_ends(data: bytes, rng: np.random.Generator) -> bytes:
    """Heads and tails hold the structure of most containers."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 8))):
        at = int(rng.integers(min(400, len(out))))
        out[at if rng.random() < 0.5 else -1 - at] = int(rng.integers(256))
    return bytes(out)


def zeroed(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(rng.integers(len(data) + 1, size=2))
    return data[:a] + bytes(int(b - a)) + data[b:]


def doubled(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(rng.integers(len(data) + 1, size=2))
    return data[:b] + data[a:b] + data[b:]


def inserted(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + rng.bytes(int(rng.integers(1, 200))) + data[at:]


def large_numbers(data: bytes, rng: np.random.Generator) -> bytes:
    """A size field blown up: four or eight bytes of ones."""
    at = int(rng.integers(max(1, len(data) - 8)))
    width = 4 if rng.random() < 0.5 else 8
    ones = b"\xff" * (width - 1) + (b"\x7f" if rng.random() < 0.5 else b"\xff")
    return data[:at] + ones + data[at + width :]


DAMAGE: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    cut, flipped, near_the_ends, zeroed, doubled, inserted, large_numbers,
)  # fmt: skip


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    return DAMAGE[rng.integers(len(DAMAGE))](data, rng) if data else b"\x00"
