"""Mounting of the base, which determines the direction of gravity in the base frame."""

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
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll)."""
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
    """Gravity vector g = (Rz Ry Rx)' (0, 0, -9.81), for roll, pitch, yaw of the base [rad]."""
    gravity = rotation_rpy(*mounting).T @ np.array([0.0, 0.0, -STANDARD_GRAVITY])
    # At exactly 90 or 180 degrees sideways gravity is exactly zero: a remainder of 1e-16 would add
    # columns to the base parameters.
    gravity[np.abs(gravity) < 1e-12 * STANDARD_GRAVITY] = 0.0
    return np.asarray(gravity)


def parse_mounting(text: str) -> tuple[float, float, float]:
    """Parse 'ground', 'ceiling', 'wall', or 'ROLL,PITCH,YAW' in degrees."""
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
