"""Resampling of samples at any rate, with jitter, to a uniform time grid.

A time bin holds the mean of the linear interpolation of the samples over the bin,

    y_k = (1/h) integral over [t_k - h/2, t_k + h/2] of y(t) dt,

so fast samples are averaged and slow ones interpolated, equally for all channels.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Fraction of a bin that may be missing at its end, since time stamps are rounded.
_ROUNDING_FRACTION = 1e-3


class TimeGrid:
    """Linear interpolation of samples pushed one by one, averaged bin by bin.

    Attributes:
        step: Width of a bin [s].
        channels: Number of values per sample.
        longest: Longest step in time that is not a gap [s].
    """

    __slots__ = (
        *("_edge", "_count", "_start", "_bins_taken", "_time", "_values"),
        *("channels", "max_step", "step"),
    )

    def __init__(self, step: float, channels: int, max_step: float, capacity: int = 4096) -> None:
        self.step, self.channels, self.max_step = step, channels, max_step
        self._time = np.empty(capacity)
        self._values = np.empty((capacity, channels))
        self._count = 0
        self._start = self._edge = 0.0
        self._bins_taken = 0

    @property
    def waiting(self) -> int:
        """Number of samples waiting."""
        return self._count

    def push(self, time: float, row: Float[Array, " c"]) -> None:
        """Add one sample, later than the last."""
        i = self._count
        if i == len(self._time):
            self._time = np.concatenate([self._time, np.empty_like(self._time)])
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        self._time[i] = time
        self._values[i] = row
        if i == 0:
            self._start = self._edge = time
            self._bins_taken = 0
        self._count = i + 1

    @property
    def last_time(self) -> float | None:
        """Time of the newest sample [s], None without one."""
        return float(self._time[self._count - 1]) if self._count else None

    def gap_before(self, time: float) -> float | None:
        """Time of the newest sample if the next one comes after a gap, else None [s]."""
        last = self.last_time
        return last if last is not None and time - last > self.max_step else None

    @property
    def pending_s(self) -> float:
        """Time between the last bin taken and the newest sample [s]."""
        return float(self._time[self._count - 1]) - self._edge if self._count else 0.0

    @property
    def complete_bins(self) -> int:
        """Number of complete bins; samples at the rate of the grid complete one each."""
        return int(self.pending_s / self.step + _ROUNDING_FRACTION)

    def take(self) -> tuple[Float[Array, " n"], Float[Array, "n c"]]:
        """Take all complete bins: their centres and means."""
        n = self.complete_bins
        if n < 1 or self._count < 2:
            return np.empty(0), np.empty((0, self.channels))
        if _kernel is not None:
            centres_out, cells = np.empty(n), np.empty((n, self.channels))
            self._count = _kernel.grid_cells(
                self._time, self._values, self._count, self._edge, self.step, centres_out, cells
            )
            self._advance(n)
            return centres_out, cells
        time, values = self._time[: self._count], self._values[: self._count]
        edges = self._edge + self.step * np.arange(n + 1)
        before = np.clip(np.searchsorted(time, edges, side="right") - 1, 0, self._count - 2)
        width = np.diff(time)
        cumulative = np.zeros_like(values)
        np.cumsum(0.5 * width[:, None] * (values[1:] + values[:-1]), axis=0, out=cumulative[1:])
        offset = edges - time[before]
        # The end of the last bin may lie slightly after the last sample: extrapolate by at most the
        # last step.
        fraction = np.minimum(offset / width[before], 2.0)[:, None]
        edge_values = values[before] + fraction * (values[before + 1] - values[before])
        integral = cumulative[before] + 0.5 * offset[:, None] * (values[before] + edge_values)
        centres = edges[:-1] + 0.5 * self.step
        out = np.diff(integral, axis=0) / self.step
        self._advance(n)
        self._drop_before(int(before[-1]))
        return centres, out

    def _advance(self, cells: int) -> None:
        """Advance the edge, computed from the start to avoid accumulated rounding."""
        self._bins_taken += cells
        self._edge = self._start + self.step * self._bins_taken

    def _drop_before(self, first: int) -> None:
        """Drop samples before one; the sample before the next bin's edge stays."""
        remaining = self._count - first
        if first:
            self._time[:remaining] = self._time[first : self._count].copy()
            self._values[:remaining] = self._values[first : self._count].copy()
            self._count = remaining

    def clear(self) -> None:
        """Drop all samples; the next one starts a new grid."""
        self._count = 0
