"""Picks and drops: a score test of what the last moments say against the payload believed in.

With residuals r of the last quarter of a second, gravity columns W (mass and first moments) and an
unknown constant per joint, the score g = W' r and its information A give

    s = g' (A + Q^-1)^-1 g,

what a changed payload would explain of r beyond noise; Q is how large changes are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taufit.arrays import Array, Float

# Standard deviations of a change: mass [kg] and first moments [kg m].
_CHANGES = np.array([3.0, 0.3, 0.3, 0.3])


class Chunk(NamedTuple):
    """Rows worked on together: per joint the columns with y last, and the weight of each row.

    Attributes:
        time: Of the last row [s].
        seconds: Covered.
        rows: Per joint, the columns and each row's weight in the test.
        weights: Per joint, each row's weight in the sums.
    """

    time: float
    seconds: float
    rows: tuple[tuple[Float[Array, "n c"], Float[Array, " n"]], ...]
    weights: tuple[Float[Array, " n"], ...]


class Change(NamedTuple):
    """What the test says.

    Attributes:
        score: s; about 4 where nothing changed.
        mass: By how much the mass changed, if it did [kg].
    """

    score: float
    mass: float


class ChangeDetector:
    """The last moments of a run.

    Attributes:
        window: How far it looks back [s].
        chunks: Oldest first.
    """

    __slots__ = ("chunks", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.chunks: deque[Chunk] = deque()

    def add(self, chunk: Chunk) -> None:
        """The newest rows."""
        self.chunks.append(chunk)
        while self.chunks[-1].time - self.chunks[0].time > self.window:
            self.chunks.popleft()

    def clear(self) -> None:
        """Start anew."""
        self.chunks.clear()

    @property
    def seconds(self) -> float:
        """How much has been seen."""
        return sum(chunk.seconds for chunk in self.chunks)

    def test(
        self,
        states: Sequence[Float[Array, " c"]],
        density: Float[Array, " j"],
        drift: Float[Array, " j"],
        window: float,
    ) -> Change:
        """Whether the rows fit what is believed.

        Args:
            states: Per joint the belief about its columns, -1 for y.
            density: Noise density of each joint [(N m)^2 s].
            drift: Standard deviation of a constant over the window [N m].
            window: How far back to look [s].
        """
        score, information = np.zeros(4), np.diag(1.0 / _CHANGES**2)
        since = self.chunks[-1].time - window
        chunks = [chunk for chunk in self.chunks if chunk.time > since]
        for j, state in enumerate(states):
            rows = np.concatenate([chunk.rows[j][0] for chunk in chunks])
            weight = np.concatenate(
                [chunk.rows[j][1] * (chunk.seconds / len(chunk.rows[j][1])) for chunk in chunks]
            )
            weight = weight / density[j]
            left = -(rows @ state)
            gravity = rows[:, :4]
            weighted = gravity * weight[:, None]
            sums = weighted.sum(axis=0)
            share = 1.0 / (1.0 / drift[j] ** 2 + weight.sum())
            score += weighted.T @ left - sums * (share * float(weight @ left))
            information += weighted.T @ gravity - np.outer(sums, sums) * share
        change = np.linalg.solve(information, score)
        return Change(float(score @ change), float(change[0]))
