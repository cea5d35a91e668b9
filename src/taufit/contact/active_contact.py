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
_STICTION_FRACTION = 0.8
# ... and a push that has ended is this much smaller than it was.
_END_FRACTION = 0.6
# Cells at the beginning that may be before it, and from how many on they are left out.
_ONSET_BINS, _MIN_BINS = 2, 8
# Variance of a change in motion unlike that noise was learnt from, relative.
_VARIANCE_FACTOR = 1.3
# Cells in a row that must show nothing.
_END_BINS = 3


class ContactSample(NamedTuple):
    """One cell, and where the joints were."""

    position: Float[Array, " j"]
    time_bin: TimeBin

    @property
    def torque(self) -> Float[Array, " j"]:
        """External [N m]."""
        return self.time_bin.residual


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
        self._averaging_bins = max(round(settings.averaging_time / step), 3)
        self._end_bins = max(round(settings.end_window / step), 3)
        self._recent: deque[ContactSample] = deque(maxlen=self._averaging_bins)
        self._level_growth = np.zeros_like(level)
        self._regime_changed = np.zeros(len(level), bool)
        self._end_count = 0
        self._max_chi_square = 0.0
        self.bins = 0
        for sample in past:
            self._append(sample)

    @property
    def duration_s(self) -> float:
        """Since it began."""
        return self.bins * self._step

    def _append(self, sample: ContactSample) -> None:
        self._recent.append(sample)
        self._level_growth = self._level_growth + sample.time_bin.level_growth
        self.bins += 1

    def add(
        self, sample: ContactSample, standing: Bool[Array, " j"], unreliable: Bool[Array, " j"]
    ) -> None:
        """The next cell.

        Args:
            sample: Of it.
            standing: Joints that stand.
            unreliable: Joints that have begun or ceased to stand, or creep: friction may do
                anything.
        """
        self._append(sample)
        self._regime_changed = self._regime_changed | unreliable
        change, covariance = self.change(self._end_bins)
        variance = np.diag(covariance)
        stiction = np.where(standing, _STICTION_FRACTION * self._friction, 0.0)
        chi_square = float(np.sum(change**2 / variance))
        self._max_chi_square = max(self._max_chi_square, chi_square)
        joints = len(change)
        chance_limit = joints + 3.0 * np.sqrt(2.0 * joints)
        # Where joints stand friction holds part of a push, but what is held is less than it was.
        is_within_noise = float(np.sum(change**2 / (variance + stiction**2))) < chance_limit
        has_dropped = chi_square < max(chance_limit, _END_FRACTION**2 * self._max_chi_square)
        self._end_count = self._end_count + 1 if is_within_noise and has_dropped else 0

    @property
    def is_ended(self) -> bool:
        """Whether nothing is left of it."""
        return self._end_count >= _END_BINS

    def change(self, bins: int | None = None) -> tuple[Float[Array, " j"], Float[Array, "j j"]]:
        """Change of external torque over the last cells, and its covariance."""
        recent = list(self._recent)
        # When it began is known to a few cells.
        includes_onset = len(recent) == self.bins and len(recent) >= _MIN_BINS
        recent = recent[_ONSET_BINS if includes_onset else 0 :][-(bins or self._averaging_bins) :]
        n = len(recent)
        torque = np.mean([sample.torque for sample in recent], axis=0)
        white = np.mean([sample.time_bin.white for sample in recent], axis=0)
        # A level that wanders is off by a third of its growth on average over the time itself.
        growth_fraction = max(1.0 - 2.0 * n / (3.0 * max(self.bins, 1)), 1.0 / 3.0)
        joint_variance = (
            white * (1.0 - 0.5 / n) / n + self.variance + growth_fraction * self._level_growth
        )
        joint_variance = _VARIANCE_FACTOR * joint_variance + np.where(
            self._regime_changed, self._friction**2, 0.0
        )
        # Velocity noise is that of the two ends.
        first, last = recent[0].time_bin.velocity, recent[-1].time_bin.velocity
        velocity_covariance = (first @ first.T + last @ last.T) / n**2
        return torque - self.level, _VARIANCE_FACTOR * velocity_covariance + np.diag(joint_variance)

    @property
    def position(self) -> Float[Array, " j"]:
        """Of the joints, averaged over the time that `change` looks back."""
        return np.mean([sample.position for sample in self._recent], axis=0)

    @property
    def recent_torque(self) -> Float[Array, " j"]:
        """External torque of the last moments [N m]."""
        return np.mean([sample.torque for sample in list(self._recent)[-self._end_bins :]], axis=0)

    @property
    def level_growth(self) -> Float[Array, " j"]:
        """By how much the variance of the level has grown [(N m)^2]."""
        return self._level_growth
