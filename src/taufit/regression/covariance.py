"""Covariance of base parameters from residuals with coloured noise, joint by joint.

An estimate is linear in the torque noise n: with G the weighted rows and A = G'W,

    base error = A^-1 G' n,        covariance = A^-1 (G' Gamma G) A^-1,

Gamma the covariance of n over time and joints. G' Gamma G is a sum over frequencies of the noise
spectrum times that of G; G has no power above the low-pass, so thinned samples suffice. A fit
absorbs the part of the noise that resembles motion; that part is restored by fitting simulated
noise. Residuals that repeat with the motion do not average out (`repeated_motion`): they act on the
mean of the columns over runs of one motion. Temperature slopes, which differ between such runs, are
hardly affected.
"""

from __future__ import annotations

from operator import add

import numpy as np
from numpy.fft import rfft, rfftfreq

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.regression.estimate import Estimate
from taufit.regression.information import Information
from taufit.regression.noise_model import MAX_LAGS, AutoregressiveNoise, fit_noise, lagged_products
from taufit.regression.regression import Regression
from taufit.regression.repeated_motion import (
    average_over_repeats,
    has_repeated_runs,
    repeat_power_ratio,
)
from taufit.regression.result_reuse import relative_tolerance, reusable_parameters
from taufit.regression.rows import RegressionRows, SampleRows
from taufit.regression.weights import HUBER, TUKEY, Weights
from taufit.signals.estimates.periodicity import fft_length

# Per joint: indices of nonzero columns, and their values, one row each.
JointColumns = list[tuple[Int[Array, " _"], Float[Array, "_ n"]]]

DRAWS = 12
ROUNDS = 2
# Rows per joint above which a fit absorbs less than one per cent of the noise.
LARGE_ROW_COUNT = 20_000
# Samples per spectrum, and longest noise memory considered after their end, in blocks.
_BLOCK = 4096
_MAX_TAIL_BLOCKS = 8


def base_covariance(
    regression: Regression,
    weights: Weights,
    information: Information,
    values: Float[Array, " p"],
    weighting: str = "joint",
) -> Float[Array, "b b"]:
    """Covariance of the base parameters under autocorrelated residuals."""
    scores = score_covariance(regression, weights, information, values, weighting)
    return covariance_of_scores(information, regression.base.columns, scores)


def covariance_of_scores(
    information: Information, columns: Int[Array, " b"], scores: Float[Array, "b b"]
) -> Float[Array, "b b"]:
    """A^-1 S A^-1 with the covariance S of the scores G' n."""
    inverse, norms = _scaled_inverse(information, columns)
    scaled = scores / np.outer(norms, norms)
    covariance = inverse @ (inverse.T @ scaled @ inverse) @ inverse.T
    # Rounding depends on the order of products; make the covariance exactly symmetric.
    return np.asarray(0.5 * (covariance + covariance.T) / np.outer(norms, norms))


def _scaled_inverse(
    information: Information, columns: Int[Array, " b"]
) -> tuple[Float[Array, "b b"], Float[Array, " b"]]:
    """Inverse factor of the information for columns of unit length, and their norms."""
    upper = np.linalg.qr(information.factor[:, columns], mode="r")
    norms = np.linalg.norm(upper, axis=0)
    norms[norms == 0.0] = 1.0
    return np.linalg.pinv(upper / norms, rcond=1e-12), norms


def score_covariance(
    regression: Regression,
    weights: Weights,
    information: Information,
    values: Float[Array, " p"],
    weighting: str = "joint",
) -> Float[Array, "b b"]:
    """Covariance of the scores G' n of a fit, from its residuals.

    Args:
        regression: Fitted regression.
        weights: Weights of the rows in the fit.
        information: Weighted information of the rows.
        values: Fitted parameters.
        weighting: Name of the weighting rule; robust rules limit large residuals.
    """
    base = regression.base
    inverse, exact_norms = _scaled_inverse(information, base.columns)
    # Only the order of magnitude matters.
    norms = regression.reuse_if_close("norms", exact_norms, relative_tolerance(0.7))
    inverse = inverse * (norms / exact_norms)[:, None]

    lags = min(MAX_LAGS, max(regression.samples // 20, 1))
    reference_values = reusable_parameters(regression, values)
    # Joint weights do not change residuals; row weights do.
    row_weights = Weights.equal(regression.joints) if weights.rows is None else weights
    residual_sums = regression.total(
        _ResidualStep(reference_values, row_weights, weighting, lags), add
    )
    rows = regression.excerpt
    scores = _score_residuals(rows, values, weights)
    noise = fit_noise(residual_sums.covariance, residual_sums.count, scores, rows.keep)
    is_small = regression.excerpt_is_all and residual_sums.count.min() <= LARGE_ROW_COUNT
    joint_columns: JointColumns | None = None
    if np.any(noise.std > 0) and is_small:
        joint_columns = rows.joint_columns(0, len(rows), 1, base.columns)
        columns = [(indices, values / norms[indices, None]) for indices, values in joint_columns]
        for _ in range(ROUNDS):
            corrected = residual_sums.covariance + _absorbed_covariance(
                noise, rows, columns, weights, inverse, lags
            )
            noise = fit_noise(corrected, residual_sums.count, scores, rows.keep)
    # Noise estimated from few independent samples: intervals need Student's quantile.
    interval_scale = _student_factor(noise.freedom)
    repeat_ratio = np.ones(rows.joints)
    if isinstance(rows, SampleRows):
        repeat_ratio = repeat_power_ratio(scores, rows.keep, rows.samples)
    has_repeats = (
        isinstance(rows, SampleRows)
        and joint_columns is not None
        and has_repeated_runs(rows.samples)
    )
    if not has_repeats:
        interval_scale = interval_scale * np.sqrt(repeat_ratio)
    if joint_columns is None:
        noise_settings = regression.reuse_if_close(
            "noise", (_weight_matrix(weights), interval_scale, noise), _is_same_noise
        )
        out = regression.total(_ScoreCovariance(base.columns, norms, *noise_settings), add)
    else:
        out = _ScoreCovariance(base.columns, norms, _weight_matrix(weights), interval_scale, noise)(
            rows, joint_columns
        )
        if has_repeats and isinstance(rows, SampleRows):
            repeat_scale = interval_scale * np.sqrt(repeat_ratio - 1.0)
            common = [
                (indices, average_over_repeats(values, rows.samples))
                for indices, values in joint_columns
            ]
            out += _ScoreCovariance(
                base.columns, norms, _weight_matrix(weights), repeat_scale, noise
            )(rows, common)
    return np.asarray(out * np.outer(norms, norms) / residual_sums.psi_slope**2)


def posterior_covariance(
    estimate: Estimate, prior: Float[Array, "p p"], correlation_samples: float
) -> Float[Array, "b b"]:
    """Covariance of base parameters b = B theta that were estimated with a Gaussian prior.

    With A the information of the rows, L that of the prior of theta, and S the covariance of the
    scores, the error is M (s + L d), M = (B' A B + L)^-1, s ~ (0, S), d ~ (0, c L^-1):

        covariance = B M B' S B M B' + c B M L M B'.

    S, not the covariance A^-1 S A^-1 without prior, which has no digits left on short motion.

    Args:
        estimate: Estimate with S.
        prior: L, in the units of A; zero for parameters without prior.
        correlation_samples: c, rows that count as one: the residual variance of independent rows,
            in units of A, since L was weighed against c times too many rows.
    """
    mapping, information = estimate.base.mapping, estimate.information
    factor = information.factor[:, estimate.base.columns]
    squares = factor.T @ factor
    total = mapping.T @ squares @ mapping + prior
    size = np.sqrt(np.diag(total))
    used = size > 0.0
    scaled = total[np.ix_(used, used)] / np.outer(size[used], size[used])
    inverse = np.zeros_like(total)
    inverse[np.ix_(used, used)] = np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) / np.outer(
        size[used], size[used]
    )
    gain = mapping @ inverse
    response = gain @ mapping.T
    out = response @ estimate.score_covariance @ response.T
    out += correlation_samples * (gain @ prior @ gain.T)
    return np.asarray(0.5 * (out + out.T))


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualProducts:
    """Sums over residuals.

    Attributes:
        products: Sums of residual products, per lag and joint.
        count: Rows per joint.
        slope, weight: Sums of the robust loss's derivative and weight; 0 where it is not robust.
    """

    products: Float[Array, "l j"]
    count: Int[Array, " j"]
    slope: float = 0.0
    weight: float = 0.0

    def __add__(self, other: _ResidualProducts) -> _ResidualProducts:
        return _ResidualProducts(
            self.products + other.products,
            self.count + other.count,
            self.slope + other.slope,
            self.weight + other.weight,
        )

    @property
    def covariance(self) -> Float[Array, "l j"]:
        # The biased divisor keeps the sequence positive definite.
        return np.asarray(self.products / np.maximum(self.count, 1))

    @property
    def psi_slope(self) -> float:
        """Mean slope of psi over its mean weight: an M-estimate responds to psi(n) / slope, not to
        n.
        """
        if self.weight == 0.0:
            return 1.0
        total = max(int(self.count.sum()), 1)
        return max((self.slope / total) / max(self.weight / total, 1e-12), 0.2)


def _is_same_noise(
    noise: tuple[Float[Array, "j j"], Float[Array, " j"], AutoregressiveNoise],
    cached: tuple[Float[Array, "j j"], Float[Array, " j"], AutoregressiveNoise],
) -> bool:
    """Whether weights, noise and its spectrum are close enough for standard deviations."""
    is_close = relative_tolerance(0.05)
    cycles = np.linspace(0.0, 0.5, 9)
    gains = (np.abs(weights_and_noise[2].gains(cycles)) for weights_and_noise in (noise, cached))
    return (
        is_close(noise[0], cached[0])
        and is_close(noise[1], cached[1])
        and is_close(noise[2].std, cached[2].std)
        and relative_tolerance(0.1)(*gains)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualStep:
    values: Float[Array, " p"]
    weights: Weights
    weighting: str
    lags: int

    def __call__(self, rows: RegressionRows) -> _ResidualProducts:
        scores = _score_residuals(rows, self.values, self.weights)
        products = lagged_products(scores, rows.run, self.lags)
        count = rows.keep.sum(axis=0)
        if self.weights.rows is None:
            return _ResidualProducts(products, count)
        u = np.abs(rows.residuals(self.values) * self.weights.joint)[rows.keep]
        if self.weighting == "huber":
            slope, weight = (u < HUBER).astype(float), np.minimum(1.0, HUBER / np.maximum(u, HUBER))
        else:
            inside = u < TUKEY
            x = (u / TUKEY) ** 2
            slope = np.where(inside, (1 - x) * (1 - 5 * x), 0.0)
            weight = np.where(inside, (1 - x) ** 2, 0.0)
        return _ResidualProducts(products, count, float(slope.sum()), float(weight.sum()))


def _score_residuals(
    rows: RegressionRows, values: Float[Array, " p"], weights: Weights
) -> Float[Array, "n j"]:
    """Residuals after robust weighting; 0 where a row does not count."""
    residuals = rows.residuals(values)
    if weights.rows is not None:
        residuals = residuals * weights.rows(rows) ** 2
    return np.where(rows.keep, residuals, 0.0)


def _weight_matrix(weights: Weights) -> Float[Array, "j j"]:
    """Weight matrix between joints in G'n."""
    if weights.whitener is None:
        return np.diag(weights.joint**2)
    return np.asarray(weights.whitener.T @ weights.whitener)


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreCovariance:
    """G' Gamma G of one part, in columns of unit length.

    G_i = sum_l weight_il W_l, times `scale` for joint i. Thinned by D, with

        V_k(f) = sum_i conj(L_ik / A_i(f)) G_i(f),

    the sum over all samples is D/N sum_f V_k(f)* V_k(f): innovations L e become noise of joint i
    through 1/A_i.

    Attributes:
        columns: Base columns.
        norms: Lengths of the base columns.
        weight: Weight matrix between joints.
        scale: Factor per joint.
        noise: Noise model of the joints.
    """

    columns: Int[Array, " b"]
    norms: Float[Array, " b"]
    weight: Float[Array, "j j"]
    scale: Float[Array, " j"]
    noise: AutoregressiveNoise

    def __call__(
        self, rows: RegressionRows, joint_columns: JointColumns | None = None
    ) -> Float[Array, "b b"]:
        """Score covariance of the rows; `joint_columns` are their columns if already computed."""
        stride, b = rows.stride, len(self.columns)
        out = np.zeros((b, b))
        for first, last in rows.blocks(_BLOCK * stride):
            block_columns = (
                rows.joint_columns(first, last, stride, self.columns)
                if joint_columns is None
                else [(indices, values[:, first:last:stride]) for indices, values in joint_columns]
            )
            n = block_columns[0][1].shape[1]
            tail = min(max(self.noise.memory_samples, MAX_LAGS) / stride, _MAX_TAIL_BLOCKS * n)
            length = fft_length(n + int(tail))
            innovation_gains = self._innovation_gains(length, stride)
            spectra = [(indices, rfft(values, length, axis=1)) for indices, values in block_columns]
            for k in range(rows.joints):
                weighted_spectrum = np.zeros((b, length // 2 + 1), complex)
                live = np.zeros(b, bool)
                for (indices, spectrum), gain in zip(spectra, innovation_gains[k], strict=True):
                    if gain is not None:
                        weighted_spectrum[indices] += gain * spectrum
                        live[indices] = True
                real_spectrum = weighted_spectrum[live].view(float)
                out[np.ix_(live, live)] += real_spectrum @ real_spectrum.T
        return out / np.outer(self.norms, self.norms)

    def _innovation_gains(self, length: int, stride: int) -> list[list[Array | None]]:
        """Frequency response from columns of joint l to innovation k."""
        gains = self.noise.gains(rfftfreq(length) / stride)
        two_sided = np.full(len(gains[0]), np.sqrt(2.0 * stride / length))
        two_sided[0] = np.sqrt(stride / length)
        if length % 2 == 0:
            two_sided[-1] = two_sided[0]
        joints = range(len(gains))
        factors = self.noise.mixing[:, None, :] * (self.scale[:, None] * self.weight)[:, :, None]
        return [
            [
                sum(factors[i, l, k] * np.conj(gains[i]) for i in joints) * two_sided
                if np.any(factors[:, l, k])
                else None
                for l in joints
            ]
            for k in joints
        ]


def _student_factor(freedom: Array) -> Array:
    """Ratio of Student's to the normal 95 % quantile, to second order; at least 5 degrees of
    freedom.
    """
    z, nu = NORMAL_95, np.maximum(freedom, 5.0)
    return np.asarray(1.0 + (z**2 + 1) / (4 * nu) + (5 * z**4 + 16 * z**2 + 3) / (96 * nu**2))


def _absorbed_covariance(
    noise: AutoregressiveNoise,
    rows: RegressionRows,
    columns: JointColumns,
    weights: Weights,
    inverse: Float[Array, "b b"],
    lags: int,
) -> Float[Array, "l j"]:
    """Autocovariance that a fit absorbs, from residuals of fits to simulated noise."""
    draws = noise.draw(np.random.default_rng(0), len(rows), DRAWS) * rows.keep[..., None]
    weight = _weight_matrix(weights)
    is_diagonal = weights.whitener is None
    weighted = (
        np.diag(weight)[:, None] * draws if is_diagonal else np.einsum("ik,nkd->nid", weight, draws)
    )
    right_side = np.zeros((len(inverse), DRAWS))
    for i, (indices, joint_columns) in enumerate(columns):
        right_side[indices] += joint_columns @ weighted[:, i]
    error = inverse @ (inverse.T @ right_side)
    count = np.maximum(rows.keep.sum(axis=0), 1)
    before = lagged_products(draws, rows.run, lags).mean(-1) / count
    for i, (indices, joint_columns) in enumerate(columns):
        draws[:, i] -= joint_columns.T @ error[indices]
    return np.asarray(before - lagged_products(draws, rows.run, lags).mean(-1) / count)
