"""Other arms that the torque may belong to: bundled ones with as many joints."""

from __future__ import annotations

from functools import cache

import numpy as np

from taufit.arrays import Array, Float
from taufit.diagnosis.change import Change, described_by
from taufit.dynamics import forward_kinematics
from taufit.robot import Robot, bundled_robots, read_robot

# Arms whose tips travel as far as each other's, within this share, are the same to a model.
_SAME = 0.1


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
    """Whether two arms move alike, wherever their bases are: UR10 and UR10e do."""
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (20, one.joints))
    first, second = (_distances(forward_kinematics(arm, q)[:, -1, :3, 3]) for arm in (one, other))
    return bool(np.abs(first - second).max() < _SAME * first.max())


def _distances(points: Float[Array, "n 3"]) -> Float[Array, "n n"]:
    return np.linalg.norm(points[:, None] - points[None], axis=2)
