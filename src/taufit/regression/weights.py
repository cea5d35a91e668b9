"""Weights of regression rows, chosen from the residuals of the previous fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError

HUBER = 1.345  # 95 % efficiency on Gaussian noise
TUKEY = 4.685  # likewise
_ROWS_PER_JOINT = 10  # complete samples per joint required for a covariance


@runtime_checkable
class HasResiduals(Protocol):
    """Rows with residuals, the interface that weights use."""

    keep: Bool[Array, "n j"]

    def residuals(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]: ...


RowWeights = Callable[[Any], Float[Array, "n j"]]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Weight factors: row i of sample t enters as (whitener @ (rows[t] * (y - W theta)[t]))_i.

    Attributes:
        joint: Factor per joint.
        rows: Function from rows to an additional factor per sample and joint; None for ones.
        whitener: Lower triangular matrix that decorrelates the joints' noise, or None; replaces
            `joint`.
    """

    joint: Float[Array, " j"]
    rows: RowWeights | None = None
    whitener: Float[Array, "j j"] | None = None

    @classmethod
    def equal(cls, joints: int) -> Weights:
        return cls(np.ones(joints))


@dataclass(frozen=True, slots=True, eq=False)
class TorqueSums:
    """Sums of the measured torque, before any fit.

    Attributes:
        count: Number of rows per joint.
        squares: Sum of squares.
        largest: Largest magnitude [N m].
    """

    count: Int[Array, " j"]
    squares: Float[Array, " j"]
    largest: Float[Array, " j"]

    @property
    def rms(self) -> Float[Array, " j"]:
        return np.asarray(np.sqrt(self.squares / np.maximum(self.count, 1.0)))


@runtime_checkable
class FitResiduals(Protocol):
    """Residuals of a fit, summed over all parts."""

    @property
    def theta(self) -> Float[Array, " p"]:
        """Fitted parameters."""
        ...

    @property
    def std(self) -> Float[Array, " j"]:
        """Standard deviation per joint; needs no pass over the data."""
        ...

    def covariance(self) -> Float[Array, "j j"]:
        """Noise covariance between joints; one pass over the data."""
        ...

    def robust_scale(self) -> Float[Array, " j"]:
        """Robust standard deviation, 1.4826 times the median magnitude; one pass over the data."""
        ...


@runtime_checkable
class Weighting(Protocol):
    """Rule that turns residuals into weights; used by estimators that re-weight."""

    def initial_weights(self, torque: TorqueSums) -> Weights:
        """Weights before the first fit."""
        ...

    def reweight(self, fit: FitResiduals) -> Weights | None:
        """Weights from the residuals of a fit; None if they do not depend on residuals."""
        ...


def _require_positive(scale: Float[Array, " j"]) -> Float[Array, " j"]:
    scale = np.asarray(scale, float)
    bad = ~np.isfinite(scale) | (scale <= 0.0)
    if np.any(bad):
        joint = int(np.flatnonzero(bad)[0]) + 1
        raise InfeasibleError(
            f"joint {joint} would get a singular weight (noise level {scale[joint - 1]:g}). Give "
            "positive, finite noise levels, or let them be estimated."
        )
    return scale


def apply_noise_floor(
    std: Float[Array, " j"], size: Float[Array, " j"] | float
) -> Float[Array, " j"]:
    """Bound standard deviations from below, so that noise-free joints get no infinite weight.

    The bound is 1e-9 of `size`, and 1e-100 N m, so that squares of weights stay finite.
    """
    return np.asarray(np.maximum(std, np.maximum(1e-9 * size, 1e-100)))


@dataclass(frozen=True, slots=True)
class EqualWeights:
    """Equal weight of all rows."""

    def initial_weights(self, torque: TorqueSums) -> Weights:
        return Weights.equal(len(torque.count))

    def reweight(self, fit: FitResiduals) -> Weights | None:
        return None


@dataclass(frozen=True, slots=True)
class MaxTorqueWeights:
    """Rows divided by the largest torque of their joint."""

    maximum: tuple[float, ...] | None = None

    def initial_weights(self, torque: TorqueSums) -> Weights:
        if self.maximum is not None:
            return Weights(1.0 / _require_positive(np.array(self.maximum)))
        return Weights(1.0 / _require_positive(torque.largest))

    def reweight(self, fit: FitResiduals) -> Weights | None:
        return None


@dataclass(frozen=True, slots=True)
class JointNoiseWeights:
    """Rows divided by the residual standard deviation of their joint."""

    def initial_weights(self, torque: TorqueSums) -> Weights:
        return Weights(1.0 / apply_noise_floor(torque.rms, torque.largest.max()))

    def reweight(self, fit: FitResiduals) -> Weights | None:
        return Weights(1.0 / _require_positive(apply_noise_floor(fit.std, fit.std.max())))


@dataclass(frozen=True, slots=True)
class NoiseCovarianceWeights:
    """Samples whitened by the noise covariance between joints, Sigma = E'E/(N - p/j)."""

    def initial_weights(self, torque: TorqueSums) -> Weights:
        return JointNoiseWeights().initial_weights(torque)

    def reweight(self, fit: FitResiduals) -> Weights | None:
        sigma = fit.covariance()
        std = _require_positive(np.sqrt(np.diag(sigma)))
        try:
            lower = np.linalg.cholesky(sigma / np.outer(std, std) + 1e-12 * np.eye(len(std)))
        except np.linalg.LinAlgError:
            raise InfeasibleError(
                "the noise covariance between joints is singular: two joints' residuals are the "
                "same signal. Weigh by joint instead (weighting='joint')."
            ) from None
        return Weights(1.0 / std, None, np.linalg.inv(lower) / std)


@dataclass(frozen=True, slots=True)
class RobustWeights:
    """Reduced weight of large residuals: Huber or Tukey weights at 1.4826 MAD per joint."""

    loss: str = "huber"

    def initial_weights(self, torque: TorqueSums) -> Weights:
        return JointNoiseWeights().initial_weights(torque)

    def reweight(self, fit: FitResiduals) -> Weights | None:
        scale = fit.robust_scale()
        scale = _require_positive(apply_noise_floor(scale, np.nanmax(scale)))
        return Weights(1.0 / scale, RobustRowFactors(fit.theta, scale, self.loss))


@dataclass(frozen=True, slots=True, eq=False)
class NoiseFloorWeights:
    """Weighting rule with a lower limit on each joint's noise.

    Attributes:
        rule: Underlying rule.
        minimum_std: Smallest standard deviation per joint [N m]; 0 for no limit.
    """

    rule: Weighting
    minimum_std: Float[Array, " j"]

    def initial_weights(self, torque: TorqueSums) -> Weights:
        return self.rule.initial_weights(torque)

    def reweight(self, fit: FitResiduals) -> Weights | None:
        weights = self.rule.reweight(fit)
        if weights is None or weights.whitener is not None:
            return weights
        return replace(weights, joint=1.0 / np.maximum(1.0 / weights.joint, self.minimum_std))


@dataclass(frozen=True, slots=True, eq=False)
class RobustRowFactors:
    """Square roots of Huber's or Tukey's weights at the residuals of a fit.

    Attributes:
        theta: Parameters of that fit.
        scale: Standard deviation per joint.
        loss: "huber" or "tukey".
    """

    theta: Float[Array, " p"]
    scale: Float[Array, " j"]
    loss: str

    def __call__(self, rows: HasResiduals) -> Float[Array, "n j"]:
        u = np.abs(rows.residuals(self.theta)) / self.scale
        if self.loss == "huber":
            square = np.minimum(1.0, HUBER / np.maximum(u, HUBER))
        else:
            square = np.maximum(0.0, 1.0 - (u / TUKEY) ** 2) ** 2
        return np.asarray(np.sqrt(square))


def joint_noise_covariance(
    products: Float[Array, "j j"],
    count: int,
    std: Float[Array, " j"],
    parameters_per_joint: float = 0.0,
) -> Float[Array, "j j"]:
    """Noise covariance Sigma from E'E over complete samples; its diagonal if those are few.

    Args:
        products: E'E.
        count: Number of complete samples.
        std: Standard deviation per joint over all of its rows, kept as the diagonal.
        parameters_per_joint: Degrees of freedom used by the fit, per joint.
    """
    size = apply_noise_floor(std, std.max())
    if count < _ROWS_PER_JOINT * len(std):
        return np.diag(size**2)
    sigma = products / np.outer(size, size) / max(count - parameters_per_joint, 1.0)
    d = size / np.sqrt(np.diag(sigma))
    return sigma * np.outer(d, d)


WEIGHTINGS: dict[str, Weighting] = {
    "none": EqualWeights(),
    "maximum": MaxTorqueWeights(),
    "joint": JointNoiseWeights(),
    "covariance": NoiseCovarianceWeights(),
    "huber": RobustWeights("huber"),
    "tukey": RobustWeights("tukey"),
}
