"""Samples as they come, at any rate and with jitter, onto a uniform grid.

A cell of the grid holds the average of the broken line through the samples over that cell,

    y_k = (1/h) integral over [t_k - h/2, t_k + h/2] of y(t) dt,

so fast samples are averaged, slow ones interpolated, and every channel is treated alike.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Share of a cell that may be missing at its end: time stamps are rounded.
_ROUNDING = 1e-3


class TimeGrid:
    """The broken line through samples pushed one by one, averaged cell by cell.

    Attributes:
        step: Width of a cell [s].
        channels: Values per sample.
        longest: A step in time longer than this is a gap [s].
    """

    __slots__ = (
        *("_edge", "_filled", "_start", "_taken", "_time", "_values"),
        *("channels", "longest", "step"),
    )

    def __init__(self, step: float, channels: int, longest: float, room: int = 4096) -> None:
        self.step, self.channels, self.longest = step, channels, longest
        self._time = np.empty(room)
        self._values = np.empty((room, channels))
        self._filled = 0
        self._start = self._edge = 0.0
        self._taken = 0

    @property
    def filled(self) -> int:
        """Samples waiting."""
        return self._filled

    def push(self, time: float, row: Float[Array, " c"]) -> None:
        """One sample, later than the last."""
        i = self._filled
        if i == len(self._time):
            self._time = np.concatenate([self._time, np.empty_like(self._time)])
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        self._time[i] = time
        self._values[i] = row
        if i == 0:
            self._start = self._edge = time
            self._taken = 0
        self._filled = i + 1

    @property
    def last(self) -> float | None:
        """Time of the newest sample."""
        return float(self._time[self._filled - 1]) if self._filled else None

    def gap_before(self, time: float) -> float | None:
        """The time of the newest sample where the next comes too long after it."""
        last = self.last
        return last if last is not None and time - last > self.longest else None

    @property
    def ahead(self) -> float:
        """How far the samples reach beyond the cells taken [s]."""
        return float(self._time[self._filled - 1]) - self._edge if self._filled else 0.0

    @property
    def complete(self) -> int:
        """How many cells can be taken: samples as fast as the grid complete one each."""
        return int(self.ahead / self.step + _ROUNDING)

    def take(self) -> tuple[Float[Array, " n"], Float[Array, "n c"]]:
        """All complete cells: their centres and averages."""
        n = self.complete
        if n < 1 or self._filled < 2:
            return np.empty(0), np.empty((0, self.channels))
        if _kernel is not None:
            middles, cells = np.empty(n), np.empty((n, self.channels))
            self._filled = _kernel.grid_cells(
                self._time, self._values, self._filled, self._edge, self.step, middles, cells
            )
            self._advance(n)
            return middles, cells
        time, values = self._time[: self._filled], self._values[: self._filled]
        edges = self._edge + self.step * np.arange(n + 1)
        before = np.clip(np.searchsorted(time, edges, side="right") - 1, 0, self._filled - 2)
        width = np.diff(time)
        whole = np.zeros_like(values)
        np.cumsum(0.5 * width[:, None] * (values[1:] + values[:-1]), axis=0, out=whole[1:])
        ahead = edges - time[before]
        # The end of the last cell may lie a little beyond the last sample: the line goes on, by no
        # more than the last step.
        share = np.minimum(ahead / width[before], 2.0)[:, None]
        at = values[before] + share * (values[before + 1] - values[before])
        integral = whole[before] + 0.5 * ahead[:, None] * (values[before] + at)
        centres = edges[:-1] + 0.5 * self.step
        out = np.diff(integral, axis=0) / self.step
        self._advance(n)
        self._drop(int(before[-1]))
        return centres, out

    def _advance(self, cells: int) -> None:
        """From the start on: added up, steps of stamps of today would drift by their rounding."""
        self._taken += cells
        self._edge = self._start + self.step * self._taken

    def _drop(self, keep: int) -> None:
        """Forget samples before one; that before the next cell's edge stays, its line begins."""
        left = self._filled - keep
        if keep:
            self._time[:left] = self._time[keep : self._filled].copy()
            self._values[:left] = self._values[keep : self._filled].copy()
            self._filled = left

    def clear(self) -> None:
        """Forget everything; the next sample starts a new line."""
        self._filled = 0
