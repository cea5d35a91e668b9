"""How much each row of a regression counts, chosen from the residuals of the fit before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.errors import InfeasibleError

HUBER = 1.345  # 95 % efficiency on Gaussian noise
TUKEY = 4.685  # likewise
_ROWS_PER_JOINT = 10  # fewer complete samples than this per joint make no covariance


@runtime_checkable
class HasResiduals(Protocol):
    """Rows, as far as weights look at them."""

    keep: Bool[Array, "n j"]

    def residuals(self, theta: Float[Array, " p"]) -> Float[Array, "n j"]: ...


RowWeights = Callable[[Any], Float[Array, "n j"]]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Row i of sample t enters as (whitener @ (rows[t] * (y - W theta)[t]))_i.

    Attributes:
        joint: Factor per joint.
        rows: Gives, for rows, the factor per sample and joint on top of that; None for one.
        whitener: Lower triangle that makes the joints' noise independent, or None; it takes the
            place of `joint`.
    """

    joint: Float[Array, " j"]
    rows: RowWeights | None = None
    whitener: Float[Array, "j j"] | None = None

    @classmethod
    def equal(cls, joints: int) -> Weights:
        return cls(np.ones(joints))


@dataclass(frozen=True, slots=True, eq=False)
class TorqueSums:
    """Measured torque before anything was fitted.

    Attributes:
        count: Rows, per joint.
        squares: Sum of squares.
        largest: Largest magnitude.
    """

    count: Int[Array, " j"]
    squares: Float[Array, " j"]
    largest: Float[Array, " j"]

    @property
    def rms(self) -> Float[Array, " j"]:
        return np.asarray(np.sqrt(self.squares / np.maximum(self.count, 1.0)))


@runtime_checkable
class FitResiduals(Protocol):
    """Residuals of a fit, summed over as many parts as there are."""

    @property
    def theta(self) -> Float[Array, " p"]:
        """The parameters they belong to."""
        ...

    @property
    def std(self) -> Float[Array, " j"]:
        """Standard deviation per joint; known without a pass."""
        ...

    def covariance(self) -> Float[Array, "j j"]:
        """Between joints; a pass over the data."""
        ...

    def robust_scale(self) -> Float[Array, " j"]:
        """1.4826 times the median magnitude; a pass over the data."""
        ...


@runtime_checkable
class Weighting(Protocol):
    """A rule that turns residuals into weights; estimators that re-weight hold one."""

    def initial_weights(self, torque: TorqueSums) -> Weights:
        """Before anything was fitted."""
        ...

    def reweight(self, fit: FitResiduals) -> Weights | None:
        """From a fit's residuals; None where weights do not depend on them."""
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
    """Noise-free joints must not get infinite weight: no joint is trusted beyond 1e-9 of size."""
    return np.asarray(np.maximum(std, np.maximum(1e-9 * size, np.finfo(float).tiny)))


@dataclass(frozen=True, slots=True)
class EqualWeights:
    """Every row counts alike."""

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
    """Rows with large residuals count less: Huber or Tukey weights at 1.4826 MAD per joint."""

    loss: str = "huber"

    def initial_weights(self, torque: TorqueSums) -> Weights:
        return JointNoiseWeights().initial_weights(torque)

    def reweight(self, fit: FitResiduals) -> Weights | None:
        scale = fit.robust_scale()
        scale = _require_positive(apply_noise_floor(scale, np.nanmax(scale)))
        return Weights(1.0 / scale, RobustRowFactors(fit.theta, scale, self.loss))


@dataclass(frozen=True, slots=True, eq=False)
class NoiseFloorWeights:
    """Another rule, with no joint's noise taken to be less than given.

    Attributes:
        rule: The other one.
        minimum_std: Per joint [N m]; 0 for no bound.
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
    """Sigma from E'E over samples where all joints count; its diagonal if those are few.

    Args:
        products: E'E.
        count: How many samples they are from.
        std: Standard deviation per joint over all of its rows, which the diagonal keeps.
        parameters_per_joint: Parameters per joint.
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
