"""Summary of a recording: sampling, standstill, motion, findings."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.recording.finding import Finding
from taufit.recording.recording import Recording
from taufit.recording.timing import Timing, sampling_timing

# Speed below which a joint stands still, above the noise of velocity sensors [rad/s or m/s].
STANDSTILL_SPEED = 0.01
# Shorter stops are reversals, not standstill [s].
MIN_STANDSTILL_S = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class RecordingQuality:
    """Sampling, standstill intervals and travel of a recording.

    Attributes:
        timing: Sampling statistics.
        standstill: (first, last) time stamp of every interval in which no joint moves [s].
        motion: (first, last) time stamp of the longest interval in motion [s], or None.
        travel: Range of each joint's position [rad or m].
        findings: Findings of the reader.
    """

    timing: Timing
    standstill: tuple[tuple[float, float], ...]
    motion: tuple[float, float] | None
    travel: Float[Array, " j"]
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        sampling = self.timing
        return {
            "rate_hz": sampling.mean_hz,
            "nominal_rate_hz": sampling.nominal_hz,
            "duration_s": sampling.duration,
            "jitter_s": sampling.jitter,
            "shortest_step_s": sampling.min_step,
            "longest_step_s": sampling.max_step,
            "gaps": len(sampling.gaps),
            "lost_samples": sampling.lost_samples,
            "rest": [list(window) for window in self.standstill],
            "motion": None if self.motion is None else list(self.motion),
            "travel": self.travel.tolist(),
        }


def recording_quality(recording: Recording) -> RecordingQuality:
    """Compute sampling statistics, standstill intervals and travel."""
    moving = motion_mask(recording)
    time = recording.time
    standstill = [
        (first, last)
        for first, last in _intervals(~moving)
        if time[last] - time[first] >= MIN_STANDSTILL_S
    ]
    is_moving = np.ones(len(recording), bool)
    for first, last in standstill:
        is_moving[first : last + 1] = False
    motions = [
        interval
        for interval in _intervals(is_moving)
        if moving[interval[0] : interval[1] + 1].any()
    ]
    longest = max(motions, key=lambda interval: time[interval[1]] - time[interval[0]], default=None)
    return RecordingQuality(
        timing=sampling_timing(time),
        standstill=tuple((float(time[first]), float(time[last])) for first, last in standstill),
        motion=None if longest is None else (float(time[longest[0]]), float(time[longest[1]])),
        travel=np.ptp(recording.position, axis=0),
        findings=recording.findings,
    )


def _intervals(mask: Bool[Array, " n"]) -> list[tuple[int, int]]:
    """First and last index of every interval of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def motion_mask(recording: Recording, speed: float = STANDSTILL_SPEED) -> Bool[Array, " n"]:
    """Samples in which any joint is faster than `speed`.

    Uses recorded velocity, else the change of position over 100 ms, so that encoder steps do not
    count as motion.
    """
    if recording.velocity is not None:
        return np.asarray((np.abs(recording.velocity) > speed).any(1))
    time = recording.time
    first = np.searchsorted(time, time - 0.05)
    last = np.minimum(np.searchsorted(time, time + 0.05, side="right"), len(time)) - 1
    span = np.maximum(time[last] - time[first], 1e-9)[:, None]
    rate = (recording.position[last] - recording.position[first]) / span
    return np.asarray((np.abs(rate) > speed).any(1))
