"""The rival of a pick: a force that ends within a second was no payload.

In its first moments a downward push and a picked mass are the same torque. So a change is "pick or
contact" at first, what was known before it is kept aside, and rows go on being held against that.
With F of `change`, all rows since then but the latest foretell the latest: a payload that changed
as those say explains the latest better than what was known before by

    2 ln B = F(P + Q; all) - F(P + Q; all but the latest) - F(P; the latest).

Where that is clearly negative the change was a contact: what was known comes back and the rows in
between do not count. Where it still is positive after a second of motion it was a pick or a drop.
Poses in which a payload hardly shows speak for neither, and are waited for. An arm that stands says
nothing: that time does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.payload.filter.change_detector import (
    PayloadChangeEvidence,
    ReferenceEstimate,
    RowBlock,
    log_evidence_gain,
    marginal_payload_information,
    variance_of_changes,
    weighted_gram,
)

if TYPE_CHECKING:
    from taufit.payload.filter.filter_state import PayloadFilterState

# A change that lasts this long in motion is none of a contact; nothing is waited for longer [s].
DECIDED_S, LATEST_S = 1.0, 4.0
# The latest rows [s].
_WINDOWS = (0.1, 0.2, 0.4)
# Looks in a row that must find no change.
_LOOKS = 2
# 2 ln B that speaks clearly, for no change and for one.
_CLEAR, _STILL = 4.0, 2.0
# Nothing is decided before the low-pass has seen the change [s].
_EARLIEST_S = 0.1


class ContactHypothesis:
    """A change that may be a contact.

    Attributes:
        time: When it was noticed [s].
        event: Its place among the events.
        mass: By how much the mass has changed, if it is a pick [kg].
        kept: What was known before.
    """

    __slots__ = (
        *("_belief", "_idle", "_narrow", "_past", "_quiet", "_times", "_wide"),
        *("event", "kept", "mass", "time"),
    )

    def __init__(
        self,
        time: float,
        event: int,
        found: PayloadChangeEvidence,
        belief: ReferenceEstimate,
        light: float,
        kept: PayloadFilterState,
    ) -> None:
        self.time, self.event, self.mass, self.kept = time, event, found.mass, kept
        self._belief = belief
        self._narrow = belief.known**2
        self._wide = self._narrow + variance_of_changes(light)
        self._times: list[float] = []
        self._past: list[Float[Array, "j 7 7"]] = []
        self._quiet, self._idle = 0, 0.0

    def look(self, chunk: RowBlock) -> bool | None:
        """Whether it was a contact; None where that is not clear yet."""
        if not any(weight.any() for _, weight in chunk.rows):
            self._idle += chunk.seconds
            return None
        self._times.append(chunk.time)
        self._past.append(weighted_gram(chunk, self._belief))
        since = chunk.time - self.time - self._idle
        if since < _EARLIEST_S:
            return None
        found = self._evidence()
        self._quiet = self._quiet + 1 if float(found.min()) < -_CLEAR else 0
        if self._quiet >= _LOOKS:
            return True
        if since < (DECIDED_S if found[-1] > _STILL else LATEST_S):
            return None
        whole = marginal_payload_information(np.sum(self._past, axis=0), self._belief)[None]
        one, change = log_evidence_gain(whole, self._wide)
        mass = float(change[0, 0])
        if abs(mass) > abs(self.mass):
            self.mass = mass
        return bool(found[-1] <= _STILL and one[0] <= log_evidence_gain(whole, self._narrow)[0][0])

    def _evidence(self) -> Float[Array, " k"]:
        """2 ln B of a change over each length of the latest rows."""
        past = np.array(self._past)
        ages = self._times[-1] - np.array(self._times)
        out = []
        for window in _WINDOWS:
            latest = ages < window
            now = marginal_payload_information(past[latest].sum(axis=0), self._belief)[None]
            before = marginal_payload_information(past[~latest].sum(axis=0), self._belief)[None]
            foretold = self._worth(before + now) - self._worth(before)
            out.append(foretold - float(log_evidence_gain(now, self._narrow)[0][0]))
        return np.array(out)

    def _worth(self, left: Array) -> float:
        return float(log_evidence_gain(left, self._wide)[0][0])
