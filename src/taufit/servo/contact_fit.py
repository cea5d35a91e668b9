"""Gains from the deflection of the joints in contact with the floor.

Away from contact gravity alone shows kp, and not that of every joint; a floor that pushes or drags
the arm moves every joint by its torque over kp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor
from taufit.servo.rollout import replay
from taufit.servo.rollout_fit import (
    PER_JOINT,
    RolloutFit,
    normal_equations,
    unpack,
    used_rows,
)

_ROUNDS = 3
_LARGEST_STEP = 0.3  # largest change of an unknown by one round
_MIN_GAIN = 0.05  # smallest relative gain on left-out runs, as for the floor itself
_MIN_ROWS = 100  # contact rows that a run needs for the comparison


def with_contact_gains(
    axes: JointAxes,
    windows: Sequence[CommandedMotion],
    contact: Sequence[Bool[Array, " _"]],
    run: Int[Array, " u"],
    fit: RolloutFit,
    floor: Floor,
) -> RolloutFit:
    """Fit whose gains explain the contact rows, too, if left-out runs agree.

    The fit away from contact is the prior: kp and armature move together, all other unknowns are
    constant. Of simulated arms 6007, 6008 and 6012 (benchmarks/simulated_servos.py), on which this
    was chosen, the replay error falls from 2.6, 3.8 and 1.3 times that of the truth to 1.2 and
    less; on an SO-101 the runs left out do not agree, and nothing changes.

    Args:
        axes: Arm.
        windows: Motions of the second stage.
        contact: Rows of each in contact.
        run: Number of the run of each.
        fit: Fit of the rows away from contact.
        floor: Floor in the roll-outs.
    """
    touching = [k for k, rows in enumerate(contact) if rows.any()]
    if not touching:
        return fit
    motions = [windows[k] for k in touching]
    masks = [used_rows(windows[k], contact[k]) for k in touching]
    runs = run[touching]
    first = PER_JOINT * np.arange(axes.joints)
    free = np.concatenate([first, first + 3])
    precision = fit.precision[np.ix_(free, free)]
    x = fit.x.copy()
    normal, gradient = np.zeros((len(motions), len(x), len(x))), np.zeros((len(motions), len(x)))
    for _ in range(_ROUNDS):
        normal, gradient, _ = normal_equations(axes, x, motions, masks, floor)
        x[free] -= _step(normal, gradient, precision, free, x[free] - fit.x[free])
    ratios = []
    for number in np.unique(runs):
        left_out = runs == number
        rows = sum(int(masks[k].sum()) for k in np.flatnonzero(left_out))
        if rows < _MIN_ROWS or left_out.all():
            continue
        trial = x.copy()
        trial[free] -= _step(
            normal[~left_out], gradient[~left_out], precision, free, x[free] - fit.x[free]
        )
        squares = [
            sum(
                float(np.square((replay(axes, servo, m, floor) - m.position)[mask]).sum())
                for m, mask, is_out in zip(motions, masks, left_out, strict=True)
                if is_out
            )
            for servo in (unpack(trial, axes.joints), fit.servo)
        ]
        ratios.append(squares[0] / squares[1])
    if not ratios or np.median(ratios) > 1.0 - _MIN_GAIN:
        return fit
    return replace(fit, x=x, servo=unpack(x, axes.joints))


def _step(
    normal: Float[Array, "u p p"],
    gradient: Float[Array, "u p"],
    precision: Float[Array, "f f"],
    free: Int[Array, " f"],
    change: Float[Array, " f"],
) -> Float[Array, " f"]:
    """Newton step of the free unknowns."""
    hessian = normal.sum(axis=0)[np.ix_(free, free)] + precision
    slope = gradient.sum(axis=0)[free] + precision @ change
    return np.asarray(np.clip(np.linalg.solve(hessian, slope), -_LARGEST_STEP, _LARGEST_STEP))
