"""Test of torque changes at standstill: contact, start of motion, or creeping friction.

Motor torque rises before a robot starts. A pushed robot yields: external torque does positive work.
A starting robot moves in the direction of its motor torque: apparent external work is negative. If
neither shows within a short time, the change is a contact. That time begins with the first sign of
a change, a fraction of the threshold, since hands push slowly. A start so slow that motor torque
rises for longer before motion can be distinguished only with the commanded velocity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taufit.contact.active_contact import ContactSample
from taufit.contact.change_test import TorqueStep
from taufit.contact.settings import ContactSettings
from taufit.core.arrays import Array, Float

# Time after the first sign, or after the threshold, at which a change that is still small is
# creeping friction [s].
_CREEP_S, _CREEP_AFTER_THRESHOLD_S = 0.15, 0.1
# Displacement of a standing joint that counts as yielding [rad or m].
_YIELD = 1e-4
# Number of bins averaged, and noise limit of their mean in standard deviations.
_MEAN_BINS, _NOISE_LIMIT = 3, 2.0


class PendingChange(NamedTuple):
    """A change without a decision.

    Attributes:
        since: Time of its first sign [s].
        sure: Time when its evidence reached the threshold [s], inf before.
        level: External torque before the first sign [N m]; later levels follow a slow push.
        step: Torque step with the largest evidence.
        cells: Time bins since then.
    """

    first_sign: float
    threshold_time: float
    level: Float[Array, " j"]
    step: TorqueStep
    bins: int


class StandstillDecision(NamedTuple):
    """Decision about a torque change at standstill.

    Attributes:
        push: Contact: its torque step and the bins since its largest evidence, or None.
        starts: Whether the robot starts to move.
        creeps: New torque level if friction creeps [N m], or None.
    """

    push: tuple[TorqueStep, int] | None = None
    is_start: bool = False
    creep_level: Array | None = None


_NO_DECISION = StandstillDecision()


class StandstillTest:
    """Decides about changes of external torque at standstill.

    Args:
        friction: Friction level of each joint [N m].
        settings: Settings of contact detection.
    """

    def __init__(self, friction: Float[Array, " j"], settings: ContactSettings) -> None:
        self._friction, self._settings = friction, settings
        self._pending: PendingChange | None = None

    def clear(self) -> None:
        """Drop the pending change."""
        self._pending = None

    def decide(
        self, past: Sequence[ContactSample], step: TorqueStep | None, threshold: float, time: float
    ) -> StandstillDecision:
        """Decide after the next time bin.

        Args:
            past: Last samples, the newest included.
            step: Possible torque step, or None.
            threshold: Detection threshold.
            time: Present time [s].
        """
        if self._pending is None:
            if step is None:
                return _NO_DECISION
            self._pending = PendingChange(time, np.inf, step.level, step, 0)
        first_sign, threshold_time, level, best, bins_since = self._pending
        if step is not None and step.evidence > best.evidence:
            best, bins_since = step, 0
        else:
            bins_since += 1
        threshold_time = min(threshold_time, time) if best.evidence > threshold else np.inf
        self._pending = PendingChange(first_sign, threshold_time, level, best, bins_since)
        past = list(past)
        recent = past[-_MEAN_BINS:]
        mean = np.mean([sample.torque for sample in recent], axis=0)
        age = min(best.age + bins_since, len(past))
        displacement = past[-1].position - past[-age].position
        change = mean - level
        # In friction levels, above the noise.
        excess = (
            np.maximum(np.abs(change) - _NOISE_LIMIT * _mean_noise(recent), 0.0) / self._friction
        )
        size = float(excess.max())
        work = float(np.sum(np.where(np.abs(displacement) > _YIELD, displacement * change, 0.0)))
        if size < self._settings.min_standstill_change:
            if time - first_sign > _CREEP_S or time - threshold_time > _CREEP_AFTER_THRESHOLD_S:
                self._pending = None
                return StandstillDecision(creep_level=mean)
            if step is None:
                self._pending = None
            return _NO_DECISION
        if time < threshold_time:
            if step is None:
                self._pending = None
            return _NO_DECISION
        if work > 0.0 or size > self._settings.max_start_change:
            self._pending = None
            return StandstillDecision((best, bins_since))
        if time - first_sign < self._settings.standstill_wait:
            return _NO_DECISION
        self._pending = None
        return (
            StandstillDecision((best, bins_since))
            if work == 0.0
            else StandstillDecision(is_start=True)
        )


def _mean_noise(samples: Sequence[ContactSample]) -> Float[Array, " j"]:
    """Standard deviation of the mean torque of consecutive bins [N m]."""
    n, newest = len(samples), samples[-1].time_bin
    velocity_variance = 2.0 * np.sum(newest.velocity**2, axis=1) / n**2
    return np.sqrt(newest.white * (1.0 - 0.5 / n) / n + velocity_variance)
