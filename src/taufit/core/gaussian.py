"""Normal distributions in information form: precision and target add up.

    p(x) ~ exp(-(x' P x) / 2 + b' x),        mean = P^-1 b,    covariance = P^-1

Parameters of a robot differ in size by many orders of magnitude, so every solution scales P to unit
diagonal first: P^-1 = D^-1 (D^-1 P D^-1)^-1 D^-1 with D = sqrt(diag P).
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian:
    """Normal distribution over x by precision and target; independent information adds up.

    Attributes:
        precision: P, symmetric.
        target: b = P mean.
    """

    precision: Float[Array, "p p"]
    target: Float[Array, " p"]

    @classmethod
    def from_moments(
        cls, mean: Float[Array, " p"], covariance: Float[Array, "p p"], ridge: float = 0.0
    ) -> Gaussian:
        """Distribution with given mean and covariance."""
        precision = inverse_at_unit_diagonal(covariance, ridge)
        return cls(precision, precision @ mean)

    @classmethod
    def from_precision(cls, mean: Float[Array, " p"], precision: Float[Array, "p p"]) -> Gaussian:
        """Distribution with given mean and precision."""
        return cls(precision, precision @ mean)

    def __add__(self, other: Gaussian) -> Gaussian:
        """Product of the densities: sum of the information."""
        return Gaussian(self.precision + other.precision, self.target + other.target)

    def __len__(self) -> int:
        return len(self.target)

    def solve(self, ridge: float = 0.0) -> tuple[Float[Array, " p"], Float[Array, "p p"]]:
        """Mean and covariance.

        Args:
            ridge: Added to the unit diagonal; keeps directions without information finite.
        """
        covariance = inverse_at_unit_diagonal(self.precision, ridge)
        return covariance @ self.target, covariance

    def mean(self, ridge: float = 0.0) -> Float[Array, " p"]:
        """Mean, without computing the covariance."""
        scaled, size = unit_diagonal(self.precision, ridge)
        return np.asarray(np.linalg.solve(scaled, self.target / size) / size)

    def marginal(self, keep: Int[Array, " k"], ridge: float = 0.0) -> Gaussian:
        """Marginal distribution of some entries."""
        keep = np.asarray(keep)
        eliminated = np.setdiff1d(np.arange(len(self)), keep)
        cross = self.precision[np.ix_(keep, eliminated)]
        gain = cross @ inverse_at_unit_diagonal(
            self.precision[np.ix_(eliminated, eliminated)], ridge
        )
        precision = self.precision[np.ix_(keep, keep)] - gain @ cross.T
        return Gaussian(
            0.5 * (precision + precision.T), self.target[keep] - gain @ self.target[eliminated]
        )

    def condition(self, indices: Int[Array, " k"], values: Float[Array, " k"]) -> Gaussian:
        """Conditional distribution of the other entries, given values of some."""
        remaining = np.setdiff1d(np.arange(len(self)), indices)
        cross = self.precision[np.ix_(remaining, np.asarray(indices))]
        return Gaussian(
            self.precision[np.ix_(remaining, remaining)],
            self.target[remaining] - cross @ np.asarray(values),
        )


def unit_diagonal(
    matrix: Float[Array, "p p"], ridge: float = 0.0
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """D^-1 M D^-1 + ridge, and the diagonal of D = sqrt(diag M), 1 where M has no entry."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    size[size == 0.0] = 1.0
    scaled = matrix / np.outer(size, size)
    if ridge:
        scaled[np.diag_indices(len(size))] += ridge
    return scaled, size


def inverse_at_unit_diagonal(
    matrix: Float[Array, "p p"], ridge: float = 0.0
) -> Float[Array, "p p"]:
    """Inverse of a symmetric matrix with a positive diagonal, computed at unit diagonal."""
    from taufit.core.lapack import inverse_symmetric

    scaled, size = unit_diagonal(matrix, ridge)
    return np.asarray(inverse_symmetric(scaled) / np.outer(size, size))


def inverse_on_subset(
    matrix: Float[Array, "p p"], free: Bool[Array, " p"], ridge: float = 0.0
) -> Float[Array, "p p"]:
    """Inverse over the free rows and columns, 0 elsewhere."""
    indices = np.flatnonzero(free)
    out = np.zeros_like(matrix)
    out[np.ix_(indices, indices)] = inverse_at_unit_diagonal(
        matrix[np.ix_(indices, indices)], ridge
    )
    return out
