"""What comes out: a contact, what is felt at one moment, and what happened on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.contact.force import Force, direction_names
from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.statistics import NORMAL_95
from taufit.terms.friction.states import STATES

EVENT_KINDS = ("contact", "pick or contact", "contact ended", "gap", "stop beyond training")


@dataclass(frozen=True, slots=True, eq=False)
class Contact:
    """Something touches the arm.

    Attributes:
        start_time: When it began, as far as can be told [s].
        detection_time: When the evidence was enough [s].
        evidence: 2 ln B for a change of external torque against none, when it was noticed.
        change: Of external joint torque since before the contact [N m].
        variance: Of `change` [(N m)^2].
        position: Of the joints, averaged over the time `change` is.
        joint: The last joint it loads, 1 for the first.
        links: That it can be on, 1 for the first.
        force: Under its stated assumption.
        kind: "contact", or "pick or contact" while the force may be a weight.
        end_time: When it ended [s], or None.
        peak: Largest force so far [N].
    """

    start_time: float
    detection_time: float
    evidence: float
    change: Float[Array, " j"]
    variance: Float[Array, " j"]
    position: Float[Array, " j"]
    joint: int
    links: tuple[int, ...]
    force: Force
    kind: str
    end_time: float | None = None
    peak: float = 0.0

    @property
    def change_interval(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """95 % interval of `change` [N m]."""
        half = NORMAL_95 * np.sqrt(self.variance)
        return self.change - half, self.change + half

    @property
    def link(self) -> str:
        """In words: "link 5 or 6"."""
        return "link " + " or ".join(str(k) for k in self.links)

    @property
    def unobservable_directions(self) -> tuple[str, ...]:
        """Directions of the base in which no joint would feel a force there."""
        return direction_names(self.force.unobservable)

    def __str__(self) -> str:
        low, high = self.force.size_interval
        directions = (
            f", blind along {' and '.join(self.unobservable_directions)}"
            if self.unobservable_directions
            else ""
        )
        return (
            f"{self.kind} on {self.link} since {self.start_time:.2f} s: {self.force.size:.0f} N "
            f"({low:.0f} to {high:.0f}), {self.force.assumption}{directions}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        low, high = self.force.interval
        size = self.force.size_interval
        return {
            "t": self.start_time,
            "until": self.end_time,
            "noticed": self.detection_time,
            "kind": self.kind,
            "joint": self.joint,
            "link": self.link,
            "links": list(self.links),
            "evidence": self.evidence,
            "force": self.force.size,
            "force_interval": list(size),
            "force_vector": {
                "value": self.force.value.tolist(),
                "low": low.tolist(),
                "high": high.tolist(),
            },
            "peak_force": self.peak,
            "assumption": self.force.assumption,
            "blind": list(self.unobservable_directions),
            "change": self.change.tolist(),
            "change_std": np.sqrt(self.variance).tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class ContactReading:
    """What is felt at one moment.

    Attributes:
        time: Of the newest sample [s].
        torque: External joint torque, behind the momentum observer [N m].
        torque_std: Its standard deviation in the joint's friction state [N m].
        change: Against the level before the contact, or against the level followed so far where
            there is none [N m].
        change_std: Its standard deviation [N m].
        state: Friction state of each joint, an index into `STATES`.
        observable: Joints whose change says something.
        evidence: 2 ln B for a contact.
        threshold: That an alarm needs.
        contact: What touches the arm, or None.
    """

    time: float
    torque: Float[Array, " j"]
    torque_std: Float[Array, " j"]
    change: Float[Array, " j"]
    change_std: Float[Array, " j"]
    state: Int[Array, " j"]
    observable: Bool[Array, " j"]
    evidence: float
    threshold: float
    contact: Contact | None = None

    @property
    def torque_interval(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """95 % interval of `torque` [N m]."""
        half = NORMAL_95 * self.torque_std
        return self.torque - half, self.torque + half

    @property
    def change_interval(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """95 % interval of `change` [N m]."""
        half = NORMAL_95 * self.change_std
        return self.change - half, self.change + half

    @property
    def states(self) -> tuple[str, ...]:
        """Friction state of each joint by name."""
        return tuple(STATES[k] for k in self.state)


@dataclass(frozen=True, slots=True, eq=False)
class ContactEvent:
    """Something that happened on the way.

    Attributes:
        time: When it was noticed [s].
        kind: One of `EVENT_KINDS`.
        text: In words.
        contact: Where it is about one.
    """

    time: float
    kind: str
    text: str
    contact: Contact | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"t": self.time, "kind": self.kind, "text": self.text}
