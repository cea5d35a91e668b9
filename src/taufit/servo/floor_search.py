"""Height of a floor under the arm, from replays that go lower than the measured motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay

# Heights above the lowest measured one, where the floor is pressed in [m]. Chosen on simulated
# arms 0-27 of benchmarks/simulated_servos.py.
_COARSE = (-0.002, 0.004, 0.010, 0.016, 0.022, 0.030)
_STEPS = (0.004, 0.002, 0.001, 0.0005, 0.0002, 0.0001)  # refinement of the height [m]
_REACH = 0.02  # a replay lower than the lowest measured height plus this may touch [m]
_BLOCK_S = 12.0  # length of the parts of motion that are compared [s]
_MIN_GAIN = 0.05  # smallest relative gain on left-out parts that may touch


def find_floor(
    axes: JointAxes, servo: ServoParameters, motions: Sequence[CommandedMotion]
) -> Floor | None:
    """Floor that lowers the replay error of parts left out of its choice, or None.

    The height is chosen on all other parts for each part in turn, within a few millimetres:
    `refine_floor` comes after the fit.
    """
    lowest = lowest_height(axes, motions)
    free_replays = [replay(axes, servo, m) for m in motions]
    touching = [
        (m, q)
        for m, q in zip(motions, free_replays, strict=True)
        if float(axes.heights(q).min()) < lowest + _REACH
    ]
    heights = [lowest + step for step in _COARSE]
    if not touching:
        return None
    replays = [[q, *(replay(axes, servo, m, Floor(z)) for z in heights)] for m, q in touching]
    errors = np.concatenate(
        [
            np.column_stack([_block_errors(m, q) for q in positions])
            for (m, _), positions in zip(touching, replays, strict=True)
        ]
    )
    best_height = np.argmin(errors.sum(axis=0) - errors, axis=1)
    left_out_errors = np.take_along_axis(errors, best_height[:, None], axis=1)
    if left_out_errors.sum() >= (1.0 - _MIN_GAIN) * errors[:, 0].sum():
        return None
    return Floor(heights[int(np.argmin(errors[:, 1:].sum(axis=0)))])


def lowest_height(axes: JointAxes, motions: Sequence[CommandedMotion]) -> float:
    """Lowest measured height of the contact point, but for one row in a thousand [m]."""
    return float(min(np.quantile(axes.heights(m.position), 0.001) for m in motions))


def refine_floor(
    axes: JointAxes, servo: ServoParameters, motions: Sequence[CommandedMotion], floor: Floor
) -> Floor:
    """Floor with the height of least error near a first one, by steps that are halved."""
    height = floor.height
    motions = [m for m in motions if axes.heights(m.position).min() < height + _REACH]

    def error(z: float) -> float:
        return sum(_block_errors(m, replay(axes, servo, m, Floor(z))).sum() for m in motions)

    least = error(height)
    for step in _STEPS:
        for change in (-step, step):
            while (value := error(height + change)) < least:
                height, least = height + change, value
    return Floor(height)


def _block_errors(motion: CommandedMotion, position: Float[Array, "n j"]) -> Float[Array, " b"]:
    """Mean squared replay error of parts of `_BLOCK_S` [rad^2]."""
    square = np.mean((position - motion.position) ** 2, axis=1)
    return np.array([part.mean() for part in np.array_split(square, motion.blocks(_BLOCK_S))])
