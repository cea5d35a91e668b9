"""Section of a recording as tools get it: as recorded, and on the benchmark's grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Section of a recording. A test section has no torque.

    Attributes:
        time, q, v, a: Time [s] and motion (n, j) on a uniform grid, low-passed, SI.
        torque: Joint torque (n, j) through the same low-pass [N m], or None.
        moving: Grid samples (n) that are fitted and scored: in motion, clear of both ends.
        recorded_time, recorded_position: As recorded (m), (m, j).
        recorded_velocity: Measured velocity (m, j), or None.
        recorded_torque: Joint torque as recorded (m, j) [N m], or None.
        recorded_command: Commanded position (m, j), or None.
        cutoff_hz: Cut-off of the low-pass [Hz].
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    torque: np.ndarray | None
    moving: np.ndarray
    recorded_time: np.ndarray
    recorded_position: np.ndarray
    recorded_velocity: np.ndarray | None
    recorded_torque: np.ndarray | None
    recorded_command: np.ndarray | None
    cutoff_hz: float


def to_arrays(run: Run, prefix: str) -> dict[str, np.ndarray]:
    """Arrays of a run under a prefix, ready to be saved."""
    values = {f.name: getattr(run, f.name) for f in fields(Run)}
    return {f"{prefix}.{k}": np.asarray(v) for k, v in values.items() if v is not None}


def from_arrays(arrays: Mapping[str, Any], prefix: str) -> Run:
    """Run that `to_arrays` has saved under a prefix."""
    values = {f.name: arrays.get(f"{prefix}.{f.name}") for f in fields(Run)}
    return Run(**{**values, "cutoff_hz": float(values["cutoff_hz"])})
