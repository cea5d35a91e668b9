"""Referee's conditioning, with SciPy alone: uniform grid, zero-phase low-pass, differences.

Signals are interpolated to their median rate (1 kHz at most), filtered by a Butterworth low-pass of
fourth order forwards and backwards, and taken at 100 Hz. Velocity is the recorded one where there
is one, else the difference of filtered positions; acceleration is the difference of that velocity.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import butter, sosfiltfilt

from benchmarks.open.run import Run

GRID_HZ = 100.0
MOST_HZ = 1000.0
ORDER = 4
# Slower than this in all joints counts as rest [rad/s]; ends of a section are not scored [s].
REST_SPEED = 0.01
EDGE_S = 0.25


class LowPass:
    """From recorded time stamps to the benchmark's grid."""

    def __init__(self, time: np.ndarray, cutoff_hz: float) -> None:
        self.recorded = time
        step = max(float(np.median(np.diff(time))), 1.0 / MOST_HZ)
        self.even = np.arange(time[0], time[-1], step)
        self.rate = 1.0 / step
        self.grid = np.arange(time[0], self.even[-1], max(1.0 / GRID_HZ, step))
        self.filter = butter(ORDER, min(cutoff_hz, 0.45 * self.rate), fs=self.rate, output="sos")

    def smooth(self, values: np.ndarray) -> np.ndarray:
        """Values at recorded times, filtered at the even rate."""
        return sosfiltfilt(self.filter, interpolate(self.even, self.recorded, values), axis=0)

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """Values at the even rate, taken at the grid."""
        return interpolate(self.grid, self.even, values)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Values at recorded times, filtered, at the grid."""
        return self.on_grid(self.smooth(values))


def interpolate(at: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Columns of `values` at other times."""
    return np.stack([np.interp(at, time, column) for column in values.T], 1)


def condition(
    time: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray | None,
    torque: np.ndarray | None,
    cutoff_hz: float,
    command: np.ndarray | None = None,
) -> Run:
    """Section of a recording on the benchmark's grid."""
    low_pass = LowPass(time, cutoff_hz)
    smooth = low_pass.smooth(position)
    step = 1.0 / low_pass.rate
    speed = np.gradient(smooth, step, axis=0) if velocity is None else low_pass.smooth(velocity)
    v = low_pass.on_grid(speed)
    inner = (low_pass.grid > time[0] + EDGE_S) & (low_pass.grid < low_pass.even[-1] - EDGE_S)
    return Run(
        time=low_pass.grid,
        q=low_pass.on_grid(smooth),
        v=v,
        a=low_pass.on_grid(np.gradient(speed, step, axis=0)),
        torque=None if torque is None else low_pass(torque),
        moving=inner & (np.abs(v).max(1) > REST_SPEED),
        recorded_time=time,
        recorded_position=position,
        recorded_velocity=velocity,
        recorded_torque=torque,
        recorded_command=command,
        cutoff_hz=cutoff_hz,
    )
