"""Parameters from torque magnitudes, starting near the solution: folded-normal EM.

A magnitude m = |mu + e|, e ~ N(0, sigma^2), is explained by both signs; its expected signed value
is

    z = m tanh(m mu / sigma^2),

so alternating expectation and weighted least squares increases the likelihood of all samples, those
near zero included, without deciding any sign.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import Gaussian
from taufit.signs.quadratic_form import JointRows


@dataclass(frozen=True, slots=True, eq=False)
class FoldedNormalFit:
    """Parameters fitted to magnitudes.

    Attributes:
        theta: Parameters of the independent columns.
        noise: Standard deviation per joint [N m].
        predicted: Y theta [N m].
        expected: Expected signed torque of each sample [N m].
        rounds: Number of iterations.
    """

    theta: Float[Array, " b"]
    noise: Float[Array, " j"]
    predicted: Float[Array, "n j"]
    expected: Float[Array, "n j"]
    rounds: int


def fit_folded_normal(
    rows: JointRows,
    magnitude: Float[Array, "n j"],
    signed: Bool[Array, "n j"],
    keep: Bool[Array, "n j"],
    theta: Float[Array, " b"],
    floor: Float[Array, " j"],
    *,
    tolerance: float = 1e-6,
    maximum_iterations: int = 40,
) -> FoldedNormalFit:
    """Maximise the likelihood from `theta` to the nearest maximum.

    Args:
        rows: Regressor.
        magnitude: |torque|, or signed torque where `signed` [N m].
        signed: Samples with a known sign.
        keep: Samples to use.
        theta: Start values.
        floor: Minimum noise per joint [N m].
        tolerance: Relative change of the predicted torque at convergence.
        maximum_iterations: Maximum number of iterations.
    """
    grams = []
    for i, (part, columns) in enumerate(zip(rows.rows, rows.columns, strict=True)):
        used_rows = part if np.all(keep[:, i]) else part[keep[:, i]]
        grams.append((columns, used_rows.T @ used_rows))
    count = np.maximum(keep.sum(0), 1)
    predicted = rows.torque(theta)
    residual = np.where(signed, magnitude - predicted, magnitude - np.abs(predicted))
    noise = _noise(residual**2, keep, count, floor)
    expected = magnitude
    iteration = 0
    while iteration < maximum_iterations:
        iteration += 1
        expected = np.where(
            signed, magnitude, magnitude * np.tanh(magnitude * predicted / noise**2)
        )
        weight = 1.0 / noise**2
        normal = np.zeros((rows.width, rows.width))
        for i, (columns, gram) in enumerate(grams):
            normal[np.ix_(columns, columns)] += weight[i] * gram
        right = rows.project(np.where(keep, expected * weight, 0.0))
        theta = Gaussian(normal, right).mean(1e-12)
        previous, predicted = predicted, rows.torque(theta)
        # E (y - mu)^2 with the sign marginalised.
        square = magnitude**2 - 2.0 * expected * predicted + predicted**2
        noise = _noise(square, keep, count, floor)
        change = np.sqrt(np.sum(((predicted - previous) / noise) ** 2))
        if change <= tolerance * np.sqrt(np.sum((predicted / noise) ** 2)):
            break
    return FoldedNormalFit(theta, noise, predicted, expected, iteration)


def log_likelihood(
    magnitude: Float[Array, "n j"],
    signed: Bool[Array, "n j"],
    keep: Bool[Array, "n j"],
    predicted: Float[Array, "n j"],
    noise: Float[Array, " j"],
) -> float:
    """Log-likelihood of magnitudes and signed values, up to a constant."""
    return float(np.sum(joint_log_likelihood(magnitude, signed, keep, predicted, noise)))


def joint_log_likelihood(
    magnitude: Float[Array, "n j"],
    signed: Bool[Array, "n j"],
    keep: Bool[Array, "n j"],
    predicted: Float[Array, "n j"],
    noise: Float[Array, " j"],
) -> Float[Array, " j"]:
    """Log-likelihood of each joint.

    A magnitude counts with both signs: log(exp(-(m - mu)^2 / 2) + exp(-(m + mu)^2 / 2)) in units
    of the noise.
    """
    m, mu = magnitude / noise, predicted / noise
    mirror_term = np.where(signed, 0.0, np.log1p(np.exp(-2.0 * np.abs(m * mu))))
    deviation = np.where(signed, m - mu, np.abs(m) - np.abs(mu))
    return np.sum(np.where(keep, mirror_term - 0.5 * deviation**2 - np.log(noise), 0.0), 0)


def _noise(
    square: Float[Array, "n j"],
    keep: Bool[Array, "n j"],
    count: Int[Array, " j"],
    floor: Float[Array, " j"],
) -> Float[Array, " j"]:
    return np.maximum(np.sqrt(np.sum(np.where(keep, square, 0.0), 0) / count), floor)
