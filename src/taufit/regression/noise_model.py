"""Coloured noise of several joints, estimated from residuals.

Noise of each joint is taken as autoregressive, driven by innovations correlated between joints.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.fft import irfft, rfft

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.signals.estimates.periodicity import fft_length
from taufit.signals.recursive_filter import filter_rows

MAX_LAGS = 40


class AutoregressiveNoise:
    """Autoregressive noise per joint with correlated innovations.

    Attributes:
        filters: Denominators 1, a1, a2, ... of each joint.
        mixing: Lower triangle L with innovations L e, e white of unit variance.
        std: Standard deviation of each joint's noise.
        freedom: Degrees of freedom of each joint's low-frequency noise estimate.
    """

    digest_of = ("filters", "mixing", "std", "freedom")

    def __init__(
        self,
        filters: list[Float[Array, " _"]],
        mixing: Float[Array, "j j"],
        std: Float[Array, " j"],
        freedom: Float[Array, " j"],
    ) -> None:
        self.filters, self.mixing, self.std, self.freedom = filters, mixing, std, freedom

    def gains(self, cycles: Float[Array, " f"]) -> list[Array]:
        """Frequency response 1/A_i from innovations to noise, at cycles per sample."""
        return [
            1.0 / np.polyval(denominator[::-1], np.exp(-2j * np.pi * cycles))
            for denominator in self.filters
        ]

    @cached_property
    def memory_samples(self) -> float:
        """Samples after which the slowest noise has decayed to one per cent."""
        slowest = max(
            (float(np.abs(np.roots(f)).max()) for f in self.filters if len(f) > 1), default=0.0
        )
        return np.log(0.01) / np.log(max(slowest, 0.01)) if slowest < 1.0 else np.inf

    def draw(self, rng: np.random.Generator, n: int, draws: int) -> Float[Array, "n j d"]:
        """Simulate several realisations."""
        settling = 500
        white = rng.normal(size=(draws, n + settling, len(self.filters))) @ self.mixing.T
        noise = [
            filter_rows(np.eye(1, len(denominator))[0], denominator, white[..., i])[0]
            for i, denominator in enumerate(self.filters)
        ]
        return np.stack(noise, 0)[..., settling:].transpose(2, 0, 1).copy()


def lagged_products(
    x: Float[Array, "n j *d"], run: Int[Array, " n"], lags: int
) -> Float[Array, "l j *d"]:
    """Sums of x_t x_(t+l) over pairs of samples in one run, for lags 0..lags."""
    out = np.zeros((lags + 1, *x.shape[1:]))
    edges = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), len(run)]
    for start, stop in pairwise(edges):
        length = fft_length(stop - start + lags)
        power = np.abs(rfft(x[start:stop], length, axis=0)) ** 2
        out += irfft(power, length, axis=0)[: lags + 1]
    return out


def fit_noise(
    covariance: Float[Array, "l j"],
    count: Int[Array, " j"],
    residuals: Float[Array, "n j"],
    keep: Bool[Array, "n j"],
) -> AutoregressiveNoise:
    """Autoregressions by Levinson's recursion, order by Akaike's criterion.

    Args:
        covariance: Autocovariance of each joint's residuals, biased so that it is positive
            definite.
        count: Number of rows behind the estimate.
        residuals: Residuals for the correlation between joints; 0 where not kept.
        keep: Rows that count.
    """
    joints = covariance.shape[1]
    filters, scale, freedom = [], np.zeros(joints), np.full(joints, np.inf)
    for i in range(joints):
        denominator, variance = _levinson(covariance[:, i], int(count[i]))
        filters.append(denominator)
        scale[i] = np.sqrt(variance)
        if variance > 0.0:
            freedom[i] = _degrees_of_freedom(covariance[:, i], denominator, variance, int(count[i]))
    std = np.sqrt(np.maximum(covariance[0], 0.0))
    correlation = _correlation(residuals, np.all(keep, axis=1), covariance)
    return AutoregressiveNoise(filters, scale[:, None] * correlation, std, freedom)


def _degrees_of_freedom(c: Array, denominator: Array, variance: float, count: int) -> float:
    """Degrees of freedom of the noise's slowest part, S = variance/(sum of a)^2.

    log S has variance 2/n + 4 1'V1/(sum of a)^2, V = variance Gamma^-1/n that of the coefficients;
    a mean of nu independent squares would have 2/nu.
    """
    order = len(denominator) - 1
    log_variance = 2.0 / max(count, 1)
    if order:
        gamma = c[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
        coefficient_variance = (
            variance * np.sum(np.linalg.solve(gamma, np.ones(order))) / max(count, 1)
        )
        log_variance += 4.0 * max(float(coefficient_variance), 0.0) / float(denominator.sum()) ** 2
    return 2.0 / log_variance


def _levinson(c: Array, count: int) -> tuple[Array, float]:
    if c[0] <= 0.0:
        return np.array([1.0]), 0.0
    a, variance = np.array([1.0]), float(c[0])
    best, selected = np.log(variance), (a, variance)
    for order in range(1, len(c)):
        reflection = -float(a @ c[order - len(a) + 1 : order + 1][::-1]) / variance
        if abs(reflection) >= 1.0 - 1e-9:
            break
        extended = np.zeros(len(a) + 1)
        extended[:-1] = a
        a = extended + reflection * extended[::-1]
        variance *= 1.0 - reflection**2
        score = np.log(variance) + 2.0 * order / count
        if score < best - 1e-12:
            best, selected = score, (a, variance)
    return selected


def _correlation(x: Array, complete: Array, c: Array) -> Array:
    """Lower triangle of the correlation between joints' innovations, from whitened residuals."""
    joints = x.shape[1]
    if complete.sum() < 20 * joints or np.any(c[0] <= 0):
        return np.eye(joints)
    white = np.stack([_whiten(_levinson(c[:, i], len(x))[0], x[:, i]) for i in range(joints)], -1)
    matrix = np.corrcoef(white[complete].T) if joints > 1 else np.eye(1)
    # Insignificant correlations (3 sigma) are set to zero.
    threshold = 3.0 / np.sqrt(complete.sum())
    matrix = np.where(np.abs(matrix) > threshold, matrix, 0.0)
    np.fill_diagonal(matrix, 1.0)
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.eye(joints)


def _whiten(denominator: Float[Array, " k"], x: Float[Array, " n"]) -> Float[Array, " n"]:
    """Innovations of a signal: filter it with its own denominator."""
    return np.asarray(filter_rows(denominator, np.eye(1, len(denominator))[0], x[None])[0][0])
