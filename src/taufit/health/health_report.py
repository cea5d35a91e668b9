"""Health report of a robot's joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95


@dataclass(frozen=True, slots=True)
class JointHealth:
    """Health of one joint.

    Attributes:
        joint: Joint number, from 1.
        alarm: Whether its friction has risen significantly.
        since: Name of the run that raised the alarm, or None.
        change: Change of friction in the last runs, in percent of the baseline friction.
        change_std: Its standard deviation.
        trend: Change per run since the baseline, in percent of the baseline friction.
        trend_std: Its standard deviation.
        sum: CUSUM after the last run.
    """

    joint: int
    alarm: bool
    alarm_run: str | None
    change: float
    change_std: float
    trend: float
    trend_std: float
    cusum: float


@dataclass(frozen=True, slots=True, eq=False)
class HealthReport:
    """Health of all joints of a robot.

    Attributes:
        joints: Health of each joint.
        alarms: Run name and joint number (from 1) of every alarm, in order.
        z: Compensated index of every run, in standard deviations of healthy runs.
        percent: Compensated index of every run, in percent of the model friction.
        sums: CUSUM after every run since the baseline.
        threshold: Alarm threshold of the CUSUM.
        rate: Accepted false alarms per healthy run.
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
        worn_joints = [joint for joint in self.joints if joint.alarm]
        if not worn_joints:
            return "healthy: no joint's friction has risen beyond what healthy runs show"
        parts = [
            f"joint {joint.joint} ({joint.change:+.1f} ± {NORMAL_95 * joint.change_std:.1f} %, "
            f"alarm at "
            f"{joint.alarm_run})"
            for joint in sorted(worn_joints, key=lambda joint: -joint.change)
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
                    "joint": health.joint,
                    "alarm": health.alarm,
                    "since": health.alarm_run,
                    "change_percent": health.change,
                    "change_std": health.change_std,
                    "trend_percent_per_run": health.trend,
                    "trend_std": health.trend_std,
                    "cusum": health.cusum,
                }
                for health in self.joints
            ],
        }


def linear_trend(values: Float[Array, " n"], scale: float) -> tuple[float, float]:
    """Slope of a line through the runs and its standard deviation, with `scale` as least noise."""
    n = len(values)
    if n < 3:
        return float("nan"), float("nan")
    offset = np.arange(n) - 0.5 * (n - 1)
    slope = float(offset @ values / (offset @ offset))
    residual = values - values.mean() - slope * offset
    std = max(float(np.sqrt(residual @ residual / (n - 2))), scale)
    return slope, std / float(np.sqrt(offset @ offset))
