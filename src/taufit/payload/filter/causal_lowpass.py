"""Causal low-pass with state, equal for torque and all regressor columns.

A linear filter F satisfies F(tau) = F(W) theta, so its delay is the same on both sides of the
equation.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.signals.filtering import ORDER
from taufit.signals.recursive_filter import butterworth, filter_sections, steady_state

# Two-sided noise bandwidth of a 4th-order Butterworth low-pass, relative to its cut-off.
NOISE_BANDWIDTH = 2.053


class CausalLowpass:
    """4th-order Butterworth low-pass on many channels, initially at rest at the first value."""

    __slots__ = ("_sections", "_start", "_state", "delay")

    def __init__(self, rate_hz: float, cutoff_hz: float) -> None:
        self._sections = None
        self.delay = 0.0
        if np.isfinite(cutoff_hz) and cutoff_hz < 0.45 * rate_hz:
            self._sections = butterworth(ORDER, cutoff_hz, rate_hz)
            self._start = steady_state(self._sections)
            # Group delay at low frequency of a 4th-order Butterworth low-pass.
            self.delay = 2.613 / (2.0 * np.pi * cutoff_hz)
        self._state: Array | None = None

    @property
    def sections(self) -> tuple[Float[Array, "s 6"], Float[Array, "s 2"]]:
        """Sections and their steady states for constant input 1; none without a low-pass."""
        if self._sections is None:
            return np.empty((0, 6)), np.empty((0, 2))
        return np.ascontiguousarray(self._sections), np.ascontiguousarray(self._start)

    def __call__(self, values: Float[Array, "n c"]) -> Float[Array, "n c"]:
        """Filter the next values of every channel."""
        if self._sections is None or len(values) == 0:
            return values
        if self._state is None:
            self._state = self._start[:, None, :] * values[0][:, None]
        out, self._state = filter_sections(self._sections, values.T, self._state)
        return out.T

    def clear(self) -> None:
        """Reset the state; the next value is the first."""
        self._state = None
