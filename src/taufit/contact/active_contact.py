"""Active contact: change of external torque from its level before, and detection of the end.

The level before the contact is frozen and its variance grows by the random walk; the change is the
mean of the last bins minus that level. A contact has ended when the change is within noise, for
standing joints within the stiction band.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from taufit.contact.change_test import TimeBin
from taufit.contact.settings import ContactSettings
from taufit.core.arrays import Array, Bool, Float

# Torque that friction of a standing joint may hold after a push, in friction levels.
_STICTION_FRACTION = 0.8
# Upper limit of the remaining change after the end, relative to its largest value.
_END_FRACTION = 0.6
# Bins at the beginning that may precede the contact; from this number of bins on they are left out.
_ONSET_BINS, _MIN_BINS = 2, 8
# Variance factor for motion unlike the data of the noise model.
_VARIANCE_FACTOR = 1.3
# Consecutive bins without change that end a contact.
_END_BINS = 3


class ContactSample(NamedTuple):
    """Time bin with joint positions."""

    position: Float[Array, " j"]
    time_bin: TimeBin

    @property
    def torque(self) -> Float[Array, " j"]:
        """External torque [N m]."""
        return self.time_bin.residual


class ActiveContact:
    """External torque since the start of a contact.

    Args:
        level, variance: Level of external torque before it and its variance, per joint.
        past: Samples since it began.
        friction: Friction level of each joint [N m].
        step: Time between two bins [s].
        settings: Settings of contact detection.
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
        """Duration so far [s]."""
        return self.bins * self._step

    def _append(self, sample: ContactSample) -> None:
        self._recent.append(sample)
        self._level_growth = self._level_growth + sample.time_bin.level_growth
        self.bins += 1

    def add(
        self, sample: ContactSample, standing: Bool[Array, " j"], unreliable: Bool[Array, " j"]
    ) -> None:
        """Add the next sample.

        Args:
            sample: Time bin with joint positions.
            standing: Joints that stand.
            unreliable: Joints that have begun or ceased to stand, or creep: friction is unknown.
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
        # Friction of standing joints holds part of a push, but less than the push itself.
        is_within_noise = float(np.sum(change**2 / (variance + stiction**2))) < chance_limit
        has_dropped = chi_square < max(chance_limit, _END_FRACTION**2 * self._max_chi_square)
        self._end_count = self._end_count + 1 if is_within_noise and has_dropped else 0

    @property
    def is_ended(self) -> bool:
        """Whether the contact has ended."""
        return self._end_count >= _END_BINS

    def change(self, bins: int | None = None) -> tuple[Float[Array, " j"], Float[Array, "j j"]]:
        """Change of external torque over the last bins, and its covariance."""
        recent = list(self._recent)
        # The start is known to within a few bins.
        includes_onset = len(recent) == self.bins and len(recent) >= _MIN_BINS
        recent = recent[_ONSET_BINS if includes_onset else 0 :][-(bins or self._averaging_bins) :]
        n = len(recent)
        torque = np.mean([sample.torque for sample in recent], axis=0)
        white = np.mean([sample.time_bin.white for sample in recent], axis=0)
        # On average over its own time, a random walk has a third of its growth.
        growth_fraction = max(1.0 - 2.0 * n / (3.0 * max(self.bins, 1)), 1.0 / 3.0)
        joint_variance = (
            white * (1.0 - 0.5 / n) / n + self.variance + growth_fraction * self._level_growth
        )
        joint_variance = _VARIANCE_FACTOR * joint_variance + np.where(
            self._regime_changed, self._friction**2, 0.0
        )
        # Velocity noise comes from the two ends only.
        first, last = recent[0].time_bin.velocity, recent[-1].time_bin.velocity
        velocity_covariance = (first @ first.T + last @ last.T) / n**2
        return torque - self.level, _VARIANCE_FACTOR * velocity_covariance + np.diag(joint_variance)

    @property
    def position(self) -> Float[Array, " j"]:
        """Joint positions, averaged over the bins of `change`."""
        return np.mean([sample.position for sample in self._recent], axis=0)

    @property
    def recent_torque(self) -> Float[Array, " j"]:
        """Mean external torque of the last bins [N m]."""
        return np.mean([sample.torque for sample in list(self._recent)[-self._end_bins :]], axis=0)

    @property
    def level_growth(self) -> Float[Array, " j"]:
        """Growth of the variance of the level [(N m)^2]."""
        return self._level_growth
