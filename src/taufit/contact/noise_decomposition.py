"""What the noise of a residual is made of: velocity noise, torque noise and a level that wanders.

The difference of the means of two adjoining windows of n cells of a joint's residual has

    half its variance = 3 v / n^2 + white (1 - 1/(2 n)) / n + walk n / 3,

with v = sum over the joints of (M sigma / h)^2: velocity noise telescopes over a window, torque
noise averages, a level that wanders grows. So windows of several lengths tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int

# Increments beyond this quantile count as much as it.
_CLIP_QUANTILE = 0.999
# Least share of the shortest windows' variance that is torque noise.
_MIN_WHITE_FRACTION = 0.1
# Least wandering per cell, in variances of torque noise.
_MIN_WALK_RATIO = 0.0005
# A part of the noise is learnt from at least so many differences.
_MIN_DIFFERENCES = 100
_MAX_SWEEPS = 300


class WindowStatistics(NamedTuple):
    """Windows of one joint in one state.

    Attributes:
        bins: Their lengths.
        half_variance: Half the variance of the difference of adjoining means, per length [(N m)^2].
        inertia: Mean of (M_jk / h)^2 there, per joint k.
    """

    bins: Float[Array, " n"]
    half_variance: Float[Array, " n"]
    inertia: Float[Array, " j"]

    def relative_shapes(self) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
        """Of velocity noise, torque noise and wandering, relative to what was heard."""
        n = self.bins
        return (
            3.0 / n**2 / self.half_variance,
            (1.0 - 0.5 / n) / n / self.half_variance,
            n / 3.0 / self.half_variance,
        )


def window_differences(torque: Float[Array, " n"], bins: int) -> Float[Array, " m"]:
    """Difference of the means of two adjoining windows, the second ending with each cell."""
    total = np.concatenate([[0.0], np.cumsum(torque)])
    return (total[2 * bins :] - 2.0 * total[bins:-bins] + total[: -2 * bins]) / bins


def window_statistics(
    runs: Sequence[tuple[Float[Array, " n"], Bool[Array, " n"], Int[Array, " n"], Array]],
    lengths: Sequence[int],
) -> WindowStatistics | None:
    """Windows of several lengths of one joint; None where there are too few.

    Args:
        runs: Residual, whether each cell counts, a count that grows where the residual is defined
            anew, and (M_jk / h)^2 of every cell.
        lengths: Of the windows, in cells.
    """
    if not lengths:
        # Slow logs have room for one length, and states that are left soon for none.
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
    """Variance of every joint's velocity that explains all joints' windows together."""
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
    """Variance of torque noise, and by how much the level's grows with a cell.

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
    """Least squares for unknowns that are not negative, one after the other until they settle."""
    size = np.linalg.norm(rows, axis=0)
    size[size == 0.0] = 1.0
    rows = rows / size
    gram, target = rows.T @ rows, rows.T @ right
    out = np.zeros(rows.shape[1])
    for _ in range(_MAX_SWEEPS):
        for i in range(len(out)):
            if gram[i, i] > 0.0:
                out[i] = max(out[i] + (target[i] - gram[i] @ out) / gram[i, i], 0.0)
    return out / size
