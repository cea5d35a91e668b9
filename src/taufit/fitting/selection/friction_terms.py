"""Least squares with the nominal links as a Gaussian prior, on all data.

Row weights are based on the correlation of residuals over time, never on the type of robot.
"""

from __future__ import annotations

import numpy as np
from numpy.fft import irfft, rfft

from taufit.core.arrays import Array, Bool, Float
from taufit.core.lapack import solve_positive_definite, solve_triangular
from taufit.estimators.constraints import UNIT
from taufit.estimators.entropic import prior_links
from taufit.model.torque_model import TorqueModel
from taufit.regression.information import Information
from taufit.regression.regression import Regression
from taufit.robot.inertia import pseudo_inertia
from taufit.signals.estimates.periodicity import fft_length

# Prior weight of nominal links, known to about 30 %: an entropic divergence D is half the square of
# the relative change, so D = 1 weighs 1/0.3^2 squared noise levels of independent samples.
NOMINAL_WEIGHT = 11.0
# Prior weight of links without description, for regularisation only.
GUESSED_WEIGHT = 0.005

# Fraction of the prior weight in a fit with a weak prior.
MIN_PRIOR_FRACTION = 1e-3
# Ridge for undetermined directions, in columns of unit length.
_RIDGE = 1e-9


def gaussian_prior(
    model: TorqueModel,
) -> tuple[Float[Array, "p p"], Float[Array, " p"], bool]:
    """Prior precision (Hessian of the entropic divergence at the nominal links) and mean.

    The last value is True if the robot has no nominal values of any link.
    """
    links, guessed = prior_links(model)
    p = len(model.names)
    square, centre = np.zeros((p, p)), model.nominal.copy()
    centre[model.layout.links] = links.ravel()
    for k, link in enumerate(links):
        step = np.linalg.inv(pseudo_inertia(link)) @ UNIT
        link_slice = model.layout.link(k)
        square[link_slice, link_slice] = np.einsum("imn,jnm->ij", step, step)
    return square, centre, len(guessed) == len(links)


def correlation_samples(
    residuals: Float[Array, "n j"], keep: Bool[Array, "n j"], run: Array
) -> Float[Array, " j"]:
    """Correlation length of residuals in samples: 1 + 2 sum of their autocorrelation.

    The sum ends where the autocorrelation first falls below 0.05. The effective number of
    independent samples is N over this value.
    """
    out = np.ones(residuals.shape[1])
    for j in range(residuals.shape[1]):
        power, total = np.zeros(0), 0.0
        for r in np.unique(run):
            x = residuals[(run == r) & keep[:, j], j]
            if len(x) < 8:
                continue
            x = x - x.mean()
            length = fft_length(2 * len(x))
            autocovariance = irfft(np.abs(rfft(x, length)) ** 2, length)[: len(x)]
            longer = max(len(power), len(autocovariance))
            power = np.pad(power, (0, longer - len(power))) + np.pad(
                autocovariance, (0, longer - len(autocovariance))
            )
            total += autocovariance[0]
        if total <= 0.0:
            continue
        shape = power / total
        low = np.flatnonzero(shape < 0.05)
        end = int(low[0]) if len(low) else len(shape)
        out[j] = 1.0 + 2.0 * float(shape[1:end].sum())
    return out


def normal_equations(
    regression: Regression, scale: Float[Array, " j"]
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """Normal equations W'W and W'y of all rows, with joint weights."""
    return PriorLeastSquares(regression).normal_equations(scale)


def fit_with_prior(
    regression: Regression,
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    minimum_noise: Float[Array, " j"] | None = None,
) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
    """Parameters from all rows and a Gaussian prior, and the inverse variance of each joint."""
    return PriorLeastSquares(regression).weighted_fit(prior, centre, nonnegative, minimum_noise)


class PriorLeastSquares:
    """Least squares with a Gaussian prior, on all data."""

    def __init__(self, regression: Regression) -> None:
        self.mapping = regression.base.mapping
        self.total = regression.by_joint
        self.count = np.maximum([part.count for part in self.total], 1)

    def weighted_fit(
        self,
        prior: Float[Array, "p p"],
        centre: Float[Array, " p"],
        nonnegative: Bool[Array, " p"],
        least_noise: Float[Array, " j"] | None = None,
    ) -> tuple[Float[Array, " p"], Float[Array, " j"]]:
        """Parameters from all data, and the inverse residual variance of each joint."""
        power = self.costs(self.total, np.zeros(len(centre)))
        floor = 1e-12 * power.max()
        if least_noise is not None:
            floor = np.maximum(floor, self.count * least_noise**2)
        scale = self.count / np.maximum(power, 1e-12)
        included = np.ones(len(centre), bool)
        values, vectors = np.linalg.eigh(prior)
        positive = values > 0.0
        root = np.sqrt(values[positive])[:, None] * vectors[:, positive].T
        # Each joint's factor has rows for its nonzero columns only.
        nonzero = [np.any(information.factor, axis=1) for information in self.total]
        factors = [
            information.factor[rows_used] @ self.mapping
            for information, rows_used in zip(self.total, nonzero, strict=True)
        ]
        targets = [
            information.target[rows_used]
            for information, rows_used in zip(self.total, nonzero, strict=True)
        ]
        for _ in range(4):
            # Solved by QR, since loads depend on these parameters and need full accuracy.
            size = np.sqrt(scale)
            rows = [s * information for s, information in zip(size, factors, strict=True)]
            scaled_targets = [s * information for s, information in zip(size, targets, strict=True)]
            stacked = np.concatenate([*rows, root])
            theta = _least_squares(
                stacked, np.concatenate([*scaled_targets, root @ centre]), nonnegative, included
            )
            cost = self.costs(self.total, theta)
            scale = self.count / np.maximum(np.maximum(cost, floor), 1e-300)
        return theta, scale

    def normal_equations(
        self, scale: Float[Array, " j"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Normal equations of all data."""
        return self.weighted(self.total, scale)

    def weighted(
        self, parts: tuple[Information, ...], scale: Float[Array, " j"]
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Weighted W'W and W'y from factors on base columns: W = W_b B."""
        square = sum(s * (a.factor.T @ a.factor) for s, a in zip(scale, parts, strict=True))
        right = sum(s * (a.factor.T @ a.target) for s, a in zip(scale, parts, strict=True))
        return self.mapping.T @ square @ self.mapping, self.mapping.T @ right

    def costs(
        self, parts: tuple[Information, ...], theta: Float[Array, " p"]
    ) -> Float[Array, " j"]:
        base_values = self.mapping @ theta
        return np.array([part.cost(base_values) for part in parts])


def _least_squares(
    rows: Float[Array, "r p"],
    values: Float[Array, " r"],
    nonnegative: Bool[Array, " p"],
    included: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """Solution of `solve_normal` from rows instead of their normal equations."""
    size = np.linalg.norm(rows, axis=0)
    free = included & (size > 0.0)
    theta = np.zeros(rows.shape[1])
    candidates = np.flatnonzero(free)
    scaled = np.concatenate(
        [rows[:, candidates] / size[candidates], np.sqrt(_RIDGE) * np.eye(len(candidates))]
    )
    target = np.pad(values, (0, len(candidates)))
    upper = np.asarray(np.linalg.qr(np.column_stack([scaled, target]), mode="r"))
    for _ in range(20):
        is_free = free[candidates]
        # A column fixed at zero is removed with its ridge.
        reduced = upper
        if not np.all(is_free):
            reduced = np.asarray(np.linalg.qr(upper[:, np.append(is_free, True)], mode="r"))
        theta[:] = 0.0
        scaled_solution = solve_triangular(reduced[:-1, :-1], reduced[:-1, -1])
        theta[candidates[is_free]] = scaled_solution / size[candidates[is_free]]
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta


def solve_normal(
    square: Float[Array, "p p"],
    right: Float[Array, " p"],
    nonnegative: Bool[Array, " p"],
    included: Bool[Array, " p"],
) -> Float[Array, " p"]:
    """Solve normal equations; dissipative terms that become negative are set to zero."""
    # Diagonal entries of dependent columns may be negative rounding errors.
    size = np.sqrt(np.maximum(np.diag(square), 0.0))
    free = included & (size > 0.0)
    theta = np.zeros(len(right))
    for _ in range(20):
        indices = np.flatnonzero(free)
        s = size[indices]
        scaled = square[np.ix_(indices, indices)] / np.outer(s, s)
        scaled[np.diag_indices(len(indices))] += _RIDGE
        theta[:] = 0.0
        theta[indices] = _solve_symmetric(scaled, right[indices] / s) / s
        negative = free & nonnegative & (theta < 0.0)
        if not np.any(negative):
            break
        free &= ~negative
    return theta


def _solve_symmetric(matrix: Float[Array, "k k"], right: Float[Array, " k"]) -> Float[Array, " k"]:
    """Solve for a symmetric matrix, which rounding may leave without a positive pivot."""
    try:
        return solve_positive_definite(matrix, right)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.solve(matrix, right))
