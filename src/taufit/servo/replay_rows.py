"""Rows of replayed motions whose errors count, their cost and its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor
from taufit.servo.rollout import replay, replay_slopes
from taufit.servo.unknowns import kernel_chain, unpack

# Chosen on seven training runs of one SO-101 by leaving runs out.
ERROR_STD = 4e-3  # scale of the replay error [rad]
HUBER = 3.0
INDEPENDENT_S = 1.0  # time between independent rows [s]
ROW_S = 0.05  # time between rows that are used [s]
WARM_UP_S = 0.5  # rows after the start at rest that are not used [s]
_WINDOW_S = 15.0  # length of the motions of the second stage, which are also its blocks [s]
_TOTAL_S = 300.0  # motion used by the second stage [s]


@dataclass(frozen=True, slots=True, eq=False)
class ReplayRows:
    """Motions that are replayed from their first measured pose, and the rows that count.

    Attributes:
        axes: Arm with nominal links.
        motions: Motions.
        masks: Rows of each that count.
        run: Number of the run of each.
    """

    axes: JointAxes
    motions: tuple[CommandedMotion, ...]
    masks: tuple[Bool[Array, " _"], ...]
    run: Int[Array, " u"]

    @classmethod
    def of_motions(
        cls,
        axes: JointAxes,
        motions: Sequence[CommandedMotion],
        valid: Sequence[Bool[Array, " _"]],
        run: Int[Array, " u"] | None = None,
    ) -> ReplayRows:
        """Valid rows after the warm-up, one every `ROW_S`; every motion a run without `run`."""
        masks = []
        for motion, mask in zip(motions, valid, strict=True):
            rows = np.arange(len(mask))
            is_used = (rows >= round(WARM_UP_S / motion.step)) & (rows % _stride(motion) == 0)
            masks.append(np.asarray(mask & is_used))
        number = np.arange(len(masks)) if run is None else run
        return cls(axes, tuple(motions), tuple(masks), number)

    @classmethod
    def of_runs(
        cls,
        axes: JointAxes,
        runs: Sequence[CommandedMotion],
        valid: Sequence[Bool[Array, " _"]],
    ) -> ReplayRows:
        """Windows of runs, at most `_TOTAL_S` of motion."""
        share = min(1.0, _TOTAL_S / sum(m.seconds for m in runs))
        windows, masks, run = [], [], []
        for number, (motion, mask) in enumerate(zip(runs, valid, strict=True)):
            length = min(round(_WINDOW_S / motion.step), len(mask))
            count = max(1, round(share * motion.seconds / _WINDOW_S))
            for start in np.linspace(0, len(mask) - length, count).astype(int).tolist():
                windows.append(motion.part(start, start + length))
                masks.append(mask[start : start + length])
                run.append(number)
        return cls.of_motions(axes, windows, masks, np.array(run))

    @property
    def count(self) -> int:
        """Number of rows that count."""
        return sum(int(mask.sum()) for mask in self.masks)

    def part(self, used: Bool[Array, " u"]) -> ReplayRows:
        """Some of the motions."""
        motions, masks = tuple(compress(self.motions, used)), tuple(compress(self.masks, used))
        return replace(self, motions=motions, masks=masks, run=self.run[used])

    def errors(self, x: Float[Array, " p"], floor: Floor | None) -> list[Float[Array, "_ j"]]:
        """Replayed less measured positions of every motion [rad]."""
        servo = unpack(x)
        return [
            (replay(self.axes, servo, motion, floor) - motion.position)[mask]
            for motion, mask in zip(self.motions, self.masks, strict=True)
        ]

    def square_error(self, x: Float[Array, " p"], floor: Floor | None) -> float:
        """Sum of the squared replay errors [rad^2]."""
        return sum(float(np.square(error).sum()) for error in self.errors(x, floor))

    def cost(self, x: Float[Array, " p"], floor: Floor | None) -> float:
        """Robust cost of the replay errors."""
        total = 0.0
        for motion, error in zip(self.motions, self.errors(x, floor), strict=True):
            size = np.abs(error) / ERROR_STD
            huber = np.where(size < HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
            total += _row_weight(motion) * float(huber.sum())
        return total

    def normal_equations(
        self,
        x: Float[Array, " p"],
        floor: Floor | None,
        slope_of: Callable[[CommandedMotion, Array], Array] | None = None,
    ) -> tuple[Float[Array, "u k k"], Float[Array, "u k"]]:
        """J'WJ and J'Wr of every motion.

        Args:
            x: Unknowns.
            floor: Floor in the roll-outs.
            slope_of: Slope of the positions of a motion by one further unknown, which comes last.
        """
        servo = unpack(x)
        chain = kernel_chain(servo, len(x))
        normal, gradient = [], []
        for motion, mask in zip(self.motions, self.masks, strict=True):
            position, slopes = replay_slopes(self.axes, servo, motion, floor)
            residual = ((position - motion.position)[mask] / ERROR_STD).ravel()
            columns = slopes[mask].reshape(len(residual), len(chain)) @ chain / ERROR_STD
            if slope_of is not None:
                further = slope_of(motion, position)[mask].ravel() / ERROR_STD
                columns = np.column_stack([columns, further])
            robust = np.minimum(1.0, HUBER / np.maximum(np.abs(residual), 1e-12))
            weight = _row_weight(motion) * robust
            normal.append((columns * weight[:, None]).T @ columns)
            gradient.append(columns.T @ (weight * residual))
        return np.array(normal), np.array(gradient)


def _stride(motion: CommandedMotion) -> int:
    return max(1, round(ROW_S / motion.step))


def _row_weight(motion: CommandedMotion) -> float:
    """Weight of a row: the fraction of it that is independent of the others."""
    return min(_stride(motion) * motion.step / INDEPENDENT_S, 1.0)
