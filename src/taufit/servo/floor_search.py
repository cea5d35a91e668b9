"""Height of a floor under the arm, from replays that go lower than the measured motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay

# Heights above the lowest measured one [m]; chosen on seven training runs of one SO-101.
_COARSE = (-0.002, 0.002, 0.006, 0.010, 0.014, 0.018)
_STEPS = (0.002, 0.001)  # refinement of the height [m]
_REACH = 0.02  # a replay lower than the lowest measured height plus this may touch [m]
_MIN_GAIN = 0.02  # smallest relative gain on left-out runs


def find_floor(
    axes: JointAxes, servo: ServoParameters, motions: Sequence[CommandedMotion]
) -> Floor | None:
    """Floor that lowers the replay error of runs left out of its choice, or None.

    The height is chosen on all other runs for each run in turn.
    """
    measured = [axes.heights(m.position) for m in motions]
    lowest = float(min(np.quantile(h, 0.001) for h in measured))
    heights = [lowest + step for step in _COARSE]
    without = [replay(axes, servo, m) for m in motions]
    touching = [float(axes.heights(q).min()) < lowest + _REACH for q in without]
    errors = np.array(
        [
            _squared_errors(axes, servo, m, q, heights if touches else [])
            for m, q, touches in zip(motions, without, touching, strict=True)
        ]
    )
    chosen = _left_out_errors(errors)
    if chosen.sum() > (1.0 - _MIN_GAIN) * errors[:, 0].sum():
        return None
    best = heights[int(np.argmin(errors[:, 1:].sum(axis=0)))]
    return refine_floor(axes, servo, motions, Floor(best))


def refine_floor(
    axes: JointAxes, servo: ServoParameters, motions: Sequence[CommandedMotion], floor: Floor
) -> Floor:
    """Floor with the height of least error, by halving the step around a first one."""
    height = floor.height
    motions = [m for m in motions if axes.heights(m.position).min() < height + _REACH]

    def error(z: float) -> float:
        replays = (replay(axes, servo, m, Floor(z)) - m.position for m in motions)
        return float(sum((e**2).mean() for e in replays))

    least = error(height)
    for step in _STEPS:
        for trial in (height - step, height + step):
            value = error(trial)
            if value < least:
                height, least = trial, value
                break
    return Floor(height)


def _squared_errors(
    axes: JointAxes,
    servo: ServoParameters,
    motion: CommandedMotion,
    without: Float[Array, "n j"],
    heights: Sequence[float],
) -> list[float]:
    """Mean squared replay error without a floor, then at each height."""
    free = float(((without - motion.position) ** 2).mean())
    if not heights:
        return [free] * (len(_COARSE) + 1)
    replays = (replay(axes, servo, motion, Floor(height)) for height in heights)
    return [free, *(float(((q - motion.position) ** 2).mean()) for q in replays)]


def _left_out_errors(errors: Float[Array, "r h"]) -> Float[Array, " r"]:
    """Error of each run at the height that the other runs choose; column 0 is no floor."""
    others = errors.sum(axis=0) - errors
    return np.take_along_axis(errors, np.argmin(others, axis=1)[:, None], axis=1)[:, 0]
