"""What the model was fitted to, and how much less rows count outside of it.

A row at a speed v beyond the fastest v_f of the training data, in a pose d away from its poses,
counts

    1 / (1 + ((|v| / v_f - 1) / b)^2) / (1 + (d / a)^2)

of what it would within; a and b are where it counts half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.payload.filter.joint_sums import JointSums, loaded_joints

# Speeds beyond those of the training data by this share count half.
_SPEED_SCALE = 0.1
# Positions beyond those of the training data by this much count half [rad or m].
_POSITION_SCALE = 0.2
# Less than this share of a motion within what the model was fitted to, and the uncertainty grows.
MIN_COVERED_SHARE = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class TrainingCoverage:
    """Poses and speeds a model was fitted to, per joint.

    Attributes:
        lowest, highest: Positions [rad or m].
        fastest: Speed either way [rad/s or m/s].
    """

    lowest: Float[Array, " j"]
    highest: Float[Array, " j"]
    fastest: Float[Array, " j"]

    @classmethod
    def unlimited(cls, joints: int) -> TrainingCoverage:
        """Nothing is new."""
        return cls(np.full(joints, -np.inf), np.full(joints, np.inf), np.full(joints, np.inf))

    @classmethod
    def from_model(cls, model: FittedModel, standstill: float) -> TrainingCoverage:
        """The range of a model's training data, as far as the model says."""
        out = cls.unlimited(model.robot.joints)
        lowest, highest, fastest = out.lowest, out.highest, out.fastest
        ranges = model.training.ranges
        if ranges.velocity is not None:
            fastest = np.maximum(ranges.velocity.largest, standstill)
        if ranges.position is not None:
            lowest, highest = ranges.position.low.copy(), ranges.position.high.copy()
            # The first joint only turns the arm about gravity, unless it is tilted; the last one
            # turns what it carries. Neither shows the arm in another light.
            lowest[[0, -1]], highest[[0, -1]] = -np.inf, np.inf
        return cls(lowest, highest, fastest)

    def reduce_weights(
        self,
        weight: Float[Array, "n j"],
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
    ) -> Float[Array, "n j"]:
        """Weights of rows, less where the motion is new to the model."""
        excess_speed = np.maximum(np.abs(velocity) / self.fastest - 1.0, 0.0)
        weight = weight / (1.0 + (excess_speed / _SPEED_SCALE) ** 2)
        # A pose the model has never seen is as strange for every joint that carries what moves.
        excess_position = np.maximum(
            np.maximum(position - self.highest, self.lowest - position), 0.0
        )
        return weight / (1.0 + (excess_position.max(axis=1) / _POSITION_SCALE) ** 2)[:, None]


def covered_share(sums: Sequence[JointSums], step: float) -> float:
    """Share of the motion, at the joints that carry, within what the model was fitted to."""
    shares = [
        s.seconds / s.moving
        for s, is_loaded in zip(sums, loaded_joints(sums), strict=True)
        if is_loaded and s.moving > step
    ]
    return float(min([1.0, *shares]))


def coverage_inflation(share: float) -> float:
    """Factor on all variances where too little of the motion is familiar."""
    return max(1.0, MIN_COVERED_SHARE / max(share, 0.05))
