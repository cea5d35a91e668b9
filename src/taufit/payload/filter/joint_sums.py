"""What the rows of one joint have said: a sum of squares, and how long they were worth how much.

    G = integral of w [columns, y]' [columns, y] dt / S,

w the weight of each row and S the joint's noise density. Sums add up, fade, and can be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.parameters import PER_LINK

# A joint is to be seen this long in both directions before it tells friction from load [s].
_MIN_DIRECTION_S = 0.3
# Joints whose payload torque is at least this share of the largest carry it.
_LOADED_FRACTION = 0.3
_GRAVITY = 9.81


@dataclass(slots=True)
class JointSums:
    """Sums over the rows of one joint.

    Attributes:
        gram: G; the payload's ten columns are the first, y is the last.
        seconds: Integral of the weights [s].
        moving: How long the joint did not stand still [s].
        forward, backward: How long it turned each way with rows that count [s].
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
        """Rows of consecutive cells of the grid.

        Args:
            rows: Columns, y last.
            weight: Of each row, 0 to 1.
            standing: How much of each cell the joint stood still, 0 to 1.
            speed: Of the joint.
            step: Width of a cell [s].
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
        """Rows added before are none of this payload's."""
        self.gram -= _weighted_square(rows, weight, step / density)
        self.seconds -= float(weight.sum()) * step

    def fade(self, factor: float) -> None:
        """Only this share of what was said counts on."""
        self.gram *= factor
        self.seconds *= factor

    def marginalise(self, columns: Int[Array, " g"], prior: Float[Array, " g"]) -> None:
        """Integrate columns out, each with a prior information of its own; they start at zero."""
        remaining = np.setdiff1d(np.arange(len(self.gram)), columns)
        inner = self.gram[np.ix_(columns, columns)] + np.diag(prior)
        cross = self.gram[np.ix_(columns, remaining)]
        marginal = self.gram[np.ix_(remaining, remaining)] - cross.T @ np.linalg.solve(inner, cross)
        self.gram[:] = 0.0
        self.gram[np.ix_(remaining, remaining)] = marginal

    @property
    def moved_both_ways(self) -> bool:
        """Whether the joint turned both ways long enough."""
        return min(self.forward, self.backward) >= _MIN_DIRECTION_S

    @property
    def load_rms(self) -> float:
        """Torque of one kilogram at the frame's origin [N m]."""
        return float(np.sqrt(self.load / max(self.seconds, 1e-9)))

    def lever(self, phi: Float[Array, " 10"], density: float) -> float:
        """Arm of the weight of payload phi about this joint, rms over the run [m]."""
        if phi[0] <= 0.0:
            return self.load_rms / _GRAVITY
        square = float(phi @ self.gram[:PER_LINK, :PER_LINK] @ phi) * density
        return float(np.sqrt(square / max(self.seconds, 1e-9))) / (phi[0] * _GRAVITY)


def loaded_joints(sums: Sequence[JointSums]) -> Bool[Array, " j"]:
    """Which joints carry what the arm holds."""
    loads = np.array([s.load_rms for s in sums])
    out: Array = loads >= _LOADED_FRACTION * loads.max()
    return out


def _weighted_square(rows: Array, weight: Array, factor: float) -> Array:
    out: Array = rows.T @ (rows * (weight * factor)[:, None])
    return out
