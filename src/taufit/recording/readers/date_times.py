"""Dates and times of day in text columns, as seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from taufit.core.arrays import Array, Float

_DAY_S = 86400.0
# 12:00:00.008 or 12:00:00,008, with or without a date before it: 2024-03-01, 01.03.2024, 1/3/2024.
_STAMP = re.compile(
    r"^(?:(\d{1,4})[-./](\d{1,2})[-./](\d{1,4})[T ]+)?(\d{1,2}):(\d{2}):(\d{2})(?:[.,:](\d+))?"
    r"\s*(?:Z|UTC|[-+]\d{2}:?\d{2})?$"
)


def stamp_seconds(cells: Sequence[str]) -> Float[Array, " n"] | None:
    """Seconds of dates with time, or of times of day over midnight; None for other texts.

    Cells that are no time stamps are NaN; half of them at most.
    """
    probe = [cell for cell in cells[:50] if cell.strip()]
    if not probe or sum(_seconds(cell) is not None for cell in probe) < 0.5 * len(probe):
        return None
    seconds = np.array([np.nan if (value := _seconds(c)) is None else value for c in cells])
    if _STAMP.match(_bare(probe[0])) and "-" not in probe[0] and np.nanmax(seconds) < _DAY_S:
        steps = np.nan_to_num(np.diff(seconds, prepend=seconds[0]))
        seconds += _DAY_S * np.cumsum(steps < -0.5 * _DAY_S)
    return seconds


def _bare(cell: str) -> str:
    return cell.strip().strip('"')


def _seconds(cell: str) -> float | None:
    match = _STAMP.match(_bare(cell))
    if match is None:
        return None
    first, middle, last, hours, minutes, whole, fraction = match.groups()
    seconds = 3600.0 * int(hours) + 60.0 * int(minutes) + int(whole)
    seconds += float(f"0.{fraction or 0}")
    if first is None:
        return seconds
    year, day = (first, last) if len(first) == 4 else (last, first)
    try:
        midnight = datetime(int(year), int(middle), int(day), tzinfo=UTC)
    except ValueError:  # Month first.
        try:
            midnight = datetime(int(year), int(day), int(middle), tzinfo=UTC)
        except ValueError:
            return None
    return midnight.timestamp() + seconds
