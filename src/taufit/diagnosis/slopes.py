"""How much of the nominal arm's gravity each joint's torque shows."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.diagnosis.change import Rows
from taufit.dynamics import gravity_torque

# Joints whose gravity changes at least this much of the most loaded one's tell.
_LOADED = 0.2


def gravity_slopes(rows: Rows) -> Float[Array, " j"]:
    """s of tau = s g + friction + inertia + offset, per joint; nan where gravity says little.

    Friction and inertia are fitted alongside, so neither is taken for gravity.
    """
    out = np.full(rows.torque.shape[1], np.nan)
    if not np.any(rows.robot.parameters):
        return out
    gravity = gravity_torque(rows.robot, rows.position)
    spread = gravity.std(axis=0)
    if spread.max() < 1e-6:
        return out
    for j in range(len(out)):
        if spread[j] < _LOADED * spread.max():
            continue
        v = rows.velocity[:, j]
        columns = np.column_stack(
            [
                gravity[:, j],
                rows.slip[:, j],
                v,
                np.abs(v) * v,
                rows.acceleration,
                np.ones(len(v)),
            ]
        )
        size = np.linalg.norm(columns, axis=0)
        size[size == 0.0] = 1.0
        x = np.linalg.lstsq(columns / size, rows.torque[:, j], rcond=1e-8)[0] / size
        out[j] = x[0]
    return out


def middle_slope(slopes: Float[Array, " j"]) -> float:
    """Median over the joints that tell; nan where none does."""
    known = slopes[np.isfinite(slopes)]
    return float(np.median(known)) if len(known) else float("nan")
