"""How uncertain base parameters are, from the residuals as they are: coloured, joint by joint.

An estimate is linear in the torque noise n: with G the weighted rows and A = G'W,

    base error = A^-1 G' n,        covariance = A^-1 (G' Gamma G) A^-1,

Gamma the covariance of n over time and joints. Noise of each joint is taken as autoregressive,
driven by innovations correlated between joints; the fit itself takes the part of the noise that
looks like motion out of the residuals, which is put back by fitting simulated noise alike.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.linalg
from scipy.fft import irfft, next_fast_len, rfft

from taufit.arrays import Array, Bool, Float, Int
from taufit.dynamics import BaseParameters
from taufit.regression.estimate import NORMAL_95
from taufit.regression.information import Information
from taufit.regression.rows import Rows
from taufit.regression.weights import HUBER, TUKEY, Weights
from taufit.signals.recursive import filter_rows

MOST_LAGS = 40
DRAWS = 12
ROUNDS = 2
# With more rows per joint than this a fit takes less than a per cent out of the noise.
MANY_ROWS = 20_000


def base_covariance(
    rows: Rows,
    base: BaseParameters,
    weights: Weights,
    information: Information,
    residuals: Float[Array, "n j"],
    weighting: str = "joint",
) -> Float[Array, "b b"]:
    """Covariance of the base parameters under the residuals' own colour.

    Args:
        rows: What was fitted.
        base: The base parameters.
        weights: Of the rows in the fit.
        information: What those rows say.
        residuals: What the fit left over, unweighted.
        weighting: Name of the rule behind the weights; robust ones bound the residuals.
    """
    scored, bread = residuals, 1.0
    if weights.rows is not None:
        # An M-estimate moves by psi(n), not n, and by as much more as psi is flat.
        scored = residuals * weights.rows**2
        bread = _flatness(residuals * weights.joint, rows.keep, weighting)
    keep = rows.keep
    scored = np.where(keep, scored, 0.0)
    upper = np.linalg.qr(information.factor[:, base.columns], mode="r")
    norms = np.linalg.norm(upper, axis=0)
    norms[norms == 0.0] = 1.0
    inverse = scipy.linalg.pinv(upper / norms, rtol=1e-12)
    spans = rows.blocks()

    noise = _coloured(scored, keep, rows.run)
    if np.any(noise.std > 0) and keep.sum(axis=0).min() <= MANY_ROWS:
        for _ in range(ROUNDS):
            noise = _unshrunk(noise, scored, rows, base, weights, inverse, norms, spans)
    # Noise known from few independent squares: intervals of two standard deviations must be wider.
    wider = _wider(noise.freedom)
    spread = np.zeros((base.rank, base.rank))
    for first, last in spans:
        score = _scores(rows, base, weights, first, last) / norms
        filtered = noise.applied(score * wider[:, None])
        flat = filtered.reshape(-1, base.rank)
        spread += flat.T @ flat
    covariance = inverse @ (inverse.T @ spread @ inverse) @ inverse.T / bread**2
    return covariance / np.outer(norms, norms)


def _flatness(scaled: Array, keep: Array, weighting: str) -> float:
    """Mean derivative of the robust loss's influence at the residuals, relative to its weight."""
    u = np.abs(scaled[keep])
    if weighting == "huber":
        slope, weight = (u < HUBER).astype(float), np.minimum(1.0, HUBER / np.maximum(u, HUBER))
    else:
        inside = u < TUKEY
        x = (u / TUKEY) ** 2
        slope = np.where(inside, (1 - x) * (1 - 5 * x), 0.0)
        weight = np.where(inside, (1 - x) ** 2, 0.0)
    return float(max(slope.mean() / max(weight.mean(), 1e-12), 0.2))


def _scores(
    rows: Rows, base: BaseParameters, weights: Weights, first: int, last: int
) -> Float[Array, "n j b"]:
    """G: what each unit of noise adds to the normal equations."""
    block = rows.block(first, last)[..., base.columns]
    keep = rows.keep[first:last]
    if weights.whitener is None:
        return block * (keep * weights.joint**2)[..., None]
    weight = weights.whitener.T @ weights.whitener
    return weight @ (block * keep[..., None])


class _Noise:
    """Autoregressive noise per joint with correlated innovations.

    Attributes:
        filters: Denominators 1, a1, a2, ... of each joint.
        mixing: Lower triangle L with innovations L e, e white of unit variance.
        std: Of each joint's noise.
        freedom: How many independent squares each joint's slow noise was estimated from.
    """

    def __init__(self, filters: list[Array], mixing: Array, std: Array, freedom: Array) -> None:
        self.filters, self.mixing, self.std, self.freedom = filters, mixing, std, freedom

    def applied(self, score: Float[Array, "n j b"]) -> Float[Array, "n j b"]:
        """L' of noise covariance L L' times the scores: noise filters run backwards in time."""
        padded = np.concatenate([np.zeros((MOST_LAGS * 5, *score.shape[1:])), score])
        out = np.empty_like(padded)
        for i, denominator in enumerate(self.filters):
            out[::-1, i] = _driven(denominator, padded[::-1, i].T).T
        return np.einsum("ik,nib->nkb", self.mixing, out)

    def draw(self, rng: np.random.Generator, n: int) -> Float[Array, "n j"]:
        """One realisation."""
        warm = 500
        white = rng.normal(size=(n + warm, len(self.filters))) @ self.mixing.T
        for i, denominator in enumerate(self.filters):
            white[:, i] = _driven(denominator, white[None, :, i])[0]
        return white[warm:]


def _driven(denominator: Float[Array, " k"], rows: Float[Array, "c n"]) -> Float[Array, "c n"]:
    """Rows of innovations through 1/denominator."""
    return filter_rows(np.eye(1, len(denominator))[0], denominator, rows)[0]


def _whitened(denominator: Float[Array, " k"], x: Float[Array, " n"]) -> Float[Array, " n"]:
    """A signal through its own denominator: what drove it."""
    return filter_rows(denominator, np.eye(1, len(denominator))[0], x[None])[0][0]


def _autocovariance(
    x: Float[Array, "n j *d"], keep: Bool[Array, "n j"], run: Int[Array, " n"]
) -> Float[Array, "l j *d"]:
    """Per joint, lags 0..MOST_LAGS, over pairs of samples in one run; x is 0 where not kept."""
    lags = min(MOST_LAGS, max(len(x) // 20, 1))
    out = np.zeros((lags + 1, *x.shape[1:]))
    edges = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), len(run)]
    for start, stop in pairwise(edges):
        length = next_fast_len(stop - start + lags, real=True)
        power = np.abs(rfft(x[start:stop], length, axis=0)) ** 2
        own = irfft(power, length, axis=0)[: lags + 1]
        out += own
    # The biased divisor keeps the sequence positive definite.
    count = np.maximum(keep.sum(axis=0), 1)
    return out / count.reshape(1, -1, *([1] * (x.ndim - 2)))


def _from_autocovariance(c: Array, correlation: Array, count: Array) -> _Noise:
    """Autoregressions by Levinson's recursion, order by Akaike's criterion."""
    joints = c.shape[1]
    filters, scale, freedom = [], np.zeros(joints), np.full(joints, np.inf)
    for i in range(joints):
        denominator, variance = _levinson(c[:, i], int(count[i]))
        filters.append(denominator)
        scale[i] = np.sqrt(variance)
        if variance > 0.0:
            freedom[i] = _freedom(c[:, i], denominator, variance, int(count[i]))
    std = np.sqrt(np.maximum(c[0], 0.0))
    return _Noise(filters, scale[:, None] * correlation, std, freedom)


def _freedom(c: Array, denominator: Array, variance: float, count: int) -> float:
    """Degrees of freedom of the noise's slowest part, S = variance/(sum of a)^2.

    log S has variance 2/n + 4 1'V1/(sum of a)^2, V = variance Gamma^-1/n that of the coefficients;
    a mean of nu independent squares would have 2/nu.
    """
    order = len(denominator) - 1
    spread = 2.0 / max(count, 1)
    if order:
        gamma = scipy.linalg.toeplitz(c[:order])
        uncertain = variance * np.sum(np.linalg.solve(gamma, np.ones(order))) / max(count, 1)
        spread += 4.0 * max(float(uncertain), 0.0) / float(denominator.sum()) ** 2
    return 2.0 / spread


def _wider(freedom: Array) -> Array:
    """Student's 95 % quantile over the normal one, to second order; at least 5 degrees."""
    z, nu = NORMAL_95, np.maximum(freedom, 5.0)
    return 1.0 + (z**2 + 1) / (4 * nu) + (5 * z**4 + 16 * z**2 + 3) / (96 * nu**2)


def _levinson(c: Array, count: int) -> tuple[Array, float]:
    if c[0] <= 0.0:
        return np.array([1.0]), 0.0
    a, variance = np.array([1.0]), float(c[0])
    best, found = np.log(variance), (a, variance)
    for order in range(1, len(c)):
        reflection = -float(a @ c[order - len(a) + 1 : order + 1][::-1]) / variance
        if abs(reflection) >= 1.0 - 1e-9:
            break
        a = np.append(a, 0.0) + reflection * np.append(a, 0.0)[::-1]
        variance *= 1.0 - reflection**2
        score = np.log(variance) + 2.0 * order / count
        if score < best - 1e-12:
            best, found = score, (a.copy(), variance)
    return found


def _coloured(x: Array, keep: Array, run: Array) -> _Noise:
    whole = np.all(keep, axis=1)
    c = _autocovariance(x, keep, run)
    return _from_autocovariance(c, _correlation(x, whole, c), keep.sum(axis=0))


def _correlation(x: Array, whole: Array, c: Array) -> Array:
    """Lower triangle of the correlation between joints' innovations, from whitened residuals."""
    joints = x.shape[1]
    if whole.sum() < 20 * joints or np.any(c[0] <= 0):
        return np.eye(joints)
    white = np.stack(
        [_whitened(_levinson(c[:, i], len(x))[0], x[:, i]) for i in range(joints)], -1
    )[whole]
    matrix = np.corrcoef(white.T) if joints > 1 else np.eye(1)
    # Correlations within chance are none.
    chance = 3.0 / np.sqrt(whole.sum())
    matrix = np.where(np.abs(matrix) > chance, matrix, 0.0)
    np.fill_diagonal(matrix, 1.0)
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.eye(joints)


def _unshrunk(
    noise: _Noise,
    residuals: Array,
    rows: Rows,
    base: BaseParameters,
    weights: Weights,
    inverse: Array,
    norms: Array,
    spans: list[tuple[int, int]],
) -> _Noise:
    """Noise whose residuals, after a fit, look like those seen.

    Noise drawn from the model is fitted as the data were; where its residuals have less
    autocovariance than the noise had, the model is raised by as much.
    """
    rng = np.random.default_rng(0)
    keep, run, n = rows.keep, rows.run, len(rows)
    draws = np.stack([noise.draw(rng, n) for _ in range(DRAWS)], -1) * keep[..., None]
    right = np.zeros((base.rank, DRAWS))
    for first, last in spans:
        score = _scores(rows, base, weights, first, last) / norms
        right += np.tensordot(score, draws[first:last], ([0, 1], [0, 1]))
    error = inverse @ (inverse.T @ right)
    left = np.empty_like(draws)
    for first, last in spans:
        block = rows.block(first, last)[..., base.columns] / norms
        left[first:last] = draws[first:last] - (block * keep[first:last, :, None]) @ error
    before = _autocovariance(draws, keep, run).mean(-1)
    after = _autocovariance(left, keep, run).mean(-1)
    seen = _autocovariance(residuals, keep, run)
    raised = seen + (before - after)
    whole = np.all(keep, axis=1)
    return _from_autocovariance(raised, _correlation(residuals, whole, seen), keep.sum(axis=0))
