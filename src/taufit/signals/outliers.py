"""Single samples that cannot be: found by the running median, replaced from their neighbours."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float

_HALF = 3


def find_outliers(
    columns: Float[Array, "n c"], sigmas: float = 6.0, least: float = 0.0
) -> Bool[Array, "n c"]:
    """Samples far from the median of the seven around them (Hampel).

    Far means beyond `sigmas` robust standard deviations of those seven and of the whole column's
    noise, beyond 2 % of the column's range and 0.5 % of the widest column's: steps, such as
    friction at a reversal, peaks of a smooth motion and the last digit of a standing joint pass.

    Args:
        columns: Of one quantity.
        sigmas: How far is too far.
        least: Deviations below this are never outliers, in the columns' unit.
    """
    n = len(columns)
    found = np.zeros(columns.shape, bool)
    if n < 2 * _HALF + 1:
        return found
    coarse = max(1, n // 10_000)
    low, high = np.percentile(columns[::coarse], (1.0, 99.0), axis=0)
    reach = np.maximum(0.02 * (high - low), 0.005 * np.max(high - low))
    for c, x in enumerate(columns.T):
        x = np.ascontiguousarray(x)
        bend = np.abs(x[1:-1] - 0.5 * (x[:-2] + x[2:]))
        scale = 1.4826 * float(np.median(bend[::coarse]))
        floor = max(sigmas * scale, float(reach[c]), least)
        # A lone spike bends the curve at itself by its height, at its neighbours by half of it.
        suspects = np.flatnonzero(bend > 0.5 * floor) + 1
        if len(suspects) == 0 or floor == 0.0:
            continue
        around = np.clip(suspects[:, None] + np.arange(-_HALF, _HALF + 1), 0, n - 1)
        window = x[around]
        median = np.median(window, axis=1)
        spread = 1.4826 * np.median(np.abs(window - median[:, None]), axis=1)
        away = np.abs(x[suspects] - median)
        found[suspects[(away > floor) & (away > sigmas * spread)], c] = True
    return found


def interpolate_outliers(
    time: Float[Array, " n"], columns: Float[Array, "n c"], bad: Bool[Array, "n c"]
) -> Float[Array, "n c"]:
    """Bad samples on the straight line between the good ones around them."""
    if not bad.any():
        return columns
    out = np.array(columns)
    for c in np.flatnonzero(bad.any(axis=0)):
        wrong = bad[:, c]
        if not wrong.all():
            out[wrong, c] = np.interp(time[wrong], time[~wrong], columns[~wrong, c])
    return out
