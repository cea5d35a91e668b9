"""How uncertain base parameters are, from the residuals as they are: coloured, joint by joint.

An estimate is linear in the torque noise n: with G the weighted rows and A = G'W,

    base error = A^-1 G' n,        covariance = A^-1 (G' Gamma G) A^-1,

Gamma the covariance of n over time and joints. G' Gamma G is a sum over frequencies of the noise's
spectrum times that of G, and G has nothing above the low-pass, so every few samples say all. The
fit itself takes the part of the noise that looks like motion out of the residuals, which is put
back by fitting simulated noise alike. What comes back with a motion that repeats counts as often as
it does (`repeats`), and pulls at what the columns have in common over runs of one motion: slopes
over temperature, which tell such runs apart, are hardly moved by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add

import numpy as np
import scipy.linalg
from numpy.fft import rfft, rfftfreq

from taufit.core.arrays import Array, Float, Int
from taufit.core.statistics import NORMAL_95
from taufit.regression.information import Information
from taufit.regression.noise_model import MOST_LAGS, AutoregressiveNoise, lagged_products, noise_of
from taufit.regression.regression import Regression
from taufit.regression.repeated_motion import (
    average_over_repeats,
    has_repeated_runs,
    repeated_share,
)
from taufit.regression.result_reuse import relative_tolerance, reusable_parameters
from taufit.regression.rows import RegressionRows, SampleRows
from taufit.regression.weights import HUBER, TUKEY, Weights
from taufit.signals.estimates.periodicity import fast_length

# Per joint, which columns there are and their values, one row each.
JointColumns = list[tuple[Int[Array, " _"], Float[Array, "_ n"]]]

DRAWS = 12
ROUNDS = 2
# With more rows per joint than this a fit takes less than a per cent out of the noise.
MANY_ROWS = 20_000
# Samples whose noise is followed together, and how far beyond their end at most, in blocks.
_BLOCK = 4096
_BEYOND = 8


def base_covariance(
    regression: Regression,
    weights: Weights,
    information: Information,
    values: Float[Array, " p"],
    weighting: str = "joint",
) -> Float[Array, "b b"]:
    """Covariance of the base parameters under the residuals' own colour.

    Args:
        regression: What was fitted.
        weights: Of the rows in the fit.
        information: What those rows say.
        values: The parameters fitted.
        weighting: Name of the rule behind the weights; robust ones bound the residuals.
    """
    base = regression.base
    upper = np.linalg.qr(information.factor[:, base.columns], mode="r")
    norms = np.linalg.norm(upper, axis=0)
    norms[norms == 0.0] = 1.0
    # Any scale of about this size will do.
    norms = regression.settled("norms", norms, relative_tolerance(0.7))
    inverse = scipy.linalg.pinv(upper / norms, rtol=1e-12)

    lags = min(MOST_LAGS, max(regression.samples // 20, 1))
    about = reusable_parameters(regression, values)
    # Weights of joints do not matter to residuals, those of single rows do.
    own = Weights.one(regression.joints) if weights.rows is None else weights
    seen = regression.total(_ResidualStep(about, own, weighting, lags), add)
    rows = regression.excerpt
    scored = _scored(rows, values, weights)
    noise = noise_of(seen.covariance, seen.count, scored, rows.keep)
    few = regression.excerpt_is_all and seen.count.min() <= MANY_ROWS
    made: JointColumns | None = None
    if np.any(noise.std > 0) and few:
        made = rows.joint_columns(0, len(rows), 1, base.columns)
        columns = [(which, values / norms[which, None]) for which, values in made]
        for _ in range(ROUNDS):
            raised = seen.covariance + _taken_out(noise, rows, columns, weights, inverse, lags)
            noise = noise_of(raised, seen.count, scored, rows.keep)
    # Noise known from few independent squares: intervals of two standard deviations must be wider.
    wider = _wider(noise.freedom)
    share = np.ones(rows.joints)
    if isinstance(rows, SampleRows):
        share = repeated_share(scored, rows.keep, rows.samples)
    alike = isinstance(rows, SampleRows) and made is not None and has_repeated_runs(rows.samples)
    if not alike:
        wider = wider * np.sqrt(share)
    if made is None:
        what = regression.settled("noise", (_weight(weights), wider, noise), _alike)
        spread = regression.total(_ScoreCovariance(base.columns, norms, *what), add)
    else:
        spread = _ScoreCovariance(base.columns, norms, _weight(weights), wider, noise)(rows, made)
        if alike and isinstance(rows, SampleRows):
            again = wider * np.sqrt(share - 1.0)
            common = [(which, average_over_repeats(values, rows.samples)) for which, values in made]
            spread += _ScoreCovariance(base.columns, norms, _weight(weights), again, noise)(
                rows, common
            )
    covariance = inverse @ (inverse.T @ spread @ inverse) @ inverse.T / seen.flatness**2
    # Products in another order round differently; a covariance is symmetric to the last bit.
    return np.asarray(0.5 * (covariance + covariance.T) / np.outer(norms, norms))


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualProducts:
    """Sums over residuals.

    Attributes:
        products: Of residuals some samples apart, per lag and joint.
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
    def flatness(self) -> float:
        """An M-estimate moves by psi(n), not n, and by as much more as psi is flat."""
        if self.weight == 0.0:
            return 1.0
        total = max(int(self.count.sum()), 1)
        return max((self.slope / total) / max(self.weight / total, 1e-12), 0.2)


def _alike(
    now: tuple[Float[Array, "j j"], Float[Array, " j"], AutoregressiveNoise],
    known: tuple[Float[Array, "j j"], Float[Array, " j"], AutoregressiveNoise],
) -> bool:
    """Whether weights and noise are the same to a per cent: what standard deviations depend on."""
    near = relative_tolerance(0.01)
    cycles = np.linspace(0.0, 0.5, 9)
    gains = (np.abs(own[2].gains(cycles)) for own in (now, known))
    return (
        near(now[0], known[0])
        and near(now[1], known[1])
        and near(now[2].std, known[2].std)
        and relative_tolerance(0.03)(*gains)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualStep:
    values: Float[Array, " p"]
    weights: Weights
    weighting: str
    lags: int

    def __call__(self, rows: RegressionRows) -> _ResidualProducts:
        scored = _scored(rows, self.values, self.weights)
        products = lagged_products(scored, rows.run, self.lags)
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


def _scored(
    rows: RegressionRows, values: Float[Array, " p"], weights: Weights
) -> Float[Array, "n j"]:
    """Residuals as they pull at the parameters; 0 where a row does not count."""
    residuals = rows.residuals(values)
    if weights.rows is not None:
        residuals = residuals * weights.rows(rows) ** 2
    return np.where(rows.keep, residuals, 0.0)


def _weight(weights: Weights) -> Float[Array, "j j"]:
    """What stands between noise and columns in G'n."""
    if weights.whitener is None:
        return np.diag(weights.joint**2)
    return np.asarray(weights.whitener.T @ weights.whitener)


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreCovariance:
    """G' Gamma G of one part, in columns of unit length.

    G_i = sum_l weight_il W_l, times `wider` for joint i. Thinned by D, with

        V_k(f) = sum_i conj(L_ik / A_i(f)) G_i(f),

    the sum over all samples is D/N sum_f V_k(f)* V_k(f): the noise's innovations L e pass 1/A_i on
    their way to joint i.

    Attributes:
        columns: Base columns.
        norms: Their lengths.
        weight: Between joints.
        wider: Factor per joint.
        noise: Of the joints.
    """

    columns: Int[Array, " b"]
    norms: Float[Array, " b"]
    weight: Float[Array, "j j"]
    wider: Float[Array, " j"]
    noise: AutoregressiveNoise

    def __call__(
        self, rows: RegressionRows, made: JointColumns | None = None
    ) -> Float[Array, "b b"]:
        """Of the rows; `made` are their columns where these are at hand."""
        stride, b = rows.stride, len(self.columns)
        out = np.zeros((b, b))
        for first, last in rows.blocks(_BLOCK * stride):
            found = (
                rows.joint_columns(first, last, stride, self.columns)
                if made is None
                else [(which, values[:, first:last:stride]) for which, values in made]
            )
            n = found[0][1].shape[1]
            beyond = min(max(self.noise.memory, MOST_LAGS) / stride, _BEYOND * n)
            length = fast_length(n + int(beyond))
            passed = self._passed(length, stride)
            spectra = [(which, rfft(values, length, axis=1)) for which, values in found]
            for k in range(rows.joints):
                mixed = np.zeros((b, length // 2 + 1), complex)
                live = np.zeros(b, bool)
                for (which, spectrum), gain in zip(spectra, passed[k], strict=True):
                    if gain is not None:
                        mixed[which] += gain * spectrum
                        live[which] = True
                own = mixed[live].view(float)
                out[np.ix_(live, live)] += own @ own.T
        return out / np.outer(self.norms, self.norms)

    def _passed(self, length: int, stride: int) -> list[list[Array | None]]:
        """What joint l's columns are multiplied with on their way to innovation k."""
        gains = self.noise.gains(rfftfreq(length) / stride)
        twice = np.full(len(gains[0]), np.sqrt(2.0 * stride / length))
        twice[0] = np.sqrt(stride / length)
        if length % 2 == 0:
            twice[-1] = twice[0]
        joints = range(len(gains))
        factors = self.noise.mixing[:, None, :] * (self.wider[:, None] * self.weight)[:, :, None]
        return [
            [
                sum(factors[i, l, k] * np.conj(gains[i]) for i in joints) * twice
                if np.any(factors[:, l, k])
                else None
                for l in joints
            ]
            for k in joints
        ]


def _wider(freedom: Array) -> Array:
    """Student's 95 % quantile over the normal one, to second order; at least 5 degrees."""
    z, nu = NORMAL_95, np.maximum(freedom, 5.0)
    return np.asarray(1.0 + (z**2 + 1) / (4 * nu) + (5 * z**4 + 16 * z**2 + 3) / (96 * nu**2))


def _taken_out(
    noise: AutoregressiveNoise,
    rows: RegressionRows,
    columns: JointColumns,
    weights: Weights,
    inverse: Float[Array, "b b"],
    lags: int,
) -> Float[Array, "l j"]:
    """Autocovariance that a fit takes out of noise: draws of it less what their fits leave."""
    rng = np.random.default_rng(0)
    draws = np.stack([noise.draw(rng, len(rows)) for _ in range(DRAWS)], -1)
    draws *= rows.keep[..., None]
    weighted = np.einsum("ik,nkd->nid", _weight(weights), draws)
    right = np.zeros((len(inverse), DRAWS))
    for i, (at, own) in enumerate(columns):
        right[at] += own @ weighted[:, i]
    error = inverse @ (inverse.T @ right)
    count = np.maximum(rows.keep.sum(axis=0), 1)
    before = lagged_products(draws, rows.run, lags).mean(-1) / count
    for i, (at, own) in enumerate(columns):
        draws[:, i] -= own.T @ error[at]
    return np.asarray(before - lagged_products(draws, rows.run, lags).mean(-1) / count)
