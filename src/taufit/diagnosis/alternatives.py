"""Other arms that the torque may belong to: bundled ones with as many joints."""

from __future__ import annotations

from functools import cache

import numpy as np

from taufit.diagnosis.change import Change, described_by
from taufit.robot import Robot, bundled_robots, read_robot

# Gravity this many times the given arm's is reason to look at others.
_OFF = 1.3


@cache
def _bundled() -> tuple[Robot, ...]:
    return tuple(read_robot(name) for name in bundled_robots())


def other_arms(robot: Robot, slope: float) -> list[Change]:
    """Bundled arms of the same number of joints, where gravity does not fit the one given."""
    if np.isfinite(slope) and 1 / _OFF < slope < _OFF:
        return []
    return [
        described_by(other)
        for other in _bundled()
        if other.joints == robot.joints and other.name != robot.name
    ]
