"""An arm that stands, and torque that changes: a push, a start, or friction that creeps.

Motors push before an arm starts. An arm that is pushed gives way: the outside does work on it. One
that starts goes where its motors push, which looks like an outside that takes work. Where neither
shows within a moment it is called a push. That moment begins with the first sign of a change, a
share of the evidence that an alarm needs: hands push slowly. A motion that begins so gently that
its motors push for longer before anything moves needs the commanded velocity to be told from one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from taufit.contact.active_contact import ContactSample
from taufit.contact.change_test import TorqueStep
from taufit.contact.settings import ContactSettings
from taufit.core.arrays import Array, Float

# A change that is still small this long after its first sign, or after its evidence was enough, is
# friction that creeps [s].
_CREEP_S, _CREEP_AFTER_THRESHOLD_S = 0.15, 0.1
# A standing joint that is this far from where it stood has given way [rad or m].
_YIELD = 1e-4
# Averaged over this many cells; noise beyond this many standard deviations of that is none.
_MEAN_BINS, _NOISE_LIMIT = 3, 2.0


class PendingChange(NamedTuple):
    """A change without a verdict.

    Attributes:
        first_sign: When it showed first [s].
        threshold_time: When its evidence was enough for an alarm, inf before [s].
        level: Of external torque before it showed [N m]; that of a slow push follows it.
        step: The best one.
        bins: Since it was seen best.
    """

    first_sign: float
    threshold_time: float
    level: Float[Array, " j"]
    step: TorqueStep
    bins: int


class StandstillDecision(NamedTuple):
    """What has become of a change.

    Attributes:
        push: The step to be told and cells since its evidence was enough, or None.
        is_start: The arm starts.
        creep_level: Friction creeps, and this is the new level [N m].
    """

    push: tuple[TorqueStep, int] | None = None
    is_start: bool = False
    creep_level: Array | None = None


_NO_DECISION = StandstillDecision()


class StandstillTest:
    """Judges changes of external torque while the arm stands.

    Args:
        friction: Level of each joint's friction [N m].
        settings: Times and sizes.
    """

    def __init__(self, friction: Float[Array, " j"], settings: ContactSettings) -> None:
        self._friction, self._settings = friction, settings
        self._pending: PendingChange | None = None

    def clear(self) -> None:
        """Nothing waits for a verdict."""
        self._pending = None

    def decide(
        self, past: Sequence[ContactSample], step: TorqueStep | None, threshold: float, time: float
    ) -> StandstillDecision:
        """After the next cell.

        Args:
            past: The last cells, this one included.
            step: A change that may be one, or None.
            threshold: Evidence that an alarm needs.
            time: Now [s].
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
        # In friction levels, less what noise may be.
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
    """Standard deviation of the mean of consecutive cells [N m]."""
    n, newest = len(samples), samples[-1].time_bin
    velocity_variance = 2.0 * np.sum(newest.velocity**2, axis=1) / n**2
    return np.sqrt(newest.white * (1.0 - 0.5 / n) / n + velocity_variance)
