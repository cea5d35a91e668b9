"""Contact hypothesis for a detected payload change: a contact ends within about a second.

At first, a downward push and a picked mass cause the same torque. A detected change is therefore
"pick or contact" at first, the filter state before it is stored, and new rows are compared with it.
With F of `change_detector`, rows since then predict the newest ones: the evidence of a payload
change against no change in the newest rows is

    2 ln B = F(P + Q; all) - F(P + Q; all but the newest) - F(P; the newest).

If it is clearly negative, the change was a contact: the stored state is restored and the rows since
then are dropped. If it is still positive after one second of motion, it was a pick or a drop. Poses
with little payload torque decide nothing and extend the wait; time at standstill does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.payload.filter.change_detector import (
    PayloadChangeEvidence,
    ReferenceEstimate,
    RowBlock,
    change_variance,
    log_evidence_gain,
    marginal_payload_information,
    weighted_gram,
)

if TYPE_CHECKING:
    from taufit.payload.filter.filter_state import PayloadFilterState

# Time in motion after which a lasting change is a payload change, and latest decision [s].
DECISION_S, DEADLINE_S = 1.0, 4.0
# Windows of newest rows [s].
_WINDOWS = (0.1, 0.2, 0.4)
# Consecutive tests that must find no change.
_CONFIRMATIONS = 2
# 2 ln B that decides for a contact, and for a payload change.
_CONTACT_EVIDENCE, _CHANGE_EVIDENCE = 4.0, 2.0
# Earliest decision, after the delay of the low-pass [s].
_EARLIEST_S = 0.1


class ContactHypothesis:
    """A detected change that may be a contact.

    Attributes:
        time: Detection time [s].
        event: Index of its event.
        mass: Change of mass, given a pick [kg].
        state_before: Filter state before the change.
    """

    __slots__ = (
        *(
            "_reference",
            "_standing_s",
            "_variance",
            "_grams",
            "_no_change_count",
            "_times",
            "_change_variance",
        ),
        *("event", "state_before", "mass", "time"),
    )

    def __init__(
        self,
        time: float,
        event: int,
        change: PayloadChangeEvidence,
        reference: ReferenceEstimate,
        light_mass: float,
        state_before: PayloadFilterState,
    ) -> None:
        self.time, self.event, self.mass, self.state_before = time, event, change.mass, state_before
        self._reference = reference
        self._variance = reference.std**2
        self._change_variance = self._variance + change_variance(light_mass)
        self._times: list[float] = []
        self._grams: list[Float[Array, "j 7 7"]] = []
        self._no_change_count, self._standing_s = 0, 0.0

    def test(self, chunk: RowBlock) -> bool | None:
        """Whether the change was a contact; None while undecided."""
        if not any(weight.any() for _, weight in chunk.joint_rows):
            self._standing_s += chunk.seconds
            return None
        self._times.append(chunk.time)
        self._grams.append(weighted_gram(chunk, self._reference))
        elapsed = chunk.time - self.time - self._standing_s
        if elapsed < _EARLIEST_S:
            return None
        evidence = self._evidence()
        self._no_change_count = (
            self._no_change_count + 1 if float(evidence.min()) < -_CONTACT_EVIDENCE else 0
        )
        if self._no_change_count >= _CONFIRMATIONS:
            return True
        if elapsed < (DECISION_S if evidence[-1] > _CHANGE_EVIDENCE else DEADLINE_S):
            return None
        information = marginal_payload_information(np.sum(self._grams, axis=0), self._reference)[
            None
        ]
        gain, change = log_evidence_gain(information, self._change_variance)
        mass = float(change[0, 0])
        if abs(mass) > abs(self.mass):
            self.mass = mass
        return bool(
            evidence[-1] <= _CHANGE_EVIDENCE
            and gain[0] <= log_evidence_gain(information, self._variance)[0][0]
        )

    def _evidence(self) -> Float[Array, " k"]:
        """2 ln B of a payload change in the newest rows, for each window."""
        past = np.array(self._grams)
        ages = self._times[-1] - np.array(self._times)
        out = []
        for window in _WINDOWS:
            is_newest = ages < window
            newest = marginal_payload_information(past[is_newest].sum(axis=0), self._reference)[
                None
            ]
            earlier = marginal_payload_information(past[~is_newest].sum(axis=0), self._reference)[
                None
            ]
            predicted = self._change_evidence(earlier + newest) - self._change_evidence(earlier)
            out.append(predicted - float(log_evidence_gain(newest, self._variance)[0][0]))
        return np.array(out)

    def _change_evidence(self, information: Array) -> float:
        return float(log_evidence_gain(information, self._change_variance)[0][0])
