"""How the base is mounted: only the direction of gravity in the base frame depends on it."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError

STANDARD_GRAVITY = 9.81
MOUNTINGS = {
    "ground": (0.0, 0.0, 0.0),
    "ceiling": (np.pi, 0.0, 0.0),
    "wall": (np.pi / 2, 0.0, 0.0),
}


def rotation_rpy(roll: float, pitch: float, yaw: float) -> Float[Array, "3 3"]:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    cr, sr = np.cos(roll), np.sin(roll)
    cp, sp = np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def gravity_in_base(mounting: tuple[float, float, float]) -> Float[Array, " 3"]:
    """g = (Rz Ry Rx)' (0, 0, -9.81), for roll, pitch, yaw of the base in radians."""
    gravity = rotation_rpy(*mounting).T @ np.array([0.0, 0.0, -STANDARD_GRAVITY])
    # A mounting of exactly 90 or 180 degrees leaves exactly zero sideways gravity: a remainder
    # of 1e-16 would count as a column when base parameters are counted.
    gravity[np.abs(gravity) < 1e-12 * STANDARD_GRAVITY] = 0.0
    return np.asarray(gravity)


def parse_mounting(text: str) -> tuple[float, float, float]:
    """'ground', 'ceiling', 'wall', or 'ROLL,PITCH,YAW' in degrees."""
    if text in MOUNTINGS:
        return MOUNTINGS[text]
    try:
        angles = tuple(float(part) for part in text.split(","))
    except ValueError:
        angles = ()
    if len(angles) != 3 or not np.all(np.isfinite(angles)):
        raise RobotError(
            f"mounting {text!r} is not known: use ground, ceiling, wall, or ROLL,PITCH,YAW in "
            "degrees, for example --mounting 0,30,0."
        )
    return tuple(np.radians(angles).tolist())
