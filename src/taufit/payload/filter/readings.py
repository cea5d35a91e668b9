"""Masses read while a payload becomes known: a contact at that time is read as one.

A force that begins before the first reading is worth anything is taken for payload, and its end
looks like a drop. Contacts last less than a second. So where a reading was worth something for less
than that when it changed, and what is carried now is what was read a second earlier, the change was
the end of a contact.
"""

from __future__ import annotations

from collections import deque

import numpy as np

# Contacts are over after this long [s].
_CONTACT_S = 1.0
# Masses are the same within this many standard deviations.
_SAME = 2.0


class Readings:
    """The masses of the last second, and the one before it."""

    __slots__ = ("_past",)

    def __init__(self) -> None:
        self._past: deque[tuple[float, float, float]] = deque()

    def add(self, time: float, mass: float, std: float) -> None:
        """A mass that is not worth anything yet, or is so since now.

        Args:
            time: [s].
            mass, std: As read [kg].
        """
        self._past.append((time, mass, std))
        while len(self._past) > 1 and self._past[1][0] <= time - _CONTACT_S:
            self._past.popleft()

    def ended_contact(self, time: float, mass: float, std: float) -> bool:
        """Whether a change was the end of a contact.

        Args:
            time: When it was noticed [s].
            mass, std: What is carried since then [kg].
        """
        if not self._past:
            return False
        # The last reading is that with which the payload became known.
        earlier, before, spread = self._past[0]
        known = self._past[-1][0]
        if time - known > _CONTACT_S or earlier > known - _CONTACT_S:
            return False
        return abs(mass - before) < _SAME * float(np.hypot(std, spread))
