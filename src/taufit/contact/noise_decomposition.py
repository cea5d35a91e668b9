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
_LARGEST = 0.999
# Least share of the shortest windows' variance that is torque noise.
_LEAST_WHITE = 0.1
# Least wandering per cell, in variances of torque noise.
_LEAST_WALK = 0.0005
# A part of the noise is learnt from at least so many differences.
_FEWEST = 100
_SWEEPS = 300


class WindowStatistics(NamedTuple):
    """Windows of one joint in one state.

    Attributes:
        cells: Their lengths.
        half: Half the variance of the difference of adjoining means, per length [(N m)^2].
        inertia: Mean of (M_jk / h)^2 there, per joint k.
    """

    cells: Float[Array, " n"]
    half: Float[Array, " n"]
    inertia: Float[Array, " j"]

    def shapes(self) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
        """Of velocity noise, torque noise and wandering, relative to what was heard."""
        n = self.cells
        return 3.0 / n**2 / self.half, (1.0 - 0.5 / n) / n / self.half, n / 3.0 / self.half


def window_differences(torque: Float[Array, " n"], cells: int) -> Float[Array, " m"]:
    """Difference of the means of two adjoining windows, the second ending with each cell."""
    total = np.concatenate([[0.0], np.cumsum(torque)])
    return (total[2 * cells :] - 2.0 * total[cells:-cells] + total[: -2 * cells]) / cells


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
        found, square = [], []
        for torque, counts, jumps, mass in runs:
            if len(torque) <= 2 * n:
                continue
            last = np.arange(2 * n - 1, len(torque))
            good = counts[last] & (jumps[last] == jumps[last - 2 * n + 1])
            found.append(window_differences(torque, n)[good])
            square.append(mass[last][good])
        every = np.concatenate(found) if found else np.empty(0)
        if len(every) < _FEWEST:
            return None
        most = np.quantile(np.abs(every), _LARGEST)
        half.append(max(0.5 * float(np.mean(np.clip(every, -most, most) ** 2)), 1e-18))
        inertia = np.concatenate(square).mean(axis=0)
    return WindowStatistics(np.asarray(lengths, float), np.array(half), inertia)


def velocity_noise(heard: Sequence[WindowStatistics]) -> Float[Array, " j"]:
    """Variance of every joint's velocity that explains all joints' windows together."""
    joints = len(heard)
    rows, right = [], []
    for j, one in enumerate(heard):
        moved, white, walk = one.shapes()
        for k in range(len(one.cells)):
            row = np.zeros(3 * joints)
            row[:joints] = moved[k] * one.inertia
            row[joints + j], row[2 * joints + j] = white[k], walk[k]
            rows.append(row)
            right.append(1.0)
    return nonnegative_least_squares(np.array(rows), np.array(right))[:joints]


def fit_white_noise_and_random_walk(
    one: WindowStatistics, velocity: Float[Array, " j"]
) -> tuple[float, float]:
    """Variance of torque noise, and by how much the level's grows with a cell.

    Args:
        one: Windows of the joint.
        velocity: Variance of the joints' velocities.
    """
    moved, white, walk = one.shapes()
    left = np.maximum(1.0 - moved * float(one.inertia @ velocity), 0.02)
    found = nonnegative_least_squares(np.stack([white, walk], axis=1), left)
    least = max(float(found[0]), _LEAST_WHITE / float(white[0]))
    return least, max(float(found[1]), _LEAST_WALK * least)


def nonnegative_least_squares(
    rows: Float[Array, "n p"], right: Float[Array, " n"]
) -> Float[Array, " p"]:
    """Least squares for unknowns that are not negative, one after the other until they settle."""
    size = np.linalg.norm(rows, axis=0)
    size[size == 0.0] = 1.0
    rows = rows / size
    square, ahead = rows.T @ rows, rows.T @ right
    out = np.zeros(rows.shape[1])
    for _ in range(_SWEEPS):
        for i in range(len(out)):
            if square[i, i] > 0.0:
                out[i] = max(out[i] + (ahead[i] - square[i] @ out) / square[i, i], 0.0)
    return out / size
