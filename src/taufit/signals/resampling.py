"""Resampling from recorded time stamps to a uniform grid.

Values on the grid are cubics through the four recorded samples around them (Lagrange). Unlike a
spline this is local (spikes and steps stay where they are) and needs no solve; compared with linear
interpolation its error at frequency f is of order (2 pi f h)^4 instead of squared: 94 Hz data lose
0.03 % at 5 Hz instead of 1.4 %.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.recording.timing import Timing

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Usual logger rates, up to a power of ten [Hz].
_USUAL_RATES = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)

# Samples closer than this fraction of a period are merged, since interpolation through both would
# amplify their noise.
MERGE_FRACTION = 0.25
_BLOCK = 8192


def grid_rate(timing: Timing) -> float:
    """Rate the logger was set to [Hz]: nominal, or the nearest usual rate if time stamps jitter."""
    rate = timing.nominal_hz
    if timing.jitter * rate < 0.01:
        integer_rate = max(1.0, float(round(rate)))
        return integer_rate if abs(rate / integer_rate - 1.0) < 0.005 else rate
    choices = 10.0 ** np.floor(np.log10(rate)) * np.array(_USUAL_RATES)
    return float(choices[np.argmin(np.abs(np.log(choices / rate)))])


def monotonic_intervals(time: Float[Array, " n"]) -> tuple[slice, ...]:
    """Intervals in which time does not jump back by more than two periods."""
    steps = np.diff(time)
    forward = steps[steps > 0]
    period = float(np.median(forward)) if len(forward) else 0.0
    edges = [0, *(np.flatnonzero(steps < -2.0 * period) + 1).tolist(), len(time)]
    return tuple(slice(a, b) for a, b in pairwise(edges))


class MergedGroups(NamedTuple):
    """Time order of samples, and the start of each group of close ones in that order."""

    order: Int[Array, " n"]
    first: Int[Array, " m"]


def merge_close_samples(
    time: Float[Array, " n"], columns: Float[Array, "n c"], period: float
) -> tuple[Float[Array, " m"], Float[Array, "m c"], MergedGroups | None]:
    """Sort samples by time and average those closer than a quarter of a period.

    Returns new times and columns, and the groups; None for the groups if nothing changed.
    """
    if np.all(np.diff(time) > MERGE_FRACTION * period):
        return time, columns, None
    order = np.argsort(time, kind="stable")
    time, columns = time[order], columns[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(time) > MERGE_FRACTION * period]))
    counts = np.diff(np.concatenate([first, [len(time)]])).astype(float)
    time = np.add.reduceat(time, first) / counts
    columns = np.add.reduceat(columns, first, axis=0) / counts[:, None]
    return time, columns, MergedGroups(order, first)


def split_at_gaps(time: Float[Array, " n"], max_gap_s: float) -> tuple[slice, ...]:
    """Intervals without a time step above `max_gap_s`."""
    cuts = np.flatnonzero(np.diff(time) > max_gap_s) + 1
    edges = [0, *cuts.tolist(), len(time)]
    return tuple(slice(a, b) for a, b in pairwise(edges))


def interpolate(
    time: Float[Array, " m"], columns: Float[Array, "m c"], at: Float[Array, " n"]
) -> Float[Array, "n c"]:
    """Cubic interpolation through the four samples around each instant; constant beyond the ends.

    Args:
        time: Increasing time stamps [s].
        columns: Values, one row per time stamp.
        at: Instants to evaluate [s].
    """
    m = len(time)
    if m == 1:
        return np.repeat(columns, len(at), axis=0)
    at = np.clip(at, time[0], time[-1])
    if m < 4:
        return np.stack([np.interp(at, time, c) for c in columns.T], axis=1)
    if m == len(at) and np.abs(time - at).max() < 1e-9 * max(1.0, abs(at[-1] - at[0])):
        return np.array(columns, float)
    out = np.empty((len(at), columns.shape[1]))
    # Block by block the samples in use stay in the cache.
    for start in range(0, len(at), _BLOCK):
        block = slice(start, start + _BLOCK)
        instants = at[block]
        first = np.clip(np.searchsorted(time, instants, side="right") - 2, 0, m - 4)
        nodes = [time[first + k] for k in range(4)]
        total = np.zeros((len(instants), columns.shape[1]))
        for k in range(4):
            weight = np.ones_like(instants)
            for node in range(4):
                if node != k:
                    weight *= (instants - nodes[node]) / (nodes[k] - nodes[node])
            total += weight[:, None] * columns[first + k]
        out[block] = total
    return out


def decimate(columns: Float[Array, "n c"], factor: int) -> Float[Array, "m c"]:
    """Every `factor`-th sample after a zero-phase anti-aliasing filter.

    The filter is a windowed sinc of 20 `factor` + 1 taps. Beyond the ends columns continue along
    the line through their first and last value.
    """
    n = len(columns)
    if factor == 1 or n == 0:
        return columns
    taps = _anti_aliasing_taps(factor)
    line = columns[0] + np.arange(n)[:, None] * ((columns[-1] - columns[0]) / max(n - 1, 1))
    detrended = np.ascontiguousarray(columns - line, float)
    out = np.zeros((-(-n // factor), columns.shape[1]))
    if _kernel is not None:
        _kernel.decimate_rows(detrended, taps, factor, out)
    else:
        half = len(taps) // 2
        padded = np.pad(detrended, ((half, half + factor), (0, 0)))
        for i, weight in enumerate(taps):
            out += weight * padded[i : i + factor * len(out) : factor][: len(out)]
    return np.asarray(out + line[::factor])


@lru_cache(maxsize=8)
def _anti_aliasing_taps(factor: int) -> Float[Array, " m"]:
    """Windowed sinc (Kaiser) with half its gain at the new Nyquist rate and unit DC gain."""
    steps = np.arange(-10 * factor, 10 * factor + 1)
    taps = np.sinc(steps / factor) * np.kaiser(len(steps), 5.0)
    return np.asarray(taps / taps.sum())


def in_long_gap(
    time: Float[Array, " m"], at: Float[Array, " n"], max_gap_s: float
) -> Bool[Array, " n"]:
    """Instants inside a time step above `max_gap_s`."""
    next_index = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    return np.asarray((time[next_index] - time[next_index - 1]) > max_gap_s)
