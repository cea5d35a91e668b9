"""How noisy a channel is, from what no motion can explain: differences of neighbouring samples."""

from __future__ import annotations

import numpy as np
from scipy.special import comb

from taufit.arrays import Array, Bool, Float

ORDER = 4
_CHUNK, _CHUNKS = 2_000, 40


def noise_std(
    columns: Float[Array, "n c"], where: Bool[Array, " n"] | None = None
) -> Float[Array, " c"]:
    """Standard deviation of white noise on each column.

    The fourth difference of white noise with variance s^2 has variance 70 s^2, while a motion
    slower than a tenth of the sampling rate all but vanishes in it. The median makes steps and
    spikes harmless; a channel too coarsely quantised for a median uses the mean square.

    Args:
        columns: Neighbouring rows are neighbouring samples.
        where: Rows to judge by; all by default.
    """
    n = len(columns)
    if n <= 2 * ORDER:
        return np.zeros(columns.shape[1])
    if n > 4 * _CHUNK * _CHUNKS:
        # Stretches spread over a long recording judge it as well as all of it.
        starts = np.linspace(0, n - _CHUNK, _CHUNKS).astype(int)
        parts = [
            noise_std(columns[a : a + _CHUNK], None if where is None else where[a : a + _CHUNK])
            for a in starts
        ]
        return np.sqrt(np.mean(np.square(parts), axis=0))
    gain = np.sqrt(np.sum(comb(ORDER, np.arange(ORDER + 1)) ** 2))
    difference = np.diff(columns, ORDER, axis=0) / gain
    if where is not None:
        usable = np.convolve(where, np.ones(ORDER + 1), "valid") == ORDER + 1
        if np.count_nonzero(usable) > 20:
            difference = difference[usable]
    magnitude = np.abs(difference)
    robust = 1.4826 * np.median(magnitude, axis=0)
    trimmed = np.minimum(magnitude, np.percentile(magnitude, 99.0, axis=0))
    plain = np.sqrt(np.mean(np.square(trimmed), axis=0))
    return np.where(robust > 0.1 * plain, robust, plain)
