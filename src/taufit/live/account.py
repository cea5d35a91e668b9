"""Where the samples of a source went: every one of them is in exactly one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taufit.signals.intake import Counts

# Why an intake leaves a sample out, and in words.
REASONS = {
    "spike": "spikes",
    "late": "late",
    "repeated": "repeated stamps",
    "missing": "no measurements",
    "held": "repeated torques",
}


@dataclass(frozen=True, slots=True)
class Account:
    """samples = readings + settling + waiting + sum of left_out.

    Attributes:
        samples: That have come so far.
        readings: That have a reading of their own.
        settling: Before the first step of the grid, at the beginning and after gaps: no reading.
        waiting: For the next sample.
        left_out: By reason, one of `REASONS`.
    """

    samples: int
    readings: int
    settling: int
    waiting: int
    left_out: dict[str, int]

    @classmethod
    def of(cls, counts: Counts, handed: int, readings: int) -> Account:
        """Of an intake that has handed on so many samples, which made so many readings."""
        left = {reason: getattr(counts, reason) for reason in REASONS}
        waiting = counts.pushed - sum(left.values()) - handed
        return cls(counts.pushed, readings, handed - readings, waiting, left)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "samples": self.samples,
            "readings": self.readings,
            "settling": self.settling,
            "waiting": self.waiting,
            "left_out": dict(self.left_out),
        }

    def __str__(self) -> str:
        parts = [f"{self.readings} readings"]
        if self.settling:
            parts.append(f"{self.settling} before the first step of the grid")
        if self.waiting:
            parts.append(f"{self.waiting} waiting for the next one")
        left = [f"{n} {REASONS[reason]}" for reason, n in self.left_out.items() if n]
        if left:
            parts.append(f"{sum(self.left_out.values())} left out ({', '.join(left)})")
        return f"{self.samples} samples: {', '.join(parts)}"
