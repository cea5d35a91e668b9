"""How well the torque of a payload is known at each joint: drive gains and levers.

The payload's torque at joint j is read as (1 + e_j) times what it is, e_j the relative error of the
drive gain and of the lever it acts on. Their covariance is

    f (s s' * R + diag((l / L)^2)),

s the gains' standard deviations, R how drives of one type are off together, l how well the arm's
geometry is known, L the levers of this run, and f >= 1 where joints contradict each other by more
than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.model.fitted_model import FittedModel
from taufit.payload.settings import PayloadSettings

# Drives whose gains differ by less than this are of one type, and their errors correlate so much.
_TYPE_TOLERANCE = 0.003
_TYPE_CORRELATION = 0.7
# Weight of the drive gains' own standard deviations against what the joints say of each other.
_PRIOR_WEIGHT = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class GainUncertainty:
    """Uncertainty of the drive gains before any sample.

    Attributes:
        std: Relative standard deviation of each joint's drive gain.
        correlation: Correlation of their errors.
        lever_std: Standard deviation of the arm's geometry [m].
    """

    std: Float[Array, " j"]
    correlation: Float[Array, "j j"]
    lever_std: float

    @classmethod
    def from_model(
        cls, model: FittedModel, settings: PayloadSettings, gain_std: Any = None
    ) -> GainUncertainty:
        """From what is given, or else from how the model's training data were calibrated."""
        joints = model.robot.joints
        conditioning = model.training.conditioning
        if gain_std is not None:
            std = _require_gain_std(gain_std, joints)
        else:
            std = _calibrated_std(conditioning.relative_gain_std, joints, settings)
        return cls(std, _correlation(conditioning.gain, joints), settings.lever_std)

    def covariance(self, levers: Float[Array, " j"]) -> Float[Array, "j j"]:
        """Of the errors e at these levers, with f = 1."""
        geometry = self.lever_std / np.maximum(levers, self.lever_std)
        return np.outer(self.std, self.std) * self.correlation + np.diag(geometry**2 + 1e-12)

    def inflation(self, errors: Float[Array, " j"], covariance: Float[Array, "j j"]) -> float:
        """f, from the errors found and their covariance with f = 1."""
        chi_square = float(errors @ np.linalg.solve(covariance, errors))
        return max(1.0, (_PRIOR_WEIGHT + chi_square) / (_PRIOR_WEIGHT + len(errors)))


def _require_gain_std(gain_std: Any, joints: int) -> Float[Array, " j"]:
    out = np.broadcast_to(np.asarray(gain_std, float), (joints,)).copy()
    if not np.all(np.isfinite(out)) or np.any(out < 0.0):
        raise TaufitError("standard deviations of drive gains are finite and positive.")
    return out


def _calibrated_std(
    relative: Float[Array, " j"] | None, joints: int, settings: PayloadSettings
) -> Float[Array, " j"]:
    """As calibrated, and never better than drives of one type are."""
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
