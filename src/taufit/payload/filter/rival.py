"""Contact as the rival of a pick: a force that ends within a second was no payload.

In its first moments a downward push and a picked mass are the same torque. So a change is "pick or
contact" at first, what was known before it is kept aside, and rows go on being held against that:
when they fit it again the change was a contact, what was known comes back and the rows in between
do not count; when they still do not after a second it was a pick or a drop.
"""

from __future__ import annotations

from typing import Any

from taufit.payload.filter.change import Belief, Change, ChangeDetector, Chunk

# A change that lasts this long is none of a contact [s].
DECIDED_S = 1.0
# Rows that are held against what was known before [s].
_WINDOW_S = 0.1
# Looks in a row that must find no change.
_LOOKS = 2
# Nothing is decided before the low-pass has seen the change [s].
_EARLIEST_S = 0.1


class Rival:
    """A change that may be a contact.

    Attributes:
        time: When it was noticed [s].
        event: Its place among the events.
        mass: By how much the mass has changed, if it is a pick [kg].
        kept: What was known before.
    """

    __slots__ = ("_belief", "_detector", "_light", "_quiet", "event", "kept", "mass", "time")

    def __init__(
        self, time: float, event: int, found: Change, belief: Belief, light: float, kept: Any
    ) -> None:
        self.time, self.event, self.mass, self.kept = time, event, found.mass, kept
        self._belief, self._light = belief, light
        self._detector = ChangeDetector(_WINDOW_S)
        self._quiet = 0

    def look(self, chunk: Chunk) -> bool | None:
        """Whether it was a contact; None where that is not clear yet."""
        self._detector.add(chunk)
        found = self._detector.look(self._belief, (_WINDOW_S,), self._light)
        since = chunk.time - self.time
        if since < _EARLIEST_S:
            return None
        self._quiet = self._quiet + 1 if found.evidence < 0.0 else 0
        if self._quiet >= _LOOKS:
            return True
        if since < DECIDED_S:
            return None
        if abs(found.mass) > abs(self.mass):
            self.mass = found.mass
        return False
