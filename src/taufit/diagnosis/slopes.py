"""How much of the nominal arm's gravity the torque shows."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.diagnosis.change import Rows
from taufit.dynamics import Engine, gravity_torque

# Joints whose gravity changes at least this much of the most loaded one's tell, and at least this
# much of their torque's own spread.
_LOADED, _SHOWN = 0.2, 0.5


def gravity_slopes(rows: Rows, links: Float[Array, " p"]) -> Float[Array, " j"]:
    """s of g(links) = s g(nominal) + offset, per joint; nan where gravity says little.

    `links` are fitted to all joints at once with friction, rotors and offsets beside them and the
    nominal ones as a weak prior, so nothing else is taken for gravity, and where the recording
    does not show gravity the slope is one.
    """
    joints = rows.torque.shape[1]
    out = np.full(joints, np.nan)
    if not np.any(rows.robot.parameters):
        return out
    nominal = gravity_torque(rows.robot, rows.position)
    still = np.zeros_like(rows.position)
    fitted = Engine(rows.robot, parameters=links.ravel())
    found = fitted.inverse_dynamics(rows.position, still, still)
    spread = nominal.std(axis=0)
    for j in range(joints):
        kept = rows.keep[:, j]
        if np.count_nonzero(kept) < 20 or spread[j] < max(_LOADED * spread.max(), 1e-9):
            continue
        both = max(nominal[kept, j].std(), found[kept, j].std())
        if both < _SHOWN * rows.torque[kept, j].std():
            continue
        x = nominal[kept, j] - nominal[kept, j].mean()
        out[j] = float(x @ found[kept, j] / max(float(x @ x), 1e-300))
    return out


def middle_slope(slopes: Float[Array, " j"]) -> float:
    """Median over the joints that tell; nan where none does."""
    known = slopes[np.isfinite(slopes)]
    return float(np.median(known)) if len(known) else float("nan")
