"""Dumps of controllers with one assignment per line."""

from __future__ import annotations

import re

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError

_ASSIGNMENT = re.compile(
    r"^\s*([A-Za-z_][\w.]*)\s*\[\s*(\d+)\s*(?:[,\]]\s*\[?\s*(\d+)\s*)?\]\s*:?=\s*"
    r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*[;,]?\s*$",
    re.MULTILINE,
)


def read_assignments(text: str) -> dict[str, Float[Array, ...]] | None:
    """Arrays of a controller's dump with lines such as `q[0]:=1.5`; None for other texts."""
    head = [line for line in text[:4096].split("\n")[:-1] if line.strip()]
    if not head or sum(bool(_ASSIGNMENT.match(line)) for line in head) < 0.8 * len(head):
        return None
    cells: dict[str, list[tuple[int, int, float]]] = {}
    for name, row, column, value in _ASSIGNMENT.findall(text):
        cells.setdefault(name, []).append((int(row), int(column or 0), float(value)))
    arrays: dict[str, Float[Array, ...]] = {}
    for name, items in cells.items():
        index = np.array([item[:2] for item in items])
        index -= index.min(axis=0)
        shape = index.max(axis=0) + 1
        if shape.prod() > 4 * len(items):
            raise RecordingError(f"{name} of the dump has {len(items)} of {shape.prod()} values.")
        array = np.full(shape, np.nan)
        array[index[:, 0], index[:, 1]] = [item[2] for item in items]
        arrays[name] = array
    return arrays
