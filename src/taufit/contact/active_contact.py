"""A contact while it lasts: how far external torque is from its level before, and whether it ended.

The level before the contact is frozen and grows less sure by its wandering; the change is the mean
of the last moments against it. A contact has ended when the change is no larger than chance, for
joints that stand no larger than what friction holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from taufit.contact.change_test import TimeBin
from taufit.contact.settings import ContactSettings
from taufit.core.arrays import Array, Bool, Float

# Friction that a standing joint may keep after a push, in friction levels.
_KEPT = 0.8
# ... and a push that has ended is this much smaller than it was.
_FALLEN = 0.6
# Cells at the beginning that may be before it, and from how many on they are left out.
_ONSET, _ENOUGH = 2, 8
# Variance of a change in motion unlike that noise was learnt from, relative.
_UNLIKE = 1.3
# Cells in a row that must show nothing.
_QUIET_CELLS = 3


class ContactSample(NamedTuple):
    """One cell, and where the joints were."""

    position: Float[Array, " j"]
    cell: TimeBin

    @property
    def torque(self) -> Float[Array, " j"]:
        """External [N m]."""
        return self.cell.residual


class ActiveContact:
    """External torque since the start of a contact.

    Args:
        level, variance: Of external torque before it, per joint.
        past: The cells since it began.
        friction: Level of each joint's friction [N m].
        step: Between two cells [s].
        settings: Times.
    """

    def __init__(
        self,
        level: Float[Array, " j"],
        variance: Float[Array, " j"],
        past: Iterable[ContactSample],
        friction: Float[Array, " j"],
        step: float,
        settings: ContactSettings,
    ) -> None:
        self.level, self.variance = level, variance
        self._friction, self._step = friction, step
        self._most = max(round(settings.look_back / step), 3)
        self._end = max(round(settings.end / step), 3)
        self._recent: deque[ContactSample] = deque(maxlen=self._most)
        self._wandered = np.zeros_like(level)
        self._moved = np.zeros(len(level), bool)
        self._quiet = 0
        self._largest = 0.0
        self.cells = 0
        for moment in past:
            self._take(moment)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self.cells * self._step

    def _take(self, moment: ContactSample) -> None:
        self._recent.append(moment)
        self._wandered = self._wandered + moment.cell.walk
        self.cells += 1

    def add(
        self, moment: ContactSample, standing: Bool[Array, " j"], loose: Bool[Array, " j"]
    ) -> None:
        """The next cell.

        Args:
            moment: Of it.
            standing: Joints that stand.
            loose: Joints that have begun or ceased to stand, or creep: friction may do anything.
        """
        self._take(moment)
        self._moved = self._moved | loose
        change, covariance = self.over(self._end)
        variance = np.diag(covariance)
        held = np.where(standing, _KEPT * self._friction, 0.0)
        size = float(np.sum(change**2 / variance))
        self._largest = max(self._largest, size)
        joints = len(change)
        chance = joints + 3.0 * np.sqrt(2.0 * joints)
        # Where joints stand friction holds part of a push, but what is held is less than it was.
        within = float(np.sum(change**2 / (variance + held**2))) < chance
        fallen = size < max(chance, _FALLEN**2 * self._largest)
        self._quiet = self._quiet + 1 if within and fallen else 0

    @property
    def ended(self) -> bool:
        """Whether nothing is left of it."""
        return self._quiet >= _QUIET_CELLS

    def over(self, cells: int | None = None) -> tuple[Float[Array, " j"], Float[Array, "j j"]]:
        """Change of external torque over the last cells, and its covariance."""
        recent = list(self._recent)
        # When it began is known to a few cells.
        begun = len(recent) == self.cells and len(recent) >= _ENOUGH
        recent = recent[_ONSET if begun else 0 :][-(cells or self._most) :]
        n = len(recent)
        torque = np.mean([one.torque for one in recent], axis=0)
        white = np.mean([one.cell.white for one in recent], axis=0)
        # A level that wanders is off by a third of its growth on average over the time itself.
        share = max(1.0 - 2.0 * n / (3.0 * max(self.cells, 1)), 1.0 / 3.0)
        alone = white * (1.0 - 0.5 / n) / n + self.variance + share * self._wandered
        alone = _UNLIKE * alone + np.where(self._moved, self._friction**2, 0.0)
        # Velocity noise is that of the two ends.
        first, last = recent[0].cell.velocity, recent[-1].cell.velocity
        shaken = (first @ first.T + last @ last.T) / n**2
        return torque - self.level, _UNLIKE * shaken + np.diag(alone)

    @property
    def position(self) -> Float[Array, " j"]:
        """Of the joints, averaged over the time that `over` looks back."""
        return np.mean([one.position for one in self._recent], axis=0)

    @property
    def now(self) -> Float[Array, " j"]:
        """External torque of the last moments [N m]."""
        return np.mean([one.torque for one in list(self._recent)[-self._end :]], axis=0)

    @property
    def walked(self) -> Float[Array, " j"]:
        """By how much the variance of the level has grown [(N m)^2]."""
        return self._wandered
