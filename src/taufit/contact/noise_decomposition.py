"""Decomposition of residual noise into velocity noise, torque noise and random walk.

The difference of the means of two adjacent windows of n bins of a joint's residual has

    half its variance = 3 v / n^2 + white (1 - 1/(2 n)) / n + walk n / 3,

with v = sum over the joints of (M sigma / h)^2: velocity noise telescopes over a window, torque
noise averages out, a random walk grows. Windows of several lengths separate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int

# Quantile at which increments are clipped.
_CLIP_QUANTILE = 0.999
# Lower limit of torque noise, as fraction of the variance of the shortest windows.
_MIN_WHITE_FRACTION = 0.1
# Lower limit of the random walk per bin, in variances of torque noise.
_MIN_WALK_RATIO = 0.0005
# Smallest number of differences for an estimate.
_MIN_DIFFERENCES = 100
_MAX_SWEEPS = 300


class WindowStatistics(NamedTuple):
    """Window statistics of one joint in one friction regime.

    Attributes:
        cells: Window lengths [bins].
        half: Half the variance of the difference of adjacent means, per length [(N m)^2].
        inertia: Mean of (M_jk / h)^2, per joint k.
    """

    bins: Float[Array, " n"]
    half_variance: Float[Array, " n"]
    inertia: Float[Array, " j"]

    def relative_shapes(self) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
        """Curves of velocity noise, torque noise and random walk, relative to `half_variance`."""
        n = self.bins
        return (
            3.0 / n**2 / self.half_variance,
            (1.0 - 0.5 / n) / n / self.half_variance,
            n / 3.0 / self.half_variance,
        )


def window_differences(torque: Float[Array, " n"], bins: int) -> Float[Array, " m"]:
    """Difference of the means of two adjacent windows, the second ending with each bin."""
    total = np.concatenate([[0.0], np.cumsum(torque)])
    return (total[2 * bins :] - 2.0 * total[bins:-bins] + total[: -2 * bins]) / bins


def window_statistics(
    runs: Sequence[tuple[Float[Array, " _"], Bool[Array, " _"], Int[Array, " _"], Array]],
    lengths: Sequence[int],
) -> WindowStatistics | None:
    """Statistics of windows of several lengths of one joint; None if there are too few.

    Args:
        runs: Residual, mask of valid bins, count of regime changes, and (M_jk / h)^2 per bin.
        lengths: Window lengths [bins].
    """
    if not lengths:
        # Slow recordings have one length only, brief regimes none.
        return None
    half, inertia = [], np.empty(0)
    for n in lengths:
        differences, inertias = [], []
        for torque, valid, jumps, squared_mass in runs:
            if len(torque) <= 2 * n:
                continue
            last_bin = np.arange(2 * n - 1, len(torque))
            is_usable = valid[last_bin] & (jumps[last_bin] == jumps[last_bin - 2 * n + 1])
            differences.append(window_differences(torque, n)[is_usable])
            inertias.append(squared_mass[last_bin][is_usable])
        all_differences = np.concatenate(differences) if differences else np.empty(0)
        if len(all_differences) < _MIN_DIFFERENCES:
            return None
        limit = np.quantile(np.abs(all_differences), _CLIP_QUANTILE)
        half.append(max(0.5 * float(np.mean(np.clip(all_differences, -limit, limit) ** 2)), 1e-18))
        inertia = np.concatenate(inertias).mean(axis=0)
    return WindowStatistics(np.asarray(lengths, float), np.array(half), inertia)


def velocity_noise(statistics: Sequence[WindowStatistics]) -> Float[Array, " j"]:
    """Velocity variance of every joint that fits the windows of all joints together."""
    joints = len(statistics)
    rows, right = [], []
    for j, windows in enumerate(statistics):
        velocity_shape, white, walk = windows.relative_shapes()
        for k in range(len(windows.bins)):
            row = np.zeros(3 * joints)
            row[:joints] = velocity_shape[k] * windows.inertia
            row[joints + j], row[2 * joints + j] = white[k], walk[k]
            rows.append(row)
            right.append(1.0)
    return nonnegative_least_squares(np.array(rows), np.array(right))[:joints]


def fit_white_noise_and_random_walk(
    windows: WindowStatistics, velocity: Float[Array, " j"]
) -> tuple[float, float]:
    """Variance of torque noise and growth of the level's variance per bin.

    Args:
        windows: Windows of the joint.
        velocity: Variance of the joints' velocities.
    """
    velocity_shape, white, walk = windows.relative_shapes()
    remaining = np.maximum(1.0 - velocity_shape * float(windows.inertia @ velocity), 0.02)
    solution = nonnegative_least_squares(np.stack([white, walk], axis=1), remaining)
    white_variance = max(float(solution[0]), _MIN_WHITE_FRACTION / float(white[0]))
    return white_variance, max(float(solution[1]), _MIN_WALK_RATIO * white_variance)


def nonnegative_least_squares(
    rows: Float[Array, "n p"], right: Float[Array, " n"]
) -> Float[Array, " p"]:
    """Least squares with nonnegative unknowns, by coordinate descent."""
    size = np.linalg.norm(rows, axis=0)
    size[size == 0.0] = 1.0
    rows = rows / size
    gram, target = rows.T @ rows, rows.T @ right
    out = np.zeros(rows.shape[1])
    for _ in range(_MAX_SWEEPS):
        before = out.copy()
        for i in range(len(out)):
            if gram[i, i] > 0.0:
                out[i] = max(out[i] + (target[i] - gram[i] @ out) / gram[i, i], 0.0)
        if np.array_equal(out, before):
            break
    return out / size
