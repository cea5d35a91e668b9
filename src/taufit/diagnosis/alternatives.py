"""Other arms that the torque may belong to: bundled ones with as many joints."""

from __future__ import annotations

from functools import cache

import numpy as np

from taufit.diagnosis.change import Change, described_by
from taufit.dynamics import forward_kinematics
from taufit.robot import Robot, bundled_robots, read_robot

# Arms whose tips stay within this share of their reach of each other are the same to a model.
_SAME = 0.05


@cache
def _bundled() -> tuple[Robot, ...]:
    return tuple(read_robot(name) for name in bundled_robots())


def other_arms(robot: Robot) -> list[Change]:
    """Bundled arms of the same number of joints and of other lengths or axes."""
    return [
        described_by(other)
        for other in _bundled()
        if other.joints == robot.joints and not _alike(robot, other)
    ]


def _alike(one: Robot, other: Robot) -> bool:
    """Whether two arms move alike: UR10 and UR10e do."""
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (20, one.joints))
    first, second = (forward_kinematics(arm, q)[:, :, :3, 3] for arm in (one, other))
    size = np.linalg.norm(first[:, -1], axis=1).max()
    if first.shape != second.shape:
        return False
    apart = np.linalg.norm((first - second)[:, -2:], axis=2).max()
    return bool(apart < _SAME * size)
