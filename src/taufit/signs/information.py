"""Information of torque magnitudes about the parameters, in the form that estimators take.

Near the predicted torque mu, the log-likelihood of a magnitude m = |mu + e| is, in units of its
noise, the quadratic of a signed sample with a smaller weight,

    -1/2 w (y - mu')^2,     w = 1 - E[m^2 sech^2(m mu)],     y = mu + (m tanh(m mu) - mu) / w,

where w is the information relative to a signed sample: 0 at zero torque, 1 from three standard
deviations on. Equally weighted rows would have the same optimum without active constraints; with
them, samples near zero would count as if their sign were known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
import scipy.linalg

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.model.torque_model import TorqueModel
from taufit.regression.estimate import Estimate
from taufit.regression.information import Information
from taufit.regression.rows import RegressionRows, SampleRows
from taufit.regression.weights import Weights
from taufit.signals import Samples
from taufit.signs.findings import RecoveredSigns

# Minimum weight: smaller ones would give a large y; a larger weight only shortens the steps.
_MINIMUM_WEIGHT = 0.05


@lru_cache(maxsize=1)
def _weight_table() -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Weight w over a grid of |mu| in standard deviations, by Gauss-Hermite quadrature."""
    grid = np.linspace(0.0, 6.0, 121)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    m = np.abs(grid[:, None] + nodes)
    lost_information = (m / np.cosh(m * grid[:, None])) ** 2 @ (weights / weights.sum())
    return grid, np.clip(1.0 - lost_information, 0.0, 1.0)


def information_share(level: Float[Array, "*n"]) -> Float[Array, "*n"] | float:
    """Weight w at mu, in standard deviations."""
    grid, weights = _weight_table()
    return np.interp(np.abs(level), grid, weights, right=1.0)


class MagnitudeRows(SampleRows):
    """Rows y = W theta + e, each times sqrt(w), linearised at a fit to magnitudes.

    Args:
        model: Torque model.
        samples: Motion; its torque is not used.
        expected: Expected signed torque of each sample at the fit, before any low-pass [N m].
        predicted: Torque of the fit, mu [N m].
        noise: Standard deviation per joint [N m].
        has_sign: Samples with a known sign.
    """

    def __init__(
        self,
        model: TorqueModel,
        samples: Samples,
        expected: Float[Array, "n j"],
        predicted: Float[Array, "n j"],
        noise: Float[Array, " j"],
        has_sign: Bool[Array, "n j"],
    ) -> None:
        super().__init__(model, samples)
        weight = np.where(
            has_sign, 1.0, np.maximum(information_share(predicted / noise), _MINIMUM_WEIGHT)
        )
        self.root = np.sqrt(weight)
        response = predicted + (expected - predicted) / weight
        self.torque = np.where(self.keep, self.root * response, 0.0)

    @cached_property
    def friction(self) -> Float[Array, "n j k"]:
        """Friction columns of each motor, filtered only if the torque is."""
        s = self.samples
        if s.raw_torque is None:
            return super().friction
        return self.columns.drive_at(s, load=self.gear_load, filtered=False)

    def block(self, first: int, last: int, stride: int = 1) -> Float[Array, "n j p"]:
        return super().block(first, last, stride) * self.root[first:last:stride, :, None]

    def information_by_joint(
        self,
        first: int,
        last: int,
        columns: Int[Array, " b"],
        weights: Weights | None = None,
    ) -> tuple[Information, ...]:
        return RegressionRows.information_by_joint(self, first, last, columns, weights)

    def joint_columns(
        self, first: int, last: int, stride: int, columns: Int[Array, " b"]
    ) -> list[tuple[Int[Array, " c"], Float[Array, "c n"]]]:
        return RegressionRows.joint_columns(self, first, last, stride, columns)

    def predict(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]:
        return self.root * super().predict(theta)


def information_rows(model: TorqueModel, recovery: RecoveredSigns) -> SampleRows:
    """Rows with the information of the magnitudes; of signed torque for the tree search."""
    if recovery.method == "tree":
        return SampleRows(model, recovery.fit_samples)
    return MagnitudeRows(
        model,
        recovery.samples,
        recovery.expected,
        recovery.predicted,
        recovery.noise,
        recovery.has_sign,
    )


def with_sign_uncertainty(
    estimate: Estimate, model: TorqueModel, samples: Samples, recovery: RecoveredSigns
) -> Estimate:
    """Estimate from expected torque, with the covariance of an estimate from magnitudes.

    Expected torque ignores that signs near zero are uncertain. With A = W'W its information and F
    that of the same rows times sqrt(w), the estimate moves by F^-1 and not A^-1 times the gradient
    of the likelihood, so

        covariance = F^-1 A C A F^-1,     C as if the expected torque had been measured.

    Args:
        estimate: Estimate from `samples`.
        model: Fitted model.
        samples: Samples made from `found.fit_samples`.
        recovery: Recovered signs.
    """
    shaped_model = replace(model, shape=estimate.shape) if estimate.shape is not None else model
    rows = SampleRows(shaped_model, samples, load=estimate.load, dropped=estimate.dropped)
    weight = np.where(
        recovery.has_sign, 1.0, information_share(recovery.predicted / recovery.noise)
    )
    joint = np.ones(rows.joints) if estimate.joint_weights is None else estimate.joint_weights
    columns = estimate.base.columns
    full_factor = rows.information(Weights(joint)).factor[:, columns]
    weighted_factor = rows.information(Weights(joint, lambda _: np.sqrt(weight))).factor[:, columns]
    norms = np.linalg.norm(full_factor, axis=0)
    norms[norms == 0.0] = 1.0
    full_factor, weighted_factor = full_factor / norms, weighted_factor / norms
    # F^-1 A, in columns of unit length; unidentifiable parameters keep their uncertainty.
    widening = scipy.linalg.pinvh(weighted_factor.T @ weighted_factor, rtol=1e-12) @ (
        full_factor.T @ full_factor
    )
    scaled = estimate.base_covariance * np.outer(norms, norms)
    covariance = (widening @ scaled @ widening.T) / np.outer(norms, norms)
    return replace(estimate, base_covariance=covariance, posterior=None)
