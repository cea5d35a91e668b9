"""Picks and drops: what the last moments say for a changed payload against the current estimate.

With residuals r of the last moments, gravity columns W (mass and first moments), and per joint an
unknown constant and unknown friction at low speed, let

    F(Q) = g' (A + Q^-1)^-1 g - ln det(1 + Q A),    g = W' r,  A = W' W,

all weighted by noise and with the joints' own unknowns marginalised. P is how well the payload is
known anyway, Q how large changes are; a change explains r better than no change by the Bayes factor

    2 ln B = F(P + Q) - F(P).

The determinants are what a change may explain by chance, so one threshold serves every pose and
every length of time looked back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.payload.filter.causal_lowpass import NOISE_BANDWIDTH

# Standard deviations of a change of a light payload, per kilogram of it: mass, first moments [m].
_CHANGE_STD = np.array([3.0, 0.3, 0.3, 0.3])
# A constant over the last moments that is nothing to do with the payload, in residual rms.
_OFFSET_STD = 0.3
# Friction at low speed that is nothing to do with the payload either, in friction levels.
_SLOW_FRICTION_STD = 0.3


class RowBlock(NamedTuple):
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


class ReferenceEstimate(NamedTuple):
    """What residuals are measured against.

    Attributes:
        states: Per joint the value of each of its columns, -1 for y.
        density: Noise density of each joint [(N m)^2 s].
        rms: Residuals of each joint [N m].
        level: Friction of each joint at low speed [N m].
        slow: Per joint which column is friction at low speed.
        std: Standard deviations of mass [kg] and first moments [kg m].
    """

    states: Sequence[Float[Array, " c"]]
    density: Float[Array, " j"]
    rms: Float[Array, " j"]
    level: Float[Array, " j"]
    slow: Sequence[int]
    std: Float[Array, " 4"]


class PayloadChangeEvidence(NamedTuple):
    """What the last moments say.

    Attributes:
        evidence: 2 ln B of the length of time that speaks most for a change; below 0 for none.
        mass: By how much the mass changed, if it did [kg].
        window: The length of time that says so [s].
    """

    evidence: float
    mass: float
    window: float


class ChangeDetector:
    """The last moments of a run.

    Attributes:
        window: How far it looks back [s].
        chunks: Oldest first.
    """

    __slots__ = ("_grams", "chunks", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.chunks: deque[RowBlock] = deque()
        self._grams: deque[tuple[float, Float[Array, "j 7 7"]]] = deque()

    def add(self, chunk: RowBlock) -> None:
        """The newest rows."""
        self.chunks.append(chunk)
        while self.chunks[-1].time - self.chunks[0].time > self.window:
            self.chunks.popleft()

    def clear(self) -> None:
        """Start anew."""
        self.chunks.clear()
        self._grams.clear()

    def test(
        self, reference: ReferenceEstimate, windows: Sequence[float], light_mass: float
    ) -> PayloadChangeEvidence:
        """Whether the newest rows, and those looked at before, fit the current estimate.

        Rows are held against the estimate at the time they came: by the next read-out it has
        begun to follow the change.

        Args:
            reference: Of the last read-out.
            windows: How far to look back [s].
            light_mass: Scale of changes [kg].
        """
        tests = self.test_windows(reference, windows, light_mass)
        return max(tests, key=lambda test: test.evidence)

    def test_windows(
        self, reference: ReferenceEstimate, windows: Sequence[float], light_mass: float
    ) -> list[PayloadChangeEvidence]:
        """What `test` finds over each length of time, the shortest first."""
        newest = self.chunks[-1]
        self._grams.append((newest.time, weighted_gram(newest, reference)))
        while newest.time - self._grams[0][0] > self.window:
            self._grams.popleft()
        ages = [newest.time - time for time, _ in reversed(self._grams)]
        lengths = sorted({bisect_left(ages, window) for window in windows})
        sums = list(accumulate(square for _, square in reversed(self._grams)))
        information = marginal_payload_information(
            np.stack([sums[length - 1] for length in lengths]), reference
        )
        variance = reference.std**2
        evidence, change = log_evidence_gain(information, variance + change_variance(light_mass))
        evidence = evidence - log_evidence_gain(information, variance)[0]
        return [
            PayloadChangeEvidence(
                float(evidence[k]), float(change[k, 0]), ages[length - 1] + newest.seconds
            )
            for k, length in enumerate(lengths)
        ]


def short_term_density(
    slow: Float[Array, " j"], rms: Float[Array, " j"], cutoff_hz: float
) -> Float[Array, " j"]:
    """Noise density of residuals over tenths of a second [(N m)^2 s].

    Over these the whole band counts. Accelerations are noisier the faster they change, so where
    they are most of the residual its slow part, which weighs a payload, is far below the rest.

    Args:
        slow: Density at low frequency.
        rms: Of the residuals behind the low-pass.
        cutoff_hz: Of the low-pass.
    """
    out: Array = np.maximum(slow, rms**2 / (NOISE_BANDWIDTH * cutoff_hz))
    return out


def change_variance(light_mass: float) -> Float[Array, " 4"]:
    """Q: how large changes of mass and first moments are, for payloads of this scale [kg]."""
    out: Array = (light_mass * _CHANGE_STD) ** 2
    return out


def marginal_payload_information(
    total: Float[Array, "... j 7 7"], reference: ReferenceEstimate
) -> Float[Array, "... 4 5"]:
    """A and g side by side: what is a joint's own goes first, what is left of the joints adds up.

    Args:
        total: Sums of `squares`.
        reference: They were held against.
    """
    inner = total[..., 5:, 5:].copy()
    inner[..., 0, 0] += 1.0 / (_OFFSET_STD * reference.rms) ** 2
    slow = np.maximum(_SLOW_FRICTION_STD * reference.level, 1e-6 * reference.rms)
    inner[..., 1, 1] += 1.0 / slow**2
    cross = total[..., 5:, :5]
    marginalised = cross[..., :4].swapaxes(-1, -2) @ np.linalg.solve(inner, cross)
    out: Array = (total[..., :4, :5] - marginalised).sum(axis=-3)
    return out


def log_evidence_gain(
    information_and_score: Float[Array, "k 4 5"], variance: Float[Array, " 4"]
) -> tuple[Float[Array, " k"], Float[Array, "k 4"]]:
    """F of a change of this variance, and the change, from A and g side by side."""
    information, score = (
        information_and_score[..., :4] + np.diag(1.0 / variance),
        information_and_score[..., 4],
    )
    change = np.linalg.solve(information, score[..., None])[..., 0]
    log_determinant = np.linalg.slogdet(information)[1] + np.log(variance).sum()
    return np.einsum("ka,ka->k", score, change) - log_determinant, change


def weighted_gram(chunk: RowBlock, reference: ReferenceEstimate) -> Float[Array, "j 7 7"]:
    """[W, r, 1, l]' [W, r, 1, l] of each joint, weighted by its noise; l is the slow column."""
    weight = np.array([w for _, w in chunk.rows])
    weight *= (chunk.seconds / weight.shape[1] / reference.density)[:, None]
    rows = np.ones((*weight.shape, 7))
    for j, ((columns, _), state) in enumerate(zip(chunk.rows, reference.states, strict=True)):
        rows[j, :, :4] = columns[:, :4]
        rows[j, :, 4] = columns @ state
        rows[j, :, 6] = columns[:, reference.slow[j]]
    rows[..., 4] *= -1.0
    out: Array = rows.transpose(0, 2, 1) @ (rows * weight[..., None])
    return out
