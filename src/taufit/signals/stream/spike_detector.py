"""Single values that cannot be, found as samples come.

A value is suspicious when it is far from the line through the two samples before it. Whether it is
a spike the next sample decides: after a spike the channel is back where it was, after a step (a
reversal of friction, a push) it stays. So only suspicious samples wait, for one sample.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Beyond so many standard deviations of the channel's own noise.
_SIGMAS = 6.0
# Mean magnitude of normal noise to its standard deviation; the error of a value foretold by a line
# through two noisy ones, over their noise; the same for the middle of three.
_MEAN_TO_STD, _EXTRAPOLATION, _MIDDLE = 1.2533, 6.0**0.5, 1.5**0.5
# A channel is back where it was when it differs by less than this share of the spike.
_RETURN_FRACTION = 0.5
# Samples over which a channel's noise is averaged, and before which it is not known at all.
_MEMORY, _MIN_SAMPLES = 50, 8


class NumpySpikeDetector:
    """Noise of every channel, and which values are out of its reach.

    Args:
        floor: Deviations below this are no spikes, per channel.
    """

    __slots__ = ("_count", "_query", "_query_error", "_scale", "_slope", "_time", "_value", "floor")

    def __init__(self, floor: Float[Array, " c"]) -> None:
        self.floor = floor
        self._scale = np.zeros_like(floor)
        self._count = 0
        self.clear()

    def clear(self) -> None:
        """The next sample follows on none; the noise of the channels stays known."""
        self._value: Array | None = None
        self._slope: Array | None = None
        self._time = 0.0
        # The values asked about last, and how far they were off.
        self._query: Array | None = None
        self._query_error: Array | None = None

    def suspicious(self, time: float, values: Float[Array, " c"]) -> bool:
        """Whether a value is far from where its channel was going."""
        error = self._error(time, values)
        if error is None or self._count < _MIN_SAMPLES:
            return False
        reach = np.maximum(self.floor, (_SIGMAS * _MEAN_TO_STD) * self._scale)
        return bool((error > reach).any())

    def is_spike(
        self, time: float, values: Float[Array, " c"], later: float, after: Float[Array, " c"]
    ) -> bool:
        """Whether a suspicious sample is off the line from the last one to the next, and alone."""
        before = self._value
        if before is None:
            return False
        fraction = (time - self._time) / (later - self._time)
        deviation = np.abs(values - before - fraction * (after - before))
        noise = (_SIGMAS * _MEAN_TO_STD * _MIDDLE / _EXTRAPOLATION) * self._scale
        is_far = deviation > np.maximum(self.floor, noise)
        return bool((is_far & (np.abs(after - before) < _RETURN_FRACTION * deviation)).any())

    def accept(self, time: float, values: Float[Array, " c"]) -> None:
        """This sample is the last one from now on."""
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
    """What `NumpyGuard` does."""

    def clear(self) -> None:
        """The next sample follows on none."""

    def suspicious(self, time: float, values: Float[Array, " c"]) -> bool:
        """Whether a value is far from where its channel was going."""

    def is_spike(
        self, time: float, values: Float[Array, " c"], later: float, after: Float[Array, " c"]
    ) -> bool:
        """Whether a suspicious sample is off, and alone."""

    def accept(self, time: float, values: Float[Array, " c"]) -> None:
        """This sample is the last one from now on."""


def spike_detector(floor: Float[Array, " c"]) -> SpikeDetector:
    """A guard, compiled where there is a compiler."""
    if _kernel is None:
        return NumpySpikeDetector(floor)
    sigmas, middle = _SIGMAS * _MEAN_TO_STD, _MIDDLE / _EXTRAPOLATION
    detector: SpikeDetector = _kernel.SpikeGuard(
        floor, sigmas, middle, _RETURN_FRACTION, _MEMORY, _MIN_SAMPLES
    )
    return detector
