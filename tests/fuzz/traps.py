"""Recordings that are well-formed and wrong: 27 kinds of traps, up to three at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# name -> array of one row per sample; every trap changes some of it in place or returns another.
Columns = dict[str, Any]
Trap = Callable[[Columns, np.random.Generator], Columns]


def _one(columns: Columns, rng: np.random.Generator, but: tuple[str, ...] = ()) -> str:
    names = [name for name in columns if name not in but]
    return names[int(rng.integers(len(names)))]


def _some(columns: Columns, rng: np.random.Generator) -> slice:
    n = len(columns["t"])
    start = int(rng.integers(max(n, 1)))
    return slice(start, start + 1 + int(rng.integers(max(n // 4, 1))))


def _set(value: float) -> Trap:
    def trap(columns: Columns, rng: np.random.Generator) -> Columns:
        columns[_one(columns, rng)][_some(columns, rng)] = value
        return columns

    return trap


def _scale(factor: float, *, part: bool = False, time: bool = False) -> Trap:
    def trap(columns: Columns, rng: np.random.Generator) -> Columns:
        name = "t" if time else _one(columns, rng, ("t",))
        where = _some(columns, rng) if part else slice(None)
        columns[name][where] *= factor
        return columns

    return trap


def _rows(pick: Callable[[int, np.random.Generator], Any]) -> Trap:
    def trap(columns: Columns, rng: np.random.Generator) -> Columns:
        chosen = pick(len(columns["t"]), rng)
        return {name: values[chosen].copy() for name, values in columns.items()}

    return trap


def _each(change: Callable[[Any, np.random.Generator], Any], *, time: bool = False) -> Trap:
    def trap(columns: Columns, rng: np.random.Generator) -> Columns:
        name = "t" if time else _one(columns, rng, ("t",))
        columns[name] = np.asarray(change(columns[name], rng), float)
        return columns

    return trap


def _swap(columns: Columns, rng: np.random.Generator) -> Columns:
    one, other = _one(columns, rng), _one(columns, rng)
    columns[one], columns[other] = columns[other], columns[one]
    return columns


def _same(columns: Columns, rng: np.random.Generator) -> Columns:
    columns[_one(columns, rng)] = columns[_one(columns, rng)].copy()
    return columns


def _back(values: Any, rng: np.random.Generator) -> Any:
    if len(values):
        at = int(rng.integers(len(values)))
        values[at:] -= rng.uniform(0.0, 2.0)
    return values


def _spikes(values: Any, rng: np.random.Generator) -> Any:
    return values + (rng.random(len(values)) < 0.01) * 10.0 ** rng.uniform(0, 12)


TRAPS: dict[str, Trap] = {
    "nan": _set(np.nan),
    "infinite": _set(np.inf),
    "minus infinite": _set(-np.inf),
    "huge": _set(1e300),
    "zero": _set(0.0),
    "constant": _each(lambda x, rng: np.full(len(x), x[0] if len(x) else 0.0)),
    "constant time": _each(lambda x, rng: np.zeros(len(x)), time=True),
    "back in time": _each(_back, time=True),
    "turned in time": _rows(lambda n, rng: np.arange(n)[::-1]),
    "twice": _rows(lambda n, rng: np.repeat(np.arange(n), 2)),
    "twice behind": _rows(lambda n, rng: np.tile(np.arange(n), 2)),
    "permuted": _rows(lambda n, rng: rng.permutation(n)),
    "no rows": _rows(lambda n, rng: np.arange(0)),
    "one row": _rows(lambda n, rng: np.arange(min(n, 1))),
    "two rows": _rows(lambda n, rng: np.arange(min(n, 2))),
    "eleven rows": _rows(lambda n, rng: np.arange(min(n, 11))),
    "gaps": _rows(lambda n, rng: np.flatnonzero(rng.random(n) < 0.3)),
    "fast clock": _scale(1e-9, time=True),
    "slow clock": _scale(1e9, time=True),
    "degrees in a part": _scale(57.29578, part=True),
    "degrees": _scale(57.29578),
    "turned sign": _scale(-1.0),
    "tiny": _scale(1e-300),
    "clipped": _each(lambda x, rng: np.clip(x, *np.quantile(x, [0.3, 0.7])) if len(x) else x),
    "stuck": _each(lambda x, rng: x[np.minimum(np.arange(len(x)), len(x) // 3)] if len(x) else x),
    "spikes": _each(_spikes),
    "swapped": _swap,
    "equal columns": _same,
}


def trapped(columns: Columns, rng: np.random.Generator) -> Columns:
    """One to three traps at once."""
    columns = {name: np.array(values, float) for name, values in columns.items()}
    names = list(TRAPS)
    with np.errstate(all="ignore"):
        for _ in range(int(rng.integers(1, 4))):
            columns = TRAPS[names[int(rng.integers(len(names)))]](columns, rng)
    return columns
