"""Noise level of a channel, from differences of neighbouring samples."""

from __future__ import annotations

import math

import numpy as np

from taufit.core.arrays import Array, Bool, Float

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

_ORDERS = (2, 3, 4)
# Longer recordings are sampled in chunks: rows per chunk, number of chunks, rows from which on.
_CHUNK, _CHUNKS, _MAX_ROWS = 1_000, 5, 20_000
# Bandwidth of robot motion [Hz]; largest noise ratio of measured to differentiated velocity.
_BAND_HZ, _MAX_NOISE_RATIO = 10.0, 3.0
# Quantisation: smallest number of distances, tolerance [steps], smallest fraction of values on it.
_MIN_DISTANCES, _GRID_TOLERANCE, _ON_GRID = 3, 0.02, 0.95
# Clipping level [std], and std of a normal distribution clipped there.
_CLIP, _CLIPPED_STD = 3.0, 0.98658


def noise_std(
    columns: Float[Array, "n c"], selected: Bool[Array, " n"] | None = None
) -> Float[Array, " c"]:
    """Standard deviation of white noise on each column.

    The k-th difference of white noise with variance s^2 has variance (2k choose k) s^2, while slow
    motion nearly vanishes. Low orders pass more of the motion, high ones more of a step; both only
    add, so the smallest of three orders is used.

    Args:
        columns: Uniformly sampled channels.
        selected: Rows to use; default all.
    """
    n = len(columns)
    if n <= 2 * max(_ORDERS):
        return np.zeros(columns.shape[1])
    if n > _MAX_ROWS:
        starts = np.linspace(0, n - _CHUNK, _CHUNKS).astype(int)
        parts = [
            noise_std(
                columns[a : a + _CHUNK], None if selected is None else selected[a : a + _CHUNK]
            )
            for a in starts
        ]
        return np.asarray(np.sqrt(np.mean(np.square(parts), axis=0)))
    if _kernel is not None and selected is None:
        out = np.empty(columns.shape[1])
        _kernel.noise_std(np.ascontiguousarray(columns, float), _CLIP, _CLIPPED_STD, out)
        return out
    estimates = []
    difference = np.diff(columns, _ORDERS[0] - 1, axis=0)
    for order in _ORDERS:
        difference = np.diff(difference, axis=0)
        usable = difference
        if selected is not None:
            inside = np.convolve(selected, np.ones(order + 1), "valid") == order + 1
            if np.count_nonzero(inside) > 20:
                usable = difference[inside]
        estimates.append(_clipped_std(np.abs(usable)) / np.sqrt(math.comb(2 * order, order)))
    return np.asarray(np.min(estimates, axis=0))


def quantisation_step(columns: Float[Array, "n c"]) -> Float[Array, " c"]:
    """Step of coarsely quantised columns; 0 where values do not lie on multiples of one step.

    The step is the median distance of neighbouring values that occur more than once. Up to 5 % of
    the values may lie off the multiples or be missing.
    """
    steps = np.zeros(columns.shape[1])
    for k, column in enumerate(columns[:_MAX_ROWS].T):
        values, counts = np.unique(column, return_counts=True)
        distances = np.diff(values[(counts > 1) & np.isfinite(values)])
        step = float(np.median(distances)) if len(distances) > _MIN_DISTANCES else 0.0
        if step > 0.0:
            multiples = column / step
            is_on_grid = np.abs(multiples - np.round(multiples)) < _GRID_TOLERANCE
            steps[k] = step if np.mean(is_on_grid) > _ON_GRID else 0.0
    return steps


def is_velocity_too_noisy(
    velocity_noise: Float[Array, " j"], position_noise: Float[Array, " j"]
) -> Bool[Array, " j"]:
    """Joints whose velocity is better obtained by differentiating position.

    Over a band of f Hz white position noise s causes the same acceleration noise as white velocity
    noise 2 pi f sqrt(3/5) s. Measured velocity is used unless it is several times worse.
    """
    return np.asarray(
        velocity_noise > _MAX_NOISE_RATIO * 2.0 * np.pi * _BAND_HZ * np.sqrt(0.6) * position_noise
    )


def _clipped_std(magnitude: Float[Array, "n c"]) -> Float[Array, " c"]:
    """Standard deviation without values above 3 sigma (steps and spikes).

    A channel too coarsely quantised to start from its median uses its mean square.
    """
    trimmed = np.minimum(magnitude, np.percentile(magnitude, 99.0, axis=0))
    rms = np.sqrt(np.mean(np.square(trimmed), axis=0))
    std = 1.4826 * np.median(magnitude, axis=0)
    for _ in range(8):
        inside = magnitude <= _CLIP * std
        count = np.maximum(np.count_nonzero(inside, axis=0), 1)
        squares = np.einsum("nc,nc,nc->c", inside, magnitude, magnitude)
        previous, std = std, np.sqrt(squares / count) / _CLIPPED_STD
        if np.array_equal(previous, std):
            break
    return np.asarray(np.where(std > 0.1 * rms, std, rms))
