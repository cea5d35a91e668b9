"""Detection of single spikes in a sample stream.

A value is suspicious if it is far from the line through the two previous samples. The next sample
decides: after a spike the channel returns to its previous level, after a step (friction reversal,
push) it does not. So only suspicious samples wait, for one sample.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Detection level in standard deviations of the channel's noise.
_SIGMAS = 6.0
# Ratio of std to mean magnitude of normal noise; error std of linear extrapolation from two noisy
# values, and of interpolation at the middle of three, relative to the noise.
_MEAN_TO_STD, _EXTRAPOLATION, _MIDDLE = 1.2533, 6.0**0.5, 1.5**0.5
# A channel has returned if it differs by less than this fraction of the spike.
_RETURN_FRACTION = 0.5
# Samples over which noise is averaged, and minimum number for an estimate.
_MEMORY, _MIN_SAMPLES = 50, 8


class NumpySpikeDetector:
    """Tracks the noise of every channel and detects values outside it.

    Args:
        floor: Minimum size of a spike per channel.
    """

    __slots__ = ("_count", "_query", "_query_error", "_scale", "_slope", "_time", "_value", "floor")

    def __init__(self, floor: Float[Array, " c"]) -> None:
        self.floor = floor
        self._scale = np.zeros_like(floor)
        self._count = 0
        self.clear()

    def clear(self) -> None:
        """Forget the previous samples; the noise estimates stay."""
        self._value: Array | None = None
        self._slope: Array | None = None
        self._time = 0.0
        # Values of the last query and their extrapolation error.
        self._query: Array | None = None
        self._query_error: Array | None = None

    def suspicious(self, time: float, values: Float[Array, " c"]) -> bool:
        """Whether a value is far from linear extrapolation of its channel."""
        error = self._error(time, values)
        if error is None or self._count < _MIN_SAMPLES:
            return False
        reach = np.maximum(self.floor, (_SIGMAS * _MEAN_TO_STD) * self._scale)
        return bool((error > reach).any())

    def is_spike(
        self, time: float, values: Float[Array, " c"], later: float, after: Float[Array, " c"]
    ) -> bool:
        """Whether a suspicious sample is off the line between its neighbours, which agree."""
        before = self._value
        if before is None:
            return False
        fraction = (time - self._time) / (later - self._time)
        deviation = np.abs(values - before - fraction * (after - before))
        noise = (_SIGMAS * _MEAN_TO_STD * _MIDDLE / _EXTRAPOLATION) * self._scale
        is_far = deviation > np.maximum(self.floor, noise)
        return bool((is_far & (np.abs(after - before) < _RETURN_FRACTION * deviation)).any())

    def accept(self, time: float, values: Float[Array, " c"]) -> None:
        """Add a valid sample."""
        error = self._error(time, values)
        if error is not None:
            self._count += 1
            if self._count > _MEMORY // 2:
                error = np.minimum(error, 4.0 * np.maximum(self._scale, 0.1 * self.floor))
            self._scale += (error - self._scale) / min(self._count, _MEMORY)
        if self._value is not None:
            self._slope = (values - self._value) / (time - self._time)
        self._value, self._time, self._query = values, time, None

    def _error(self, time: float, values: Float[Array, " c"]) -> Array | None:
        if self._value is None or self._slope is None:
            return None
        if self._query is not values:
            self._query = values
            self._query_error = np.abs(values - self._value - (time - self._time) * self._slope)
        return self._query_error


@runtime_checkable
class SpikeDetector(Protocol):
    """Interface of `NumpySpikeDetector`."""

    def clear(self) -> None:
        """Forget the previous samples."""

    def suspicious(self, time: float, values: Float[Array, " c"]) -> bool:
        """Whether a value is far from linear extrapolation of its channel."""

    def is_spike(
        self, time: float, values: Float[Array, " c"], later: float, after: Float[Array, " c"]
    ) -> bool:
        """Whether a suspicious sample is off the line between its neighbours, which agree."""

    def accept(self, time: float, values: Float[Array, " c"]) -> None:
        """Add a valid sample."""


def spike_detector(floor: Float[Array, " c"]) -> SpikeDetector:
    """Create a spike detector, compiled if the kernel is installed."""
    if _kernel is None:
        return NumpySpikeDetector(floor)
    sigmas, middle = _SIGMAS * _MEAN_TO_STD, _MIDDLE / _EXTRAPOLATION
    detector: SpikeDetector = _kernel.SpikeGuard(
        floor, sigmas, middle, _RETURN_FRACTION, _MEMORY, _MIN_SAMPLES
    )
    return detector
