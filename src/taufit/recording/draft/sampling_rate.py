"""Sampling rate of a file without time and velocity, from the inertia of the nominal robot.

With r the rate and derivatives taken per row, the torque of a robot is

    tau = g(q) + r^2 h(q, q', q'') + friction + offset,

linear in r^2: inertial and velocity-dependent torque h grow with the square of the rate, gravity
does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.recording.timing import USUAL_HZ

# Torque less gravity for position, velocity and acceleration.
InertialTorque = Callable[
    [Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]], Float[Array, "n j"]
]
# Smallest ratio of the estimate of r^2 to its standard deviation.
_MIN_SIGNIFICANCE = 4.0
_ROWS = 4000


def sampling_rate(
    position: Float[Array, "n j"],
    torque: Float[Array, "n j"],
    gravity: Callable[[Float[Array, "n j"]], Float[Array, "n j"]],
    inertial: InertialTorque,
) -> float | None:
    """Estimate the sampling rate [Hz], rounded to a usual one nearby; None if undetermined.

    Args:
        position: Joint positions, one row per sample [rad].
        torque: Joint torques [N m].
        gravity, inertial: Torques of the nominal robot.
    """
    if len(position) < 100:
        return None
    from scipy.signal import savgol_filter

    width = 2 * max(5, len(position) // 400) + 1
    q = savgol_filter(position, width, 4, axis=0)
    v = savgol_filter(position, width, 4, deriv=1, axis=0)
    a = savgol_filter(position, width, 4, deriv=2, axis=0)
    rows = slice(width, len(q) - width, max(1, len(q) // _ROWS))
    q, v, a = q[rows], v[rows], a[rows]
    tau = savgol_filter(torque, width, 2, axis=0)[rows]
    load, inertia = gravity(q), inertial(q, v, a)
    numerator = denominator = 0.0
    for j in range(q.shape[1]):
        speed = max(float(np.abs(v[:, j]).max()), 1e-12)
        nuisance = np.column_stack(
            [np.ones(len(q)), load, np.tanh(20.0 * v[:, j] / speed), v[:, j] / speed]
        )
        basis, _ = np.linalg.qr(nuisance)
        x, y = inertia[:, j], tau[:, j]
        x, y = x - basis @ (basis.T @ x), y - basis @ (basis.T @ y)
        power = float(x @ x)
        if power <= 1e-12 * float(inertia[:, j] @ inertia[:, j]):
            continue
        noise = float(y @ y) / len(y)
        numerator += float(x @ y) / noise
        denominator += power / noise
    if denominator == 0.0:
        return None
    square = numerator / denominator
    # Samples of a smoothed signal are not independent: the variance of r^2 is width / denominator.
    if square <= _MIN_SIGNIFICANCE * np.sqrt(width / denominator):
        return None
    rate = float(np.sqrt(square))
    nearest = float(USUAL_HZ[np.argmin(np.abs(np.log(USUAL_HZ / rate)))])
    return nearest if abs(np.log(nearest / rate)) < 0.2 else rate
