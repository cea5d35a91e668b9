"""Training range of the model and lower weight of rows outside it.

A row at a speed v above the largest training speed v_f, in a pose at distance d from the training
range, has the relative weight

    1 / (1 + ((|v| / v_f - 1) / b)^2) / (1 + (d / a)^2);

the weight is one half at the scales a and b.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.payload.filter.joint_sums import joints_under_load
from taufit.payload.filter.payload_rows import PayloadRows

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Relative excess speed at which the weight is one half.
_SPEED_SCALE = 0.1
# Excess position at which the weight is one half [rad or m].
_POSITION_SCALE = 0.2
# Smallest fraction of motion within the training range without larger variances.
MIN_COVERAGE = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCoverage:
    """Training range of positions and speeds, per joint.

    Attributes:
        lowest, highest: Limits of position [rad or m].
        fastest: Largest speed in either direction [rad/s or m/s].
    """

    lowest: Float[Array, " j"]
    highest: Float[Array, " j"]
    fastest: Float[Array, " j"]

    @classmethod
    def without_limits(cls, joints: int) -> TrainingCoverage:
        """Unlimited range: nothing is extrapolation."""
        return cls(np.full(joints, -np.inf), np.full(joints, np.inf), np.full(joints, np.inf))

    @classmethod
    def from_model(cls, model: FittedModel, standstill: float) -> TrainingCoverage:
        """Training range of a model; unlimited where the model does not contain it."""
        out = cls.without_limits(model.robot.joints)
        lowest, highest, fastest = out.lowest, out.highest, out.fastest
        ranges = model.training.ranges
        if ranges.velocity is not None:
            fastest = np.maximum(ranges.velocity.largest, standstill)
        if ranges.position is not None:
            lowest, highest = ranges.position.low.copy(), ranges.position.high.copy()
            # Rotation of the first joint is about gravity unless the robot is tilted, that of the
            # last
            # turns the payload: neither changes the load of the robot.
            lowest[[0, -1]], highest[[0, -1]] = -np.inf, np.inf
        return cls(lowest, highest, fastest)

    def weight_limits(self, band: Float[Array, " j"]) -> Float[Array, "4 j"]:
        """Limits for `row_weights`: the given band and the training range.

        Args:
            band: Squared stiction band over noise density of each joint, within which friction
                lies anywhere at standstill.
        """
        return np.array([band, self.lowest, self.highest, self.fastest])

    def row_weights(self, rows: PayloadRows, limits: Float[Array, "4 j"]) -> Float[Array, "n j"]:
        """Weight of each row: less at standstill and outside the training range."""
        if _kernel is None:
            weight = 1.0 / (1.0 + limits[0] * rows.standing)
            return self.reduce_weights(weight, rows.position, rows.velocity)
        out = np.empty(rows.velocity.shape)
        _kernel.payload_weights(
            *(rows.packed, rows.position, rows.velocity, limits, _SPEED_SCALE, _POSITION_SCALE, out)
        )
        return out

    def reduce_weights(
        self,
        weight: Float[Array, "n j"],
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
    ) -> Float[Array, "n j"]:
        """Reduce the weights of rows outside the training range."""
        excess_speed = np.maximum(np.abs(velocity) / self.fastest - 1.0, 0.0)
        weight = weight / (1.0 + (excess_speed / _SPEED_SCALE) ** 2)
        # A pose outside the range affects every joint that carries the moving links.
        excess_position = np.maximum(
            np.maximum(position - self.highest, self.lowest - position), 0.0
        )
        return weight / (1.0 + (excess_position.max(axis=1) / _POSITION_SCALE) ** 2)[:, None]


def motion_coverage(totals: Float[Array, "j 5"], step: float) -> float:
    """Fraction of the motion of the loaded joints within the training range."""
    seconds, moving = totals[:, 0], totals[:, 1]
    counted = joints_under_load(totals) & (moving > step)
    return float(np.min(seconds[counted] / moving[counted], initial=1.0))


def coverage_inflation(share: float) -> float:
    """Factor on all variances if too little of the motion lies within the training range."""
    return max(1.0, MIN_COVERAGE / max(share, 0.05))
