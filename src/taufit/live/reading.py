"""What a monitor says: one reading per sample, and what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.contact import Contact
from taufit.core.arrays import Array, Float
from taufit.payload import PayloadEstimate
from taufit.signals.stream import NOTICES

# Of payload, contact, health and of the samples themselves.
KINDS = (
    *("pick", "drop", "change", "pick or contact", "ready"),
    *("contact", "contact ended", "stop beyond training"),
    "friction",
    *NOTICES,
)


@dataclass(frozen=True, slots=True)
class MonitorEvent:
    """Something happened.

    Attributes:
        time: When it was noticed [s].
        kind: One of `EVENT_KINDS`.
        text: In words.
        since: When it began, where that is another time [s].
        mass_change: Of the payload, once it is known [kg].
        force: Of a contact [N].
    """

    time: float
    kind: str
    text: str
    since: float | None = None
    mass_change: float | None = None
    force: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is not known is left out."""
        known = {
            "since": self.since,
            "mass_change": self.mass_change,
            "force": self.force,
        }
        return {
            "t": self.time,
            "kind": self.kind,
            "text": self.text,
            **{name: value for name, value in known.items() if value is not None},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What is known at one sample.

    Attributes:
        time: Of the sample [s].
        position, velocity: Of the joints, clean.
        torque: Of the joints as measured [N m].
        filtered: The same through the observer's low-pass [N m].
        predicted: What the model expects there, what is carried included [N m].
        half_width: Of the 95 % interval of `filtered - predicted` [N m].
        external: What the outside does to the joints [N m].
        external_half_width: Of its 95 % interval, in each joint's friction state [N m].
        state: Friction state of each joint: fast, slow, turning, standing or rest.
        evidence: For a contact, 2 ln B.
        threshold: Evidence that an alarm needs; infinite while the payload is not known yet.
        contact: What touches the arm, or None.
        payload: What it carries, as of the last read-out (ten times a second), or None before.
        temperature: Of the joints [degC], or None.
        friction_index: Friction of each joint over that of the healthy model; 1 is healthy.
        friction_index_std: Its standard deviation.
        sample: Number of the sample among all that have come, from 0: numbers that no reading has
            were left out (`Monitor.account`).
        events: What happened since the last reading.
    """

    time: float
    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    torque: Float[Array, " j"]
    filtered: Float[Array, " j"]
    predicted: Float[Array, " j"]
    half_width: Float[Array, " j"]
    external: Float[Array, " j"]
    external_half_width: Float[Array, " j"]
    state: tuple[str, ...]
    evidence: float
    threshold: float
    contact: Contact | None
    payload: PayloadEstimate | None
    temperature: Float[Array, " j"] | None
    friction_index: Float[Array, " j"]
    friction_index_std: Float[Array, " j"]
    sample: int
    events: tuple[MonitorEvent, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; None for what is not known."""
        return {
            "t": self.time,
            "sample": self.sample,
            "position": self.position.tolist(),
            "velocity": self.velocity.tolist(),
            "torque": self.torque.tolist(),
            "filtered": self.filtered.tolist(),
            "predicted": self.predicted.tolist(),
            "half_width": _finite(self.half_width),
            "external": self.external.tolist(),
            "external_half_width": _finite(self.external_half_width),
            "state": list(self.state),
            "evidence": _number(self.evidence),
            "threshold": _number(self.threshold),
            "contact": None if self.contact is None else self.contact.to_dict(),
            "payload": _payload(self.payload),
            "temperature": None if self.temperature is None else _finite(self.temperature),
            "friction_index": _finite(self.friction_index),
            "friction_index_std": _finite(self.friction_index_std),
            "events": [event.to_dict() for event in self.events],
        }


def _payload(found: PayloadEstimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "t": found.time,
        **found.to_dict(),
        "mass_std": _number(found.mass_std),
        "com_std": _finite(found.centre_std),
        "ready": found.ready,
        "accurate": found.accurate,
        "empty": found.empty,
        "warnings": list(found.warnings),
    }


def _finite(values: Float[Array, " j"]) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
