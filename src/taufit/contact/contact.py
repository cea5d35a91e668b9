"""Results of contact detection: contacts, readings and events."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.contact.force import Force, direction_names
from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.terms.friction.states import STATES

EVENT_KINDS = ("contact", "pick or contact", "contact ended", "gap", "stop beyond training")


@dataclass(frozen=True, slots=True, eq=False)
class Contact:
    """A contact with the robot.

    Attributes:
        start_time: Estimated start [s].
        detection_time: Time when the evidence reached the threshold [s].
        evidence: 2 ln B of a change of external torque against none, at detection.
        change: Change of external joint torque since before the contact [N m].
        variance: Variance of `change` [(N m)^2].
        position: Joint positions, averaged over the time of `change`.
        joint: Last loaded joint, 1 for the first.
        links: Candidate links, 1 for the first.
        force: Contact force with its assumption; after the end, the clearest estimate.
        kind: "contact", or "pick or contact" while the force may be a weight.
        end_time: End [s]; None while active.
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
    def chi_square(self) -> float:
        """Chi-square of `change` against none, joint by joint."""
        return float(np.sum(self.change**2 / self.variance))

    @property
    def link(self) -> str:
        """Candidate links as text: "link 5 or 6"."""
        return "link " + " or ".join(str(k) for k in self.links)

    @property
    def unobservable_directions(self) -> tuple[str, ...]:
        """Directions of the base frame in which a force there is unobservable."""
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
    """Result of contact detection at one time.

    Attributes:
        time: Time of the newest sample [s].
        torque: External joint torque from the momentum observer [N m].
        torque_std: Its standard deviation in the joint's friction regime [N m].
        change: Change from the level before the contact, or from the tracked level without contact
            [N m].
        change_std: Its standard deviation [N m].
        state: Friction regime of each joint, an index into `STATES`.
        observable: Joints whose torque change is due to external torque, not to friction.
        evidence: 2 ln B of a contact.
        threshold: Detection threshold of `evidence`.
        contact: Active contact, or None.
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
        """Friction regime of each joint by name."""
        return tuple(STATES[k] for k in self.state)


@dataclass(frozen=True, slots=True, eq=False)
class ContactEvent:
    """An event during contact detection.

    Attributes:
        time: Time of the event [s].
        kind: One of `EVENT_KINDS`.
        text: Description.
        contact: Contact of the event, or None.
    """

    time: float
    kind: str
    text: str
    contact: Contact | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"t": self.time, "kind": self.kind, "text": self.text}
