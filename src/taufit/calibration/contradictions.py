"""Whether a recording can be of this robot at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.calibration.gravity_sign import gravity_findings
from taufit.calibration.mounting import estimate_gravity, spoken
from taufit.recording import Recording
from taufit.robot import Robot, bundled_robots
from taufit.signals.samples import Samples

# Beyond its limits by more than this, for more than this share of the time, an arm cannot be
# [rad or m, 1].
_BEYOND = 0.2
_OFTEN = 0.01

# What readers call numbers that cannot be measurements.
_IMPOSSIBLE = ("corrupt_rows", "impossible_rows", "missing_values")


def contradictions(
    robot: Robot, recordings: Sequence[Recording], samples: Samples
) -> tuple[str, ...]:
    """Sentences on what cannot be: another robot's name, impossible poses, torque against gravity,
    another mounting, cells that are not numbers. Empty for a recording that makes sense.
    """
    told = []
    known = set(bundled_robots())
    for recording in recordings:
        name = recording.meta.get("robot")
        if isinstance(name, str) and name in known and robot.name in known and name != robot.name:
            told.append(
                f"{recording.name} is of {name!r}, as its map or file "
                f"says, and the robot given is {robot.name!r}."
            )
    told += beyond_limits(robot, samples)
    gravity = estimate_gravity(robot, samples)
    if gravity is not None and gravity.wrong:
        told.append(spoken(gravity, robot))
        # With the mounting that fits, joints that still go against gravity have a fault of their
        # own.
        robot = robot.with_mounting(gravity.mounting)
    told += gravity_findings(robot, samples)
    for recording in recordings:
        told += [
            f"{recording.name}: {finding}."
            for finding in recording.findings
            if finding.kind in _IMPOSSIBLE
        ]
    return tuple(dict.fromkeys(told))


def beyond_limits(robot: Robot, samples: Samples) -> list[str]:
    """One sentence on joints that are recorded where they cannot go."""
    low, high = robot.limits.lower, robot.limits.upper
    position = samples.position[samples.in_motion]
    outside = (position < low - _BEYOND) | (position > high + _BEYOND)
    parts = []
    for j in np.flatnonzero(outside.mean(axis=0) > _OFTEN):
        k, unit = (1.0, "m") if robot.links[j].prismatic else (180.0 / np.pi, "deg")
        parts.append(
            f"joint {j + 1} goes {k * position[:, j].min():.0f} .. {k * position[:, j].max():.0f} "
            f"{unit}, its limits are {k * low[j]:.0f} .. {k * high[j]:.0f}"
        )
    if not parts:
        return []
    return [
        f"positions are outside what {robot.name} can reach: {'; '.join(parts)}. Is it the right "
        "robot, are units, signs and zero offsets right (--map)?"
    ]
