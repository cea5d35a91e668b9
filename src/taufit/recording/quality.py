"""What a recording looks like before anybody fits anything: clock, rest and motion, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.recording.finding import Finding
from taufit.recording.recording import Recording
from taufit.recording.timing import Timing, timing

# Below this speed [rad/s or m/s] a joint counts as resting; sensors of resting arms stay under it.
REST_SPEED = 0.01
# Shorter stops are turning points, not rest [s].
SHORTEST_REST = 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """Of one recording.

    Attributes:
        timing: Of its time stamps.
        rest: (first, last) time stamp of every interval in which no joint moves [s].
        motion: (first, last) time stamp of the longest interval between rests, or None where
            nothing moves.
        travel: Range each joint covers [rad or m].
        findings: The reader's.
    """

    timing: Timing
    rest: tuple[tuple[float, float], ...]
    motion: tuple[float, float] | None
    travel: Float[Array, " j"]
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        clock = self.timing
        return {
            "rate_hz": clock.mean_hz,
            "nominal_rate_hz": clock.nominal_hz,
            "duration_s": clock.duration,
            "jitter_s": clock.jitter,
            "shortest_step_s": clock.shortest,
            "longest_step_s": clock.longest,
            "gaps": len(clock.gaps),
            "lost_samples": clock.lost,
            "rest": [list(window) for window in self.rest],
            "motion": None if self.motion is None else list(self.motion),
            "travel": self.travel.tolist(),
        }


def quality(recording: Recording) -> Quality:
    """Clock, rest windows and travel of a recording."""
    moving = in_motion(recording)
    time = recording.time
    resting = [
        (first, last)
        for first, last in _intervals(~moving)
        if time[last] - time[first] >= SHORTEST_REST
    ]
    busy = np.ones(len(recording), bool)
    for first, last in resting:
        busy[first : last + 1] = False
    motions = [span for span in _intervals(busy) if moving[span[0] : span[1] + 1].any()]
    longest = max(motions, key=lambda span: time[span[1]] - time[span[0]], default=None)
    return Quality(
        timing=timing(time),
        rest=tuple((float(time[first]), float(time[last])) for first, last in resting),
        motion=None if longest is None else (float(time[longest[0]]), float(time[longest[1]])),
        travel=np.ptp(recording.position, axis=0),
        findings=recording.findings,
    )


def _intervals(mask: Bool[Array, " n"]) -> list[tuple[int, int]]:
    """First and last index of every interval in which the mask is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def in_motion(recording: Recording, speed: float = REST_SPEED) -> Bool[Array, " n"]:
    """Per sample, whether any joint moves faster than `speed`.

    From the recorded velocity where there is one; otherwise from the change of position over
    100 ms, long enough for encoder steps not to count as motion.
    """
    if recording.velocity is not None:
        return np.asarray((np.abs(recording.velocity) > speed).any(1))
    time = recording.time
    first = np.searchsorted(time, time - 0.05)
    last = np.minimum(np.searchsorted(time, time + 0.05, side="right"), len(time)) - 1
    span = np.maximum(time[last] - time[first], 1e-9)[:, None]
    rate = (recording.position[last] - recording.position[first]) / span
    return np.asarray((np.abs(rate) > speed).any(1))
