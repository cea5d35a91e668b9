"""What a recording looks like before anybody fits anything: clock, rest and motion, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.arrays import Array, Bool, Float
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
        rest: (first, last) time stamp of every stretch in which no joint moves [s].
        motion: (first, last) time stamp of the part from the first to the last movement, or
            None where nothing moves.
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
    edges = np.flatnonzero(np.diff(np.concatenate([[True], moving, [True]]).astype(int)))
    rest = tuple(
        (float(time[first]), float(time[last - 1]))
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        if time[last - 1] - time[first] >= SHORTEST_REST
    )
    where = np.flatnonzero(moving)
    return Quality(
        timing=timing(time),
        rest=rest,
        motion=(float(time[where[0]]), float(time[where[-1]])) if len(where) else None,
        travel=np.ptp(recording.position, axis=0),
        findings=recording.findings,
    )


def in_motion(recording: Recording, speed: float = REST_SPEED) -> Bool[Array, " n"]:
    """Per sample, whether any joint moves faster than `speed`.

    From the recorded velocity where there is one; otherwise from the change of position over
    100 ms, long enough for encoder steps not to count as motion.
    """
    if recording.velocity is not None:
        return (np.abs(recording.velocity) > speed).any(1)
    time = recording.time
    first = np.searchsorted(time, time - 0.05)
    last = np.minimum(np.searchsorted(time, time + 0.05, side="right"), len(time)) - 1
    span = np.maximum(time[last] - time[first], 1e-9)[:, None]
    rate = (recording.position[last] - recording.position[first]) / span
    return (np.abs(rate) > speed).any(1)
