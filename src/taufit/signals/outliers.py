"""Outliers: detection by running median (Hampel filter), replacement by interpolation."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float

_HALF_WINDOW = 3


def find_outliers(
    columns: Float[Array, "n c"], sigmas: float = 6.0, min_deviation: float = 0.0
) -> Bool[Array, "n c"]:
    """Find samples far from the median of the seven samples around them (Hampel filter).

    Far means above `sigmas` robust standard deviations of those seven and of the column's noise,
    2 % of the column's range and 0.5 % of the widest column's range. Steps (friction at a
    reversal), peaks of smooth motion and quantisation at standstill are not outliers.

    Args:
        columns: Columns of one quantity.
        sigmas: Detection level in robust standard deviations; larger values find fewer outliers.
        min_deviation: Smaller deviations are never outliers, in the columns' unit.
    """
    n = len(columns)
    is_outlier = np.zeros(columns.shape, bool)
    if n < 2 * _HALF_WINDOW + 1:
        return is_outlier
    stride = max(1, n // 10_000)
    low, high = np.percentile(columns[::stride], (1.0, 99.0), axis=0)
    reach = np.maximum(0.02 * (high - low), 0.005 * np.max(high - low))
    for c, x in enumerate(columns.T):
        x = np.ascontiguousarray(x)
        bend = np.abs(x[1:-1] - 0.5 * (x[:-2] + x[2:]))
        scale = 1.4826 * float(np.median(bend[::stride]))
        floor = max(sigmas * scale, float(reach[c]), min_deviation)
        # A lone spike bends the curve at itself by its height, at its neighbours by half of it.
        suspects = np.flatnonzero(bend > 0.5 * floor) + 1
        if len(suspects) == 0 or floor == 0.0:
            continue
        window_index = np.clip(
            suspects[:, None] + np.arange(-_HALF_WINDOW, _HALF_WINDOW + 1), 0, n - 1
        )
        window = x[window_index]
        median = np.median(window, axis=1)
        window_std = 1.4826 * np.median(np.abs(window - median[:, None]), axis=1)
        deviation = np.abs(x[suspects] - median)
        is_outlier[suspects[(deviation > floor) & (deviation > sigmas * window_std)], c] = True
    return is_outlier


def interpolate_outliers(
    time: Float[Array, " n"], columns: Float[Array, "n c"], bad: Bool[Array, "n c"]
) -> Float[Array, "n c"]:
    """Replace bad samples by linear interpolation between good ones."""
    if not bad.any():
        return columns
    out = np.array(columns)
    for c in np.flatnonzero(bad.any(axis=0)):
        is_bad = bad[:, c]
        if not is_bad.all():
            out[is_bad, c] = np.interp(time[is_bad], time[~is_bad], columns[~is_bad, c])
    return out
