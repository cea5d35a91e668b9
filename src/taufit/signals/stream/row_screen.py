"""Validity check of raw samples: values within limits, torques not frozen."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Flags returned by `look`.
MEASURED, HELD, MOVES = 1, 2, 4


class NumpyScreen:
    """Checks positions, velocities and torques of a sample.

    Args:
        maximum: Largest valid magnitude of each channel.
        standstill: Speed below which a joint stands still [rad/s or m/s].
    """

    def __init__(self, maximum: Float[Array, " c"], standstill: float) -> None:
        self._maximum, self._standstill = maximum, standstill
        self._last_torque: Array | None = None

    def look(self, row: Float[Array, " c"]) -> int:
        """Flags of a sample: MEASURED if all values are valid, HELD if torques equal the stored
        ones, MOVES if a joint moves.

        Missing values are invalid, since comparisons with nan are false.
        """
        joints = len(self._maximum) // 3
        out = MEASURED if bool((np.abs(row) < self._maximum).all()) else 0
        if self._last_torque is not None and bool((row[2 * joints :] == self._last_torque).all()):
            out |= HELD
        if bool((np.abs(row[joints : 2 * joints]) > self._standstill).any()):
            out |= MOVES
        return out

    def hold(self, row: Float[Array, " c"]) -> None:
        """Store the torques of a sample for comparison with the next one."""
        self._last_torque = row[2 * (len(self._maximum) // 3) :].copy()


Screen = NumpyScreen if _kernel is None else _kernel.Screen
