"""Accumulated rows of one joint: Gram matrix and effective duration.

    G = integral of w [columns, y]' [columns, y] dt / S,

w the weight of each row and S the joint's noise density. Sums can be added, faded and subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.parameters import PER_LINK

# Shortest motion in each direction that separates friction from load [s].
_MIN_DIRECTION_S = 0.3
# Smallest payload torque of a loaded joint, relative to the largest of all joints.
_LOADED_FRACTION = 0.3
_GRAVITY = 9.81


@dataclass(slots=True)
class JointSums:
    """Sums over the rows of one joint.

    Attributes:
        square: G; the payload's ten columns are the first, y is the last.
        seconds: Integral of the weights [s].
        moving: Duration in motion [s].
        forward, backward: Durations in motion in each direction with significant weight [s].
        load: Integral of the squared torque of one kilogram at the frame's origin [(N m)^2 s].
    """

    gram: Float[Array, "c c"]
    seconds: float = 0.0
    moving: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    load: float = 0.0

    def add(
        self,
        rows: Float[Array, "n c"],
        weight: Float[Array, " n"],
        standing: Float[Array, " n"],
        speed: Float[Array, " n"],
        step: float,
        density: float,
    ) -> None:
        """Add rows of consecutive time bins.

        Args:
            rows: Columns, y last.
            weight: Weight of each row, 0 to 1.
            standing: Fraction of each bin at standstill, 0 to 1.
            speed: Joint velocity.
            step: Width of a bin [s].
            density: S.
        """
        self.gram += _weighted_square(rows, weight, step / density)
        self.seconds += float(weight.sum()) * step
        self.moving += float((1.0 - standing).sum()) * step
        counts = weight > 0.5
        self.forward += np.count_nonzero(counts & (speed > 0)) * step
        self.backward += np.count_nonzero(counts & (speed < 0)) * step
        self.load += float((weight * rows[:, 0] ** 2).sum()) * step

    def remove(
        self, rows: Float[Array, "n c"], weight: Float[Array, " n"], step: float, density: float
    ) -> None:
        """Subtract rows added before."""
        self.gram -= _weighted_square(rows, weight, step / density)
        self.seconds -= float(weight.sum()) * step

    def fade(self, factor: float) -> None:
        """Multiply the sums by a forgetting factor."""
        self.gram *= factor
        self.seconds *= factor

    def marginalise(self, columns: Int[Array, " g"], prior: Float[Array, " g"]) -> None:
        """Marginalise columns with the given prior information; their sums restart at zero."""
        remaining = np.setdiff1d(np.arange(len(self.gram)), columns)
        inner = self.gram[np.ix_(columns, columns)] + np.diag(prior)
        cross = self.gram[np.ix_(columns, remaining)]
        marginal = self.gram[np.ix_(remaining, remaining)] - cross.T @ np.linalg.solve(inner, cross)
        self.gram[:] = 0.0
        self.gram[np.ix_(remaining, remaining)] = marginal

    @property
    def has_both_directions(self) -> bool:
        """Whether the joint moved long enough in both directions."""
        return min(self.forward, self.backward) >= _MIN_DIRECTION_S

    @property
    def load_rms(self) -> float:
        """RMS torque of one kilogram at the frame's origin [N m]."""
        return float(np.sqrt(self.load / max(self.seconds, 1e-9)))

    def lever(self, phi: Float[Array, " 10"], density: float) -> float:
        """RMS lever arm of the weight of payload phi about this joint [m]."""
        if phi[0] <= 0.0:
            return self.load_rms / _GRAVITY
        square = float(phi @ self.gram[:PER_LINK, :PER_LINK] @ phi) * density
        return float(np.sqrt(square / max(self.seconds, 1e-9))) / (phi[0] * _GRAVITY)


def joints_under_load(sums: Sequence[JointSums]) -> Bool[Array, " j"]:
    """Mask of joints that carry the payload."""
    loads = np.array([s.load_rms for s in sums])
    out: Array = loads >= _LOADED_FRACTION * loads.max()
    return out


def _weighted_square(rows: Array, weight: Array, factor: float) -> Array:
    out: Array = rows.T @ (rows * (weight * factor)[:, None])
    return out
