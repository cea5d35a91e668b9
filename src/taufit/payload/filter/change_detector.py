"""Detection of payload changes (picks and drops) against the current estimate.

With residuals r of the newest rows, gravity columns W (mass and first moments), and per joint an
unknown constant and unknown low-speed friction, let

    F(Q) = g' (A + Q^-1)^-1 g - ln det(1 + Q A),    g = W' r,  A = W' W,

weighted by noise and with the joints' nuisance parameters marginalised. P is the covariance of the
payload estimate, Q the prior covariance of changes; the Bayes factor of a change against none is

    2 ln B = F(P + Q) - F(P).

The determinants account for chance, so one threshold serves every pose and every window length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.payload.filter.causal_lowpass import NOISE_BANDWIDTH
from taufit.payload.filter.payload_rows import PayloadRows

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Prior standard deviations of a payload change per kilogram of light payload: mass, moments [m].
_CHANGE_STD = np.array([3.0, 0.3, 0.3, 0.3])
# Standard deviation of a constant torque unrelated to the payload, relative to the residual RMS.
_OFFSET_STD = 0.3
# Standard deviation of low-speed friction unrelated to the payload, relative to its level.
_SLOW_FRICTION_STD = 0.3


class RowBlock(NamedTuple):
    """Rows processed together.

    Attributes:
        time: Time of the last row [s].
        seconds: Duration [s].
        rows: Per joint, the columns with y last and the weight of each row in the test.
        weights: Per joint, the weight of each row in the sums.
        packed: Rows of all joints and their weights in the test, in place of `rows`.
    """

    time: float
    seconds: float
    rows: tuple[tuple[Float[Array, "_ c"], Float[Array, " _"]], ...]
    weights: Sequence[Float[Array, " _"]]
    packed: tuple[PayloadRows, Float[Array, "n j"]] | None = None

    @property
    def joint_rows(self) -> tuple[tuple[Float[Array, "n c"], Float[Array, " n"]], ...]:
        """Per joint, the columns with y last and the weight of each row in the test."""
        if self.packed is None:
            return self.rows
        rows, counted = self.packed
        return tuple((rows.joint_rows(j), weight) for j, weight in enumerate(counted.T))


class ReferenceEstimate(NamedTuple):
    """Current estimate that new residuals are compared with.

    Attributes:
        states: Per joint the value of each of its columns, -1 for y.
        density: Noise density of each joint [(N m)^2 s].
        rms: Residual RMS of each joint [N m].
        level: Low-speed friction of each joint [N m].
        slow: Per joint the index of the column of low-speed friction.
        std: Standard deviations of mass [kg] and first moments [kg m].
        kernel_arrays: `states` one after the other, `slow` and `nuisance_information` as arrays,
            where the reference serves many tests.
    """

    states: Sequence[Float[Array, " c"]]
    density: Float[Array, " j"]
    rms: Float[Array, " j"]
    level: Float[Array, " j"]
    slow: Sequence[int]
    std: Float[Array, " 4"]
    kernel_arrays: tuple[Float[Array, " c"], Int[Array, " j"], Float[Array, "j 2"]] | None = None

    def with_kernel_arrays(self) -> ReferenceEstimate:
        """The same with arrays for the kernel."""
        return self._replace(kernel_arrays=self.make_kernel_arrays())

    def make_kernel_arrays(
        self,
    ) -> tuple[Float[Array, " c"], Int[Array, " j"], Float[Array, "j 2"]]:
        """`kernel_arrays`, made if there are none."""
        if self.kernel_arrays is not None:
            return self.kernel_arrays
        slow = np.array(self.slow)
        return np.concatenate(self.states), slow, nuisance_information(self)


class PayloadChangeEvidence(NamedTuple):
    """Evidence of a payload change.

    Attributes:
        evidence: 2 ln B of the window with the largest evidence; negative speaks against a change.
        mass: Change of mass, given a change [kg].
        window: Length of that window [s].
    """

    evidence: float
    mass: float
    window: float


class ChangeDetector:
    """Tests the newest rows of a run for a payload change.

    Attributes:
        window: Longest window [s].
        chunks: Row blocks within it, oldest first.
    """

    __slots__ = ("_grams", "_times", "chunks", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.chunks: deque[RowBlock] = deque()
        # Times of tests and the squares that they added; older ones stay in front of the array.
        self._times: list[float] = []
        self._grams: Float[Array, "k j 7 7"] = np.empty((0, 0, 7, 7))

    def add(self, chunk: RowBlock) -> None:
        """Add the newest rows."""
        self.chunks.append(chunk)
        while self.chunks[-1].time - self.chunks[0].time > self.window:
            self.chunks.popleft()

    def clear(self) -> None:
        """Remove all rows."""
        self.chunks.clear()
        self._times.clear()

    def test(
        self, reference: ReferenceEstimate, windows: Sequence[float], light_mass: float
    ) -> PayloadChangeEvidence:
        """Test the newest rows for a change; return the evidence of the best window.

        Rows are compared with the estimate at the time of their arrival: later estimates already
        follow the change.

        Args:
            reference: Newest estimate.
            windows: Window lengths [s].
            light_mass: Scale of changes [kg].
        """
        tests = self.test_windows(reference, windows, light_mass)
        return max(tests, key=lambda test: test.evidence)

    def test_windows(
        self, reference: ReferenceEstimate, windows: Sequence[float], light_mass: float
    ) -> list[PayloadChangeEvidence]:
        """Evidence of a change for each window, shortest first."""
        newest = self.chunks[-1]
        history = self._add_gram(newest.time, weighted_gram(newest, reference))
        ages = [newest.time - time for time in reversed(self._times[-len(history) :])]
        lengths = sorted({bisect_left(ages, window) for window in windows})
        variance = reference.std**2
        tests = _window_evidence(
            history, lengths, reference, variance, variance + change_variance(light_mass)
        )
        return [
            PayloadChangeEvidence(float(evidence), float(mass), ages[length - 1] + newest.seconds)
            for length, (evidence, mass) in zip(lengths, tests.tolist(), strict=True)
        ]

    def _add_gram(self, time: float, gram: Float[Array, "j 7 7"]) -> Float[Array, "k j 7 7"]:
        """Add the newest squares; return those within the longest window, oldest first."""
        count = len(self._times)
        if count >= len(self._grams) or self._grams.shape[1:] != gram.shape:
            first = bisect_left(self._times, time - self.window)
            self._times = self._times[first:]
            recent = self._grams[first:count]
            count -= first
            self._grams = np.empty((max(64, 2 * count), *gram.shape))
            self._grams[:count] = recent if count else 0.0
        self._grams[count] = gram
        self._times.append(time)
        first = count
        while first > 0 and time - self._times[first - 1] <= self.window:
            first -= 1
        return self._grams[first : count + 1]


def _window_evidence(
    history: Float[Array, "m j 7 7"],
    lengths: Sequence[int],
    reference: ReferenceEstimate,
    variance: Float[Array, " 4"],
    changed: Float[Array, " 4"],
) -> Float[Array, "k 2"]:
    """Evidence of a change and its mass over the newest squares, for each number of them.

    Args:
        history: Squares, oldest first.
        lengths: Numbers of squares, ascending.
        reference: Newest estimate.
        variance: Variances of the payload estimate.
        changed: Variances after a change.
    """
    if _kernel is not None:
        out = np.empty((len(lengths), 2))
        _kernel.change_evidence(
            history, np.array(lengths), reference.make_kernel_arrays()[2], variance, changed, out
        )
        return out
    sums = np.cumsum(history[::-1], axis=0)
    information = marginal_payload_information(
        np.stack([sums[length - 1] for length in lengths]), reference
    )
    evidence, change = log_evidence_gain(information, changed)
    evidence = evidence - log_evidence_gain(information, variance)[0]
    return np.stack([evidence, change[:, 0]], axis=1)


def short_term_density(
    slow: Float[Array, " j"], rms: Float[Array, " j"], cutoff_hz: float
) -> Float[Array, " j"]:
    """Noise density of residuals over tenths of a second [(N m)^2 s].

    Over such short times the whole band counts: noisy accelerations have far more power at high
    frequency than at the low frequencies that determine a payload.

    Args:
        slow: Density at low frequency.
        rms: RMS of the low-passed residuals.
        cutoff_hz: Cut-off of the low-pass [Hz].
    """
    out: Array = np.maximum(slow, rms**2 / (NOISE_BANDWIDTH * cutoff_hz))
    return out


def change_variance(light_mass: float) -> Float[Array, " 4"]:
    """Q: prior variances of changes of mass and first moments, for payloads of this scale [kg]."""
    out: Array = (light_mass * _CHANGE_STD) ** 2
    return out


def marginal_payload_information(
    total: Float[Array, "... j 7 7"], reference: ReferenceEstimate
) -> Float[Array, "... 4 5"]:
    """A and g side by side, summed over joints, their nuisance parameters marginalised.

    Args:
        total: Sums of `weighted_gram`.
        reference: Estimate used for them.
    """
    inner = total[..., 5:, 5:].copy()
    information = nuisance_information(reference)
    inner[..., 0, 0] += information[:, 0]
    inner[..., 1, 1] += information[:, 1]
    cross = total[..., 5:, :5]
    marginalised = cross[..., :4].swapaxes(-1, -2) @ np.linalg.solve(inner, cross)
    out: Array = (total[..., :4, :5] - marginalised).sum(axis=-3)
    return out


def nuisance_information(reference: ReferenceEstimate) -> Float[Array, "j 2"]:
    """Prior information on each joint's constant and low-speed friction."""
    slow = np.maximum(_SLOW_FRICTION_STD * reference.level, 1e-6 * reference.rms)
    out: Array = np.stack([_OFFSET_STD * reference.rms, slow], axis=1) ** -2.0
    return out


def log_evidence_gain(
    information_and_score: Float[Array, "k 4 5"], variance: Float[Array, " 4"]
) -> tuple[Float[Array, " k"], Float[Array, "k 4"]]:
    """F of a change with this variance, and the change itself, from A and g side by side."""
    information, score = (
        information_and_score[..., :4] + np.diag(1.0 / variance),
        information_and_score[..., 4],
    )
    change = np.linalg.solve(information, score[..., None])[..., 0]
    log_determinant = np.linalg.slogdet(information)[1] + np.log(variance).sum()
    return np.einsum("ka,ka->k", score, change) - log_determinant, change


def weighted_gram(chunk: RowBlock, reference: ReferenceEstimate) -> Float[Array, "j 7 7"]:
    """[W, r, 1, l]' [W, r, 1, l] of each joint, weighted by its noise; l: low-speed friction."""
    if _kernel is not None and chunk.packed is not None:
        rows, counted = chunk.packed
        out = np.empty((len(reference.states), 7, 7))
        factor = chunk.seconds / len(rows) / reference.density
        states, slow, _ = reference.make_kernel_arrays()
        _kernel.change_gram(rows.packed, rows.edges, counted, factor, states, slow, out)
        return out
    weight = np.array([w for _, w in chunk.joint_rows])
    weight *= (chunk.seconds / weight.shape[1] / reference.density)[:, None]
    row = np.ones((*weight.shape, 7))
    for j, ((columns, _), state) in enumerate(zip(chunk.joint_rows, reference.states, strict=True)):
        row[j, :, :4] = columns[:, :4]
        row[j, :, 4] = columns @ state
        row[j, :, 6] = columns[:, reference.slow[j]]
    row[..., 4] *= -1.0
    gram: Array = row.transpose(0, 2, 1) @ (row * weight[..., None])
    return gram
