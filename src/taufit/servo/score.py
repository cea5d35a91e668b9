"""Replay errors per run and joint, for all rows and for rows away from contact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.servo.joint_axes import JointAxes
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay

CONTACT_MARGIN = 0.02  # rows below the floor height plus this count as contact [m]
CONTACT_TAIL_S = 1.0  # rows within this time after a contact count as contact [s]


def contact_rows(
    axes: JointAxes, motion: CommandedMotion, floor: Floor | None
) -> Bool[Array, " n"]:
    """Rows at which the measured or the commanded contact point is near the floor, or was so."""
    rows = len(motion.position)
    if floor is None:
        return np.zeros(rows, bool)
    limit = floor.height + CONTACT_MARGIN
    low = (axes.heights(motion.position) < limit) | (axes.heights(motion.command) < limit)
    tail = round(CONTACT_TAIL_S / motion.step)
    return np.convolve(low, np.ones(tail + 1))[:rows] > 0


@dataclass(frozen=True, slots=True, eq=False)
class ReplayScore:
    """Error of an open-loop replay of one run.

    Attributes:
        name: Name of the run.
        rms: Root mean square error per joint [rad].
        free_rms: The same over rows away from contact; nan without such rows.
        contact_fraction: Fraction of rows in contact [-].
    """

    name: str
    rms: Float[Array, " j"]
    free_rms: Float[Array, " j"]
    contact_fraction: float

    @property
    def mean_rms(self) -> float:
        """Mean of `rms` over the joints [rad]."""
        return float(self.rms.mean())


def score_positions(
    motion: CommandedMotion, position: Float[Array, "n j"], contact: Bool[Array, " n"]
) -> ReplayScore:
    """Score of simulated (or commanded) positions against the measured ones."""
    square = (position - motion.position) ** 2
    free = square[~contact]
    free_rms = np.sqrt(free.mean(axis=0)) if len(free) > 50 else np.full(square.shape[1], np.nan)
    return ReplayScore(motion.name, np.sqrt(square.mean(axis=0)), free_rms, float(np.mean(contact)))


def score_replays(
    axes: JointAxes,
    servo: ServoParameters,
    motions: Sequence[CommandedMotion],
    floor: Floor | None = None,
    contact: Floor | None = None,
) -> list[ReplayScore]:
    """Score of every motion; `contact` is the floor that defines rows in contact."""
    return [
        score_positions(m, replay(axes, servo, m, floor), contact_rows(axes, m, contact or floor))
        for m in motions
    ]


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """Replay error over several runs.

    Attributes:
        mean: Root mean square over runs, mean over joints [rad].
        median: Median run [rad].
        free_mean: As `mean`, over rows away from contact [rad]; nan without such rows.
        joints: Root mean square over runs, joint by joint [rad].
    """

    mean: float
    median: float
    free_mean: float
    joints: tuple[float, ...]


def replay_summary(scores: Sequence[ReplayScore]) -> ReplaySummary:
    """Summary of the scores of several runs."""
    rms = np.array([s.rms for s in scores])
    free = np.array([s.free_rms for s in scores if np.isfinite(s.free_rms).all()])
    joints = np.sqrt((rms**2).mean(axis=0))
    free_mean = float(np.sqrt((free**2).mean(axis=0)).mean()) if len(free) else float("nan")
    return ReplaySummary(
        float(joints.mean()), float(np.median(rms.mean(axis=1))), free_mean, tuple(joints.tolist())
    )
