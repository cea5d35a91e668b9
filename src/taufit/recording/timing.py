"""How evenly a recording was sampled: nominal period, gaps, lost samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.core.arrays import Array, Float, Int

# A step longer than this many nominal periods is a gap.
GAP_STEPS = 1.5
# Rates controllers run at; a median within 2 % of one is taken to mean it, because loggers
# that stamp on arrival shorten every ordinary step a little for every gap.
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
    """Of one recording.

    Attributes:
        mean_hz: Samples per second over the whole recording.
        nominal_hz: What the logger meant to do: the median step, rounded to a usual rate.
        jitter: Standard deviation of the steps that are no gaps [s].
        shortest, longest: Step [s].
        gaps: Index of the sample before each step longer than 1.5 nominal periods.
        lost: Samples that would fill the gaps.
        duration: From first to last time stamp [s].
    """

    mean_hz: float
    nominal_hz: float
    jitter: float
    shortest: float
    longest: float
    gaps: Int[Array, " g"]
    lost: int
    duration: float


def timing(time: Float[Array, " n"]) -> Timing:
    """What the time stamps, strictly increasing, say about the sampling."""
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
        shortest=float(steps.min()),
        longest=float(steps.max()),
        gaps=np.flatnonzero(gap),
        lost=int(np.minimum(np.round(steps[gap] / period) - 1, 1e12).sum()),
        duration=duration,
    )
