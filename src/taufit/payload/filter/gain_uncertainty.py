"""Uncertainty of the payload's torque at each joint: drive gains and lever arms.

The payload's torque at joint j is measured as (1 + e_j) times its value, e_j the relative error of
drive gain and lever arm. The covariance of e is

    f (s s' * R + diag((l / L)^2)),

s the standard deviations of the gains, R the correlation of drives of one type, l the standard
deviation of the robot's geometry, L the lever arms of this run, and f >= 1 if joints contradict
each other by more than that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.model.fitted_model import FittedModel
from taufit.payload.settings import PayloadSettings

# Largest relative gain difference of drives of one type, and the correlation of their errors.
_TYPE_TOLERANCE = 0.003
_TYPE_CORRELATION = 0.7
# Weight of the prior standard deviations of the gains against the estimated errors.
_PRIOR_WEIGHT = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class GainUncertainty:
    """Uncertainty of the drive gains before any sample.

    Attributes:
        std: Relative standard deviation of each joint's drive gain.
        correlation: Correlation of their errors.
        lever_std: Standard deviation of the robot's geometry [m].
    """

    std: Float[Array, " j"]
    correlation: Float[Array, "j j"]
    lever_std: float

    @classmethod
    def from_model(
        cls, model: FittedModel, settings: PayloadSettings, gain_std: Any = None
    ) -> GainUncertainty:
        """Use the given standard deviations, or else the calibration of the training data."""
        joints = model.robot.joints
        conditioning = model.training.conditioning
        if gain_std is not None:
            std = _require_gain_std(gain_std, joints)
        else:
            std = _std_from_calibration(conditioning.relative_gain_std, joints, settings)
        return cls(std, _correlation(conditioning.gain, joints), settings.lever_std)

    def covariance(self, levers: Float[Array, " j"]) -> Float[Array, "j j"]:
        """Covariance of the errors e at these lever arms, with f = 1."""
        geometry = self.lever_std / np.maximum(levers, self.lever_std)
        return np.outer(self.std, self.std) * self.correlation + np.diag(geometry**2 + 1e-12)

    def inflation(self, errors: Float[Array, " j"], covariance: Float[Array, "j j"]) -> float:
        """f, from the estimated errors and their covariance with f = 1."""
        chi_square = float(errors @ np.linalg.solve(covariance, errors))
        return max(1.0, (_PRIOR_WEIGHT + chi_square) / (_PRIOR_WEIGHT + len(errors)))


def _require_gain_std(gain_std: Any, joints: int) -> Float[Array, " j"]:
    out = np.broadcast_to(np.asarray(gain_std, float), (joints,)).copy()
    if not np.all(np.isfinite(out)) or np.any(out < 0.0):
        raise TaufitError("standard deviations of drive gains are finite and positive.")
    return out


def _std_from_calibration(
    relative: Float[Array, " j"] | None, joints: int, settings: PayloadSettings
) -> Float[Array, " j"]:
    """Calibrated standard deviation, not below that of drives of one type."""
    if relative is None or not np.all(np.isfinite(relative)):
        return np.full(joints, settings.gain_std)
    return np.maximum(relative, settings.gain_std)


def _correlation(gain: Float[Array, " j"] | None, joints: int) -> Float[Array, "j j"]:
    """Correlation of the errors of drive gains."""
    out = np.eye(joints)
    if gain is None or not np.all(np.isfinite(gain)):
        return out
    same_type = np.abs(np.subtract.outer(gain, gain)) <= _TYPE_TOLERANCE * np.abs(gain)
    out[same_type & ~np.eye(joints, dtype=bool)] = _TYPE_CORRELATION
    return 0.5 * (out + out.T)
