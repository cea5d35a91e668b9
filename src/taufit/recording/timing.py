"""Sampling statistics: nominal period, jitter, gaps, lost samples."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass

# Steps above this many nominal periods are gaps.
GAP_STEPS = 1.5
# Usual controller rates [Hz]; a median within 2 % is rounded to it, because loggers that stamp on
# arrival shorten ordinary steps after gaps.
USUAL_HZ = np.array(
    [
        10,
        20,
        25,
        30,
        50,
        60,
        62.5,
        100,
        120,
        125,
        200,
        240,
        250,
        400,
        500,
        1000,
        2000,
        4000,
        5000,
        8000,
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """Sampling statistics of a recording.

    Attributes:
        mean_hz: Mean rate over the whole recording [Hz].
        nominal_hz: Nominal rate of the logger: from the median step, rounded to a usual rate [Hz].
        jitter: Standard deviation of the time steps without gaps [s].
        min_step, max_step: Smallest and largest time step [s].
        gaps: Index of the sample before each step longer than 1.5 nominal periods.
        lost_samples: Number of samples missing in the gaps.
        duration: Time from first to last sample [s].
    """

    mean_hz: float
    nominal_hz: float
    jitter: float
    min_step: float
    max_step: float
    gaps: Int[Array, " g"]
    lost_samples: int
    duration: float


def sampling_timing(time: Float[Array, " n"]) -> Timing:
    """Compute sampling statistics of strictly increasing time stamps."""
    steps = np.diff(time)
    if not len(steps):
        return Timing(0.0, 0.0, 0.0, 0.0, 0.0, np.zeros(0, int), 0, 0.0)
    period = float(np.median(steps))
    usual_rate = USUAL_HZ[np.argmin(np.abs(USUAL_HZ * period - 1))]
    if abs(usual_rate * period - 1) < 0.02:
        period = 1 / float(usual_rate)
    gap = steps > GAP_STEPS * period
    duration = float(time[-1] - time[0])
    if not (period > 0.0 and duration > 0.0):
        return Timing(0.0, 0.0, 0.0, 0.0, duration, np.zeros(0, int), 0, duration)
    return Timing(
        mean_hz=len(steps) / duration,
        nominal_hz=1 / period,
        jitter=float(np.std(steps[~gap])) if (~gap).any() else 0.0,
        min_step=float(steps.min()),
        max_step=float(steps.max()),
        gaps=np.flatnonzero(gap),
        lost_samples=int(np.minimum(np.round(steps[gap] / period) - 1, 1e12).sum()),
        duration=duration,
    )
