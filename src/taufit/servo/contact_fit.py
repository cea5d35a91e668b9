"""Gains from the deflection of the joints in contact with the floor.

Away from contact gravity alone shows kp, and not that of every joint; a floor that pushes or drags
the arm moves every joint by its torque over kp.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.servo.parameters import Floor
from taufit.servo.replay_rows import ReplayRows
from taufit.servo.rollout_fit import RolloutFit, descend
from taufit.servo.unknowns import PER_JOINT

_STEPS = 3  # largest number of steps of the gains at one height
_LARGEST_STEP = 0.3  # largest change of an unknown by one step
_HEIGHT_STEPS = (0.002, 0.0005)  # steps of the floor's height [m]
_MIN_GAIN = 0.05  # smallest relative gain on left-out runs, as for the floor itself
_MIN_ROWS = 100  # contact rows that a run needs for the comparison


def with_contact_gains(
    rows: ReplayRows, fit: RolloutFit, floor: Floor, *, is_fixed: bool = False
) -> tuple[RolloutFit, Floor]:
    """Fit and floor that explain the contact rows, too, if left-out runs agree.

    A run with more contact than all others together is not left out: it alone shows the gains.
    The fit away from contact is the prior: kp, armature and the height of the floor move together,
    all other unknowns are constant. Along the valley of their cost the height is stepped and the
    gains follow; a height a few millimetres wrong alone makes runs contradict each other. Of
    simulated arms 6007, 6008, 6012 and 7025 (benchmarks/simulated_servos.py), on which this was
    chosen, the replay error falls from 2.6, 3.8, 1.3 and 6.5 times that of the truth to 1.4 and
    less; on an SO-101 no run has enough contact, and nothing changes.

    Args:
        rows: Motions of the second stage, and their rows in contact.
        fit: Fit of the rows away from contact.
        floor: Floor in the roll-outs.
        is_fixed: Whether the height of the floor is given.
    """
    rows = rows.part(np.array([mask.any() for mask in rows.masks]))
    if not rows.count:
        return fit, floor
    x, plane = _gains_and_floor(rows, fit, floor, is_fixed)
    ratios = []
    for number in np.unique(rows.run):
        left_out, others = rows.part(rows.run == number), rows.part(rows.run != number)
        if _MIN_ROWS <= left_out.count <= others.count:
            other_x = _gains_at(others, fit, plane, x)[0]
            ratios.append(
                left_out.square_error(other_x, plane) / left_out.square_error(fit.x, floor)
            )
    if not ratios or np.median(ratios) > 1.0 - _MIN_GAIN:
        return fit, floor
    return replace(fit, x=x), plane


def _gains_and_floor(
    rows: ReplayRows, fit: RolloutFit, floor: Floor, is_fixed: bool
) -> tuple[Float[Array, " p"], Floor]:
    """Gains and floor of least cost, by steps of the height while these lower it."""
    x, least = _gains_at(rows, fit, floor, fit.x)
    for step in () if is_fixed else _HEIGHT_STEPS:
        for direction in (-step, step):
            is_better = True
            while is_better:
                trial = replace(floor, height=floor.height + direction)
                trial_x, cost = _gains_at(rows, fit, trial, x)
                is_better = cost < least
                if is_better:
                    x, floor, least = trial_x, trial, cost
    return x, floor


def _gains_at(
    rows: ReplayRows, fit: RolloutFit, floor: Floor, x: Float[Array, " p"]
) -> tuple[Float[Array, " p"], float]:
    """Unknowns with the gains and armatures of least cost over one floor, and the cost."""
    first = PER_JOINT * np.arange(rows.axes.joints)
    free = np.concatenate([first, first + 3])
    inner = np.ix_(free, free)
    precision, mean = fit.precision[inner], fit.x[free]

    def unknowns(values: Float[Array, " f"]) -> Float[Array, " p"]:
        out = x.copy()
        out[free] = values
        return out

    def equations(values: Float[Array, " f"]) -> tuple[Array, Array]:
        normal, gradient = rows.normal_equations(unknowns(values), floor)
        slope = gradient.sum(axis=0)[free] + precision @ (values - mean)
        return normal.sum(axis=0)[inner] + precision, slope

    def cost_of(values: Float[Array, " f"]) -> float:
        prior = float(0.5 * (values - mean) @ precision @ (values - mean))
        return rows.cost(unknowns(values), floor) + prior

    values, cost = descend(x[free], equations, cost_of, _LARGEST_STEP, _STEPS)
    return unknowns(values), cost
