"""How much friction a joint has, in one number that robots and days are compared by.

    level = F + k |load| + Fv v + Fv2 v^2 + ...

steady friction at half the rated speed under the load that is usual for the joint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.model.columns import steady_drive_columns
from taufit.model.torque_model import TorqueModel
from taufit.terms import DRAG, LEVEL, LOAD

_SPEED = 0.5
# Where curves are compared, over the rated speed: mostly Coulomb friction, mostly drag.
_CURVE = (0.1, 0.6)
# A level below this share of its standard deviation says nothing.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Friction of every joint, and the standard deviation of its logarithm.

    Attributes:
        value: [N m].
        std: Relative.
    """

    value: Float[Array, " j"]
    std: Float[Array, " j"]


@dataclass(frozen=True, slots=True, eq=False)
class FrictionCurve:
    """Friction of every joint at a few speeds, and the covariance of its logarithms.

    Attributes:
        value: [N m].
        covariance: Relative.
    """

    value: Float[Array, "j k"]
    covariance: Float[Array, "j k k"]


def level_rows(
    model: TorqueModel, usual_load: Float[Array, " j"], at: float = _SPEED
) -> Float[Array, "j p"]:
    """Rows that turn parameters into levels, at a share of the rated speed."""
    layout = model.layout
    speed = np.asarray(model.robot.limits.velocity, float)
    speed = at * np.where(np.isfinite(speed) & (speed > 0.0), speed, 2.0)
    drag = steady_drive_columns(model, speed)
    out = np.zeros((layout.joints, layout.size))
    for i in range(layout.after_links.start, layout.size):
        one, j = layout.parameters[i], int(layout.owner[i])
        assert one is not None
        if one.group == LEVEL:
            out[j, i] = 1.0
        elif one.group == LOAD and not one.modifies:
            out[j, i] = usual_load[j]
        elif one.group == DRAG:
            out[j, i] = drag[j, layout.drive_names.index(one.name)]
    return out


def levels(
    rows: Float[Array, "j p"], theta: Float[Array, " p"], covariance: Float[Array, "p p"]
) -> Levels:
    """Of parameters with their covariance."""
    value = rows @ theta
    std = np.sqrt(np.maximum(np.einsum("jp,pq,jq->j", rows, covariance, rows), 0.0))
    safe = np.maximum(value, _LEAST * std + 1e-12)
    return Levels(safe, std / safe)


def curve_rows(model: TorqueModel, usual_load: Float[Array, " j"]) -> Float[Array, "j k p"]:
    """Rows that turn parameters into curves."""
    return np.stack([level_rows(model, usual_load, at) for at in _CURVE], axis=1)


def curve(
    rows: Float[Array, "j k p"], theta: Float[Array, " p"], covariance: Float[Array, "p p"]
) -> FrictionCurve:
    """Of parameters with their covariance."""
    value = rows @ theta
    own = np.einsum("jkp,pq,jlq->jkl", rows, covariance, rows)
    std = np.sqrt(np.maximum(np.einsum("jkk->jk", own), 0.0))
    safe = np.maximum(value, _LEAST * std + 1e-12)
    return FrictionCurve(safe, own / (safe[:, :, None] * safe[:, None, :]))


def friction_of(model: TorqueModel) -> Bool[Array, " p"]:
    """Which parameters are of the drives: friction, and waves that come with their angle."""
    out = np.zeros(model.layout.size, bool)
    out[model.layout.drive] = True
    return out
