"""Whether a row of values can be a measurement: inside its bounds, and not just held."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Bits of what `look` says.
MEASURED, HELD, MOVES = 1, 2, 4


class NumpyScreen:
    """Looks at positions, velocities and torques side by side.

    Args:
        maximum: Magnitudes beyond which a value is no measurement.
        standstill: Slower than this nothing moves [rad/s or m/s].
    """

    def __init__(self, maximum: Float[Array, " c"], standstill: float) -> None:
        self._maximum, self._standstill = maximum, standstill
        self._last_torque: Array | None = None

    def look(self, row: Float[Array, " c"]) -> int:
        """MEASURED where all values are inside, HELD where torques are those held, MOVES in motion.

        A value that is missing is not inside: comparisons with nan are false.
        """
        joints = len(self._maximum) // 3
        out = MEASURED if bool((np.abs(row) < self._maximum).all()) else 0
        if self._last_torque is not None and bool((row[2 * joints :] == self._last_torque).all()):
            out |= HELD
        if bool((np.abs(row[joints : 2 * joints]) > self._standstill).any()):
            out |= MOVES
        return out

    def hold(self, row: Float[Array, " c"]) -> None:
        """Remember the torques of a row."""
        self._last_torque = row[2 * (len(self._maximum) // 3) :].copy()


Screen = NumpyScreen if _kernel is None else _kernel.Screen
