"""Gains from the deflection of the joints in contact with the floor.

Away from contact gravity alone shows kp, and not that of every joint; a floor that pushes or drags
the arm moves every joint by its torque over kp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor
from taufit.servo.rollout import replay
from taufit.servo.rollout_fit import (
    PER_JOINT,
    RolloutFit,
    descend,
    normal_equations,
    replay_cost,
    unpack,
    used_rows,
)

_STEPS = 3  # largest number of steps of the gains at one height
_LARGEST_STEP = 0.3  # largest change of an unknown by one step
_HEIGHT_STEPS = (0.002, 0.0005)  # steps of the floor's height [m]
_MIN_GAIN = 0.05  # smallest relative gain on left-out runs, as for the floor itself
_MIN_ROWS = 100  # contact rows that a run needs for the comparison


@dataclass(frozen=True, slots=True, eq=False)
class ContactMotions:
    """Motions with rows in contact, and the fit of the other rows.

    Attributes:
        axes: Arm.
        motions: Motions.
        masks: Rows of each in contact.
        run: Number of the run of each.
        fit: Fit of the rows away from contact: the prior of the gains.
        floor: Floor of that fit.
    """

    axes: JointAxes
    motions: tuple[CommandedMotion, ...]
    masks: tuple[Bool[Array, " _"], ...]
    run: Int[Array, " u"]
    fit: RolloutFit
    floor: Floor

    @property
    def count(self) -> int:
        """Number of rows in contact."""
        return sum(int(mask.sum()) for mask in self.masks)

    def part(self, used: Bool[Array, " u"]) -> ContactMotions:
        """Some of the motions."""
        motions, masks = tuple(compress(self.motions, used)), tuple(compress(self.masks, used))
        return replace(self, motions=motions, masks=masks, run=self.run[used])

    def square_error(self, x: Float[Array, " p"], floor: Floor) -> float:
        """Sum of the squared replay errors [rad^2]."""
        servo = unpack(x, self.axes.joints)
        return sum(
            float(np.square((replay(self.axes, servo, m, floor) - m.position)[mask]).sum())
            for m, mask in zip(self.motions, self.masks, strict=True)
        )

    def gains_at(self, floor: Floor, x: Float[Array, " p"]) -> tuple[Float[Array, " p"], float]:
        """Unknowns with the gains and armatures of least cost over one floor, and the cost."""
        first = PER_JOINT * np.arange(self.axes.joints)
        free = np.concatenate([first, first + 3])
        inner = np.ix_(free, free)
        precision, mean = self.fit.precision[inner], self.fit.x[free]

        def unknowns(values: Float[Array, " f"]) -> Float[Array, " p"]:
            out = x.copy()
            out[free] = values
            return out

        def equations(values: Float[Array, " f"]) -> tuple[Array, Array]:
            normal, gradient = normal_equations(
                self.axes, unknowns(values), self.motions, self.masks, floor
            )
            slope = gradient.sum(axis=0)[free] + precision @ (values - mean)
            return normal.sum(axis=0)[inner] + precision, slope

        def cost_of(values: Float[Array, " f"]) -> float:
            servo = unpack(unknowns(values), self.axes.joints)
            cost = replay_cost(self.axes, servo, self.motions, self.masks, floor)
            return cost + float(0.5 * (values - mean) @ precision @ (values - mean))

        values, cost, _ = descend(x[free], equations, cost_of, _LARGEST_STEP, _STEPS)
        return unknowns(values), cost

    def gains_and_floor(
        self, x: Float[Array, " p"], floor: Floor, is_fixed: bool
    ) -> tuple[Float[Array, " p"], Floor]:
        """Gains and floor of least cost, by steps of the height while these lower it."""
        x, least = self.gains_at(floor, x)
        for step in () if is_fixed else _HEIGHT_STEPS:
            for direction in (-step, step):
                is_better = True
                while is_better:
                    trial = replace(floor, height=floor.height + direction)
                    trial_x, cost = self.gains_at(trial, x)
                    is_better = cost < least
                    if is_better:
                        x, floor, least = trial_x, trial, cost
        return x, floor


def with_contact_gains(
    axes: JointAxes,
    windows: Sequence[CommandedMotion],
    contact: Sequence[Bool[Array, " _"]],
    run: Int[Array, " u"],
    fit: RolloutFit,
    floor: Floor,
    *,
    is_fixed: bool = False,
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
        axes: Arm.
        windows: Motions of the second stage.
        contact: Rows of each in contact.
        run: Number of the run of each.
        fit: Fit of the rows away from contact.
        floor: Floor in the roll-outs.
        is_fixed: Whether the height of the floor is given.
    """
    touching = np.array([rows.any() for rows in contact])
    if not touching.any():
        return fit, floor
    masks = tuple(used_rows(m, rows) for m, rows in zip(windows, contact, strict=True))
    rows = ContactMotions(axes, tuple(windows), masks, run, fit, floor).part(touching)
    x, plane = rows.gains_and_floor(fit.x, floor, is_fixed)
    ratios = []
    for number in np.unique(rows.run):
        left_out = rows.part(rows.run == number)
        others = rows.part(rows.run != number)
        if _MIN_ROWS <= left_out.count <= others.count:
            error = left_out.square_error(others.gains_at(plane, x)[0], plane)
            ratios.append(error / left_out.square_error(fit.x, floor))
    if not ratios or np.median(ratios) > 1.0 - _MIN_GAIN:
        return fit, floor
    return replace(fit, x=x, servo=unpack(x, axes.joints)), plane
