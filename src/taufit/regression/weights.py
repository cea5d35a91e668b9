"""How much each row of a regression counts, chosen from the residuals of the fit before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.errors import InfeasibleError

HUBER = 1.345  # 95 % efficiency on Gaussian noise
TUKEY = 4.685  # likewise
_ROWS_PER_JOINT = 10  # fewer complete samples than this per joint make no covariance


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Row i of sample t enters as (whitener @ (rows[t] * (y - W theta)[t]))_i.

    Attributes:
        joint: Factor per joint.
        rows: Factor per sample and joint on top of that, or None.
        whitener: Lower triangle that makes the joints' noise independent, or None; it takes the
            place of `joint`.
    """

    joint: Float[Array, " j"]
    rows: Float[Array, "n j"] | None = None
    whitener: Float[Array, "j j"] | None = None

    @classmethod
    def one(cls, joints: int) -> Weights:
        return cls(np.ones(joints))


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """What a fit left over.

    Attributes:
        each: Gives the residuals of every row; a pass over the data.
        squares: Their sum of squares per joint; known without one.
        keep: Which rows were fitted.
        freedom: Parameters per joint, to be taken off the number of rows.
    """

    each: Callable[[], Float[Array, "n j"]]
    squares: Float[Array, " j"]
    keep: Bool[Array, "n j"]
    freedom: float

    @property
    def std(self) -> Float[Array, " j"]:
        """Residual standard deviation per joint."""
        return np.sqrt(self.squares / np.maximum(self.keep.sum(axis=0) - self.freedom, 1.0))


@runtime_checkable
class Weighting(Protocol):
    """A rule that turns residuals into weights; estimators that re-weight hold one."""

    def first(self, torque: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Weights:
        """Before anything was fitted."""
        ...

    def after(self, fit: Residuals) -> Weights | None:
        """From a fit's residuals; None where weights do not depend on them."""
        ...


def _checked(scale: Float[Array, " j"]) -> Float[Array, " j"]:
    scale = np.asarray(scale, float)
    bad = ~np.isfinite(scale) | (scale <= 0.0)
    if np.any(bad):
        joint = int(np.flatnonzero(bad)[0]) + 1
        raise InfeasibleError(
            f"joint {joint} would get a singular weight (noise level {scale[joint - 1]:g}). Give "
            "positive, finite noise levels, or let them be estimated."
        )
    return scale


def joint_std(
    residuals: Float[Array, "n j"], keep: Bool[Array, "n j"], freedom: float
) -> Float[Array, " j"]:
    """Residual standard deviation per joint, with `freedom` parameters per joint taken off."""
    count = keep.sum(axis=0)
    square = np.sum(np.where(keep, residuals, 0.0) ** 2, axis=0)
    return np.sqrt(square / np.maximum(count - freedom, 1.0))


def _floored(std: Float[Array, " j"], size: Float[Array, " j"] | float) -> Float[Array, " j"]:
    """Noise-free joints must not get infinite weight: no joint is trusted beyond 1e-9 of size."""
    return np.maximum(std, np.maximum(1e-9 * size, np.finfo(float).tiny))


@dataclass(frozen=True, slots=True)
class Equal:
    """Every row counts alike."""

    def first(self, torque: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Weights:
        return Weights.one(torque.shape[1])

    def after(self, fit: Residuals) -> Weights | None:
        return None


@dataclass(frozen=True, slots=True)
class ByMaximum:
    """Rows divided by the largest torque of their joint."""

    maximum: tuple[float, ...] | None = None

    def first(self, torque: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Weights:
        if self.maximum is not None:
            return Weights(1.0 / _checked(np.array(self.maximum)))
        return Weights(1.0 / _checked(np.abs(np.where(keep, torque, 0.0)).max(axis=0)))

    def after(self, fit: Residuals) -> Weights | None:
        return None


@dataclass(frozen=True, slots=True)
class ByJoint:
    """Rows divided by the residual standard deviation of their joint."""

    def first(self, torque: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Weights:
        return Weights(1.0 / _floored(joint_std(torque, keep, 0.0), np.abs(torque).max()))

    def after(self, fit: Residuals) -> Weights | None:
        return Weights(1.0 / _checked(_floored(fit.std, fit.std.max())))


@dataclass(frozen=True, slots=True)
class ByCovariance:
    """Samples whitened by the noise covariance between joints, Sigma = E'E/(N - p/j)."""

    def first(self, torque: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Weights:
        return ByJoint().first(torque, keep)

    def after(self, fit: Residuals) -> Weights | None:
        sigma = noise_covariance(fit.each(), fit.keep, fit.freedom)
        std = _checked(np.sqrt(np.diag(sigma)))
        try:
            lower = np.linalg.cholesky(sigma / np.outer(std, std) + 1e-12 * np.eye(len(std)))
        except np.linalg.LinAlgError:
            raise InfeasibleError(
                "the noise covariance between joints is singular: two joints' residuals are the "
                "same signal. Weigh by joint instead (weighting='joint')."
            ) from None
        return Weights(1.0 / std, None, np.linalg.inv(lower) / std)


@dataclass(frozen=True, slots=True)
class Robust:
    """Rows with large residuals count less: Huber or Tukey weights at 1.4826 MAD per joint."""

    loss: str = "huber"

    def first(self, torque: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Weights:
        return ByJoint().first(torque, keep)

    def after(self, fit: Residuals) -> Weights | None:
        residuals = fit.each()
        scale = robust_scale(residuals, fit.keep)
        u = np.abs(residuals) / scale
        if self.loss == "huber":
            square = np.minimum(1.0, HUBER / np.maximum(u, HUBER))
        else:
            square = np.maximum(0.0, 1.0 - (u / TUKEY) ** 2) ** 2
        return Weights(1.0 / scale, np.sqrt(square))


def robust_scale(residuals: Float[Array, "n j"], keep: Bool[Array, "n j"]) -> Float[Array, " j"]:
    """1.4826 times the median absolute residual, per joint."""
    columns = [residuals[keep[:, i], i] for i in range(residuals.shape[1])]
    scale = np.array([1.4826 * np.median(np.abs(c)) if len(c) else np.nan for c in columns])
    return _checked(_floored(scale, np.nanmax(scale)))


def noise_covariance(
    residuals: Float[Array, "n j"], keep: Bool[Array, "n j"], freedom: float = 0.0
) -> Float[Array, "j j"]:
    """Sigma between joints, from samples where all count; its diagonal if those are few."""
    whole = np.all(keep, axis=1)
    std = joint_std(residuals, keep, freedom)
    size = _floored(std, std.max())
    if whole.sum() < _ROWS_PER_JOINT * residuals.shape[1]:
        return np.diag(size**2)
    e = residuals[whole] / size
    sigma = e.T @ e / max(whole.sum() - freedom, 1.0)
    d = size / np.sqrt(np.diag(sigma))
    return sigma * np.outer(d, d)


WEIGHTINGS: dict[str, Weighting] = {
    "none": Equal(),
    "maximum": ByMaximum(),
    "joint": ByJoint(),
    "covariance": ByCovariance(),
    "huber": Robust("huber"),
    "tukey": Robust("tukey"),
}
