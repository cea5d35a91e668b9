"""Readings of the monitor, one per sample, and events."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.contact import Contact
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.payload import PayloadEstimate
from taufit.signals.stream import NOTICES

# Kinds of events: of payload, contact, friction and samples.
EVENT_KINDS = (
    *("pick", "drop", "change", "pick or contact", "ready"),
    *("contact", "contact ended", "stop beyond training"),
    "friction",
    *NOTICES,
)


@dataclass(frozen=True, slots=True)
class MonitorEvent:
    """An event of the monitor.

    Attributes:
        time: Detection time [s].
        kind: One of `EVENT_KINDS`.
        text: Description.
        since: Start, if different from `time` [s].
        mass_change: Change of the payload's mass, once known [kg].
        force: Force of a contact [N].
    """

    time: float
    kind: str
    text: str
    start_time: float | None = None
    mass_change: float | None = None
    force: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Event for JSON, without unknown values."""
        optional = {
            "since": self.start_time,
            "mass_change": self.mass_change,
            "force": self.force,
        }
        return {
            "t": self.time,
            "kind": self.kind,
            "text": self.text,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Result of the monitor at one sample.

    Attributes:
        time: Time of the sample [s].
        position, velocity: Conditioned joint positions and velocities.
        torque: Measured joint torques [N m].
        filtered: `torque` filtered by the observer's low-pass [N m].
        predicted: Model torque including the payload, filtered likewise [N m].
        half_width: Half width of the 95 % interval of `filtered - predicted` [N m].
        external: External joint torque [N m].
        external_half_width: Half width of its 95 % interval, by friction regime [N m].
        state: Friction regime of each joint: fast, slow, turning, standing or rest.
        evidence: 2 ln B of a contact.
        threshold: Detection threshold of `evidence`; infinite while the payload is unknown.
        contact: Active contact, or None.
        payload: Payload estimate, updated ten times per second; None before the first.
        temperature: Joint temperatures [degC], or None.
        friction_index: Friction of each joint relative to the healthy model; 1 is healthy.
        friction_index_std: Its standard deviation.
        sample: Number of the sample, from 0; numbers without reading were dropped
            (`Monitor.sample_counts`).
        events: Events since the last reading.
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
        """Reading for JSON; None for unknown values."""
        return {
            "t": self.time,
            "sample": self.sample,
            "position": self.position.tolist(),
            "velocity": self.velocity.tolist(),
            "torque": self.torque.tolist(),
            "filtered": self.filtered.tolist(),
            "predicted": self.predicted.tolist(),
            "half_width": _json_numbers(self.half_width),
            "external": self.external.tolist(),
            "external_half_width": _json_numbers(self.external_half_width),
            "state": list(self.state),
            "evidence": _json_number(self.evidence),
            "threshold": _json_number(self.threshold),
            "contact": None if self.contact is None else self.contact.to_dict(),
            "payload": _payload(self.payload),
            "temperature": None if self.temperature is None else _json_numbers(self.temperature),
            "friction_index": _json_numbers(self.friction_index),
            "friction_index_std": _json_numbers(self.friction_index_std),
            "events": [event.to_dict() for event in self.events],
        }


def _payload(estimate: PayloadEstimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "t": estimate.time,
        **estimate.to_dict(),
        "mass_std": _json_number(estimate.mass_std),
        "com_std": _json_numbers(estimate.centre_std),
        "ready": estimate.ready,
        "accurate": estimate.accurate,
        "empty": estimate.empty,
        "warnings": list(estimate.warnings),
    }


def _json_numbers(values: Float[Array, " j"]) -> list[float | None]:
    return [_json_number(value) for value in values.tolist()]


def _json_number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
