"""Friction levels: one number per joint for comparisons between robots and days.

    level = F + k |load| + Fv v + Fv2 v^2 + ...

steady-state friction at half the rated speed under the joint's typical load.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.model.columns import steady_drive_columns
from taufit.model.torque_model import TorqueModel
from taufit.terms import DRAG, LEVEL, LOAD

_LEVEL_SPEED = 0.5
# Speeds of friction curves relative to the rated speed: mostly Coulomb, mostly viscous friction.
_CURVE_SPEEDS = (0.1, 0.6)
# Smallest level relative to its standard deviation.
_MIN_LEVEL = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class FrictionLevels:
    """Friction level of every joint, and the standard deviation of its logarithm.

    Attributes:
        value: Friction level [N m].
        std: Relative standard deviation.
    """

    value: Float[Array, " j"]
    std: Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class FrictionCurve:
    """Friction of every joint at a few speeds, and the covariance of its logarithms.

    Attributes:
        value: Friction [N m].
        covariance: Relative covariance.
    """

    value: Float[Array, "j k"]
    covariance: Float[Array, "j k k"]


def level_rows(
    model: TorqueModel, typical_load: Float[Array, " j"], speed_fraction: float = _LEVEL_SPEED
) -> Float[Array, "j p"]:
    """Rows that convert parameters to friction levels, at a fraction of the rated speed."""
    layout = model.layout
    speed = np.asarray(model.robot.limits.velocity, float)
    speed = speed_fraction * np.where(np.isfinite(speed) & (speed > 0.0), speed, 2.0)
    viscous_columns = steady_drive_columns(model, speed)
    out = np.zeros((layout.joints, layout.size))
    for i in range(layout.after_links.start, layout.size):
        parameter, j = layout.parameters[i], int(layout.owner[i])
        assert parameter is not None
        if parameter.group == LEVEL:
            out[j, i] = 1.0
        elif parameter.group == LOAD and not parameter.modifies:
            out[j, i] = typical_load[j]
        elif parameter.group == DRAG:
            out[j, i] = viscous_columns[j, layout.drive_names.index(parameter.name)]
    return out


def friction_levels(
    rows: Float[Array, "j p"], theta: Float[Array, " p"], covariance: Float[Array, "p p"]
) -> FrictionLevels:
    """Friction levels of parameters with their covariance."""
    value = rows @ theta
    std = np.sqrt(np.maximum(np.einsum("jp,pq,jq->j", rows, covariance, rows), 0.0))
    positive = np.maximum(value, _MIN_LEVEL * std + 1e-12)
    return FrictionLevels(positive, std / positive)


def curve_rows(model: TorqueModel, typical_load: Float[Array, " j"]) -> Float[Array, "j k p"]:
    """Rows that convert parameters to friction curves."""
    return np.stack(
        [level_rows(model, typical_load, speed_fraction) for speed_fraction in _CURVE_SPEEDS],
        axis=1,
    )


def friction_curve(
    rows: Float[Array, "j k p"], theta: Float[Array, " p"], covariance: Float[Array, "p p"]
) -> FrictionCurve:
    """Friction curves of parameters with their covariance."""
    value = rows @ theta
    covariance_of_levels = np.einsum("jkp,pq,jlq->jkl", rows, covariance, rows)
    std = np.sqrt(np.maximum(np.einsum("jkk->jk", covariance_of_levels), 0.0))
    positive = np.maximum(value, _MIN_LEVEL * std + 1e-12)
    return FrictionCurve(
        positive, covariance_of_levels / (positive[:, :, None] * positive[:, None, :])
    )


def drive_mask(model: TorqueModel) -> Bool[Array, " p"]:
    """Mask of the drive parameters: friction and ripple."""
    out = np.zeros(model.layout.size, bool)
    out[model.layout.drive] = True
    return out
