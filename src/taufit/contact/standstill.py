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
_CREEPS_S, _CREEPS_SURE_S = 0.15, 0.1
# A standing joint that is this far from where it stood has given way [rad or m].
_GIVEN_WAY = 1e-4
# Averaged over this many cells; noise beyond this many standard deviations of that is none.
_CELLS, _NOISE = 3, 2.0


class PendingChange(NamedTuple):
    """A change without a verdict.

    Attributes:
        since: When it showed first [s].
        sure: When its evidence was enough for an alarm, inf before [s].
        level: Of external torque before it showed [N m]; that of a slow push follows it.
        step: The best one.
        cells: Since it was seen best.
    """

    since: float
    sure: float
    level: Float[Array, " j"]
    step: TorqueStep
    cells: int


class StandstillDecision(NamedTuple):
    """What has become of a change.

    Attributes:
        push: The step to be told and cells since its evidence was enough, or None.
        starts: The arm starts.
        creeps: Friction creeps, and this is the new level [N m].
    """

    push: tuple[TorqueStep, int] | None = None
    starts: bool = False
    creeps: Array | None = None


_NOTHING = StandstillDecision()


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

    def judge(
        self, past: Sequence[ContactSample], step: TorqueStep | None, enough: float, time: float
    ) -> StandstillDecision:
        """After the next cell.

        Args:
            past: The last cells, this one included.
            step: A change that may be one, or None.
            enough: Evidence that an alarm needs.
            time: Now [s].
        """
        if self._pending is None:
            if step is None:
                return _NOTHING
            self._pending = PendingChange(time, np.inf, step.level, step, 0)
        since, sure, level, best, cells = self._pending
        if step is not None and step.evidence > best.evidence:
            best, cells = step, 0
        else:
            cells += 1
        sure = min(sure, time) if best.evidence > enough else np.inf
        self._pending = PendingChange(since, sure, level, best, cells)
        past = list(past)
        last = past[-_CELLS:]
        mean = np.mean([one.torque for one in last], axis=0)
        age = min(best.age + cells, len(past))
        way = past[-1].position - past[-age].position
        change = mean - level
        # In friction levels, less what noise may be.
        beyond = np.maximum(np.abs(change) - _NOISE * _noise_of(last), 0.0) / self._friction
        size = float(beyond.max())
        work = float(np.sum(np.where(np.abs(way) > _GIVEN_WAY, way * change, 0.0)))
        if size < self._settings.least:
            if time - since > _CREEPS_S or time - sure > _CREEPS_SURE_S:
                self._pending = None
                return StandstillDecision(creeps=mean)
            if step is None:
                self._pending = None
            return _NOTHING
        if time < sure:
            if step is None:
                self._pending = None
            return _NOTHING
        if work > 0.0 or size > self._settings.band:
            self._pending = None
            return StandstillDecision((best, cells))
        if time - since < self._settings.wait:
            return _NOTHING
        self._pending = None
        return StandstillDecision((best, cells)) if work == 0.0 else StandstillDecision(starts=True)


def _noise_of(cells: Sequence[ContactSample]) -> Float[Array, " j"]:
    """Standard deviation of the mean of consecutive cells [N m]."""
    n, newest = len(cells), cells[-1].cell
    shaken = 2.0 * np.sum(newest.velocity**2, axis=1) / n**2
    return np.sqrt(newest.white * (1.0 - 0.5 / n) / n + shaken)
