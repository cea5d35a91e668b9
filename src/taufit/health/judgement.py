"""What a history says about each joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95


@dataclass(frozen=True, slots=True)
class JointHealth:
    """One joint.

    Attributes:
        joint: Counted from 1.
        alarm: Whether its friction has risen beyond chance.
        since: Name of the run that raised the alarm, or None.
        change: Friction of the last runs against the baseline, in percent of the friction there.
        change_std: Its standard deviation.
        trend: Change per run since the baseline, in percent of the friction there.
        trend_std: Its standard deviation.
        sum: The CUSUM after the last run.
    """

    joint: int
    alarm: bool
    since: str | None
    change: float
    change_std: float
    trend: float
    trend_std: float
    sum: float


@dataclass(frozen=True, slots=True, eq=False)
class HealthReport:
    """All joints of a history.

    Attributes:
        joints: One per joint.
        alarms: Name of the run and joint (from 1) of every alarm, in order.
        z: Compensated index of every run in standard deviations of healthy ones.
        percent: The same in percent of the friction expected.
        sums: The CUSUM after every run behind the baseline.
        threshold: At which it alarms.
        rate: False alarms per healthy run it was set for.
    """

    joints: tuple[JointHealth, ...]
    alarms: tuple[tuple[str, int], ...]
    z: Float[Array, "n j"]
    percent: Float[Array, "n j"]
    sums: Float[Array, "m j"]
    threshold: float
    rate: float

    @property
    def healthy(self) -> bool:
        return not self.alarms

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        worn = [one for one in self.joints if one.alarm]
        if not worn:
            return "healthy: no joint's friction has risen beyond what healthy runs show"
        parts = [
            f"joint {one.joint} ({one.change:+.1f} ± {NORMAL_95 * one.change_std:.1f} %, alarm at "
            f"{one.since})"
            for one in sorted(worn, key=lambda one: -one.change)
        ]
        return f"friction has risen: {', '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "healthy": self.healthy,
            "headline": self.headline,
            "threshold": self.threshold,
            "false_alarm_rate": self.rate,
            "alarms": [{"run": run, "joint": joint} for run, joint in self.alarms],
            "joints": [
                {
                    "joint": one.joint,
                    "alarm": one.alarm,
                    "since": one.since,
                    "change_percent": one.change,
                    "change_std": one.change_std,
                    "trend_percent_per_run": one.trend,
                    "trend_std": one.trend_std,
                    "cusum": one.sum,
                }
                for one in self.joints
            ],
        }


def trend_of(values: Float[Array, " n"], scale: float) -> tuple[float, float]:
    """Slope of a line through the runs, and its standard deviation; no less than `scale` allows."""
    n = len(values)
    if n < 3:
        return float("nan"), float("nan")
    at = np.arange(n) - 0.5 * (n - 1)
    slope = float(at @ values / (at @ at))
    left = values - values.mean() - slope * at
    spread = max(float(np.sqrt(left @ left / (n - 2))), scale)
    return slope, spread / float(np.sqrt(at @ at))
