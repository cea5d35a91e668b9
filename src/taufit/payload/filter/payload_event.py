"""Events of a payload run: payload changes, contacts, gaps."""

from __future__ import annotations

from typing import Any

from taufit.core.dataclasses import dataclass

# Smallest first estimate of a mass change whose sign is certain [kg].
_MIN_CLEAR_CHANGE = 0.3


@dataclass(frozen=True, slots=True)
class PayloadEvent:
    """An event during a payload run.

    Attributes:
        time: Detection time [s].
        kind: "pick", "drop", "change" (sign not yet clear), "pick or contact" (undecided for about
            one second of motion), "contact" or "gap".
        text: Description.
        change: Change of mass [kg] once the new payload is known, else None.
    """

    time: float
    kind: str
    text: str
    change: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Event for JSON, without an unknown change of mass."""
        change = {} if self.change is None else {"mass_change": self.change}
        return {"t": self.time, "kind": self.kind, "text": self.text, **change}


def payload_change_event(time: float, mass: float) -> PayloadEvent:
    """Payload change just detected; its sign may be unclear.

    Args:
        time: Detection time [s].
        mass: First estimate of the change, rather a lower bound [kg].
    """
    if abs(mass) < _MIN_CLEAR_CHANGE:
        return PayloadEvent(time, "change", "the payload changed")
    kind = "pick" if mass > 0.0 else "drop"
    return PayloadEvent(time, kind, f"{kind}: the payload changed by at least {abs(mass):.1f} kg")


def final_change_event(event: PayloadEvent, before: float, after: float) -> PayloadEvent:
    """Payload change with the measured change of mass [kg]."""
    change = after - before
    kind = "pick" if change > 0.0 else "drop"
    text = f"{kind}: the payload changed by {change:+.2f} kg to {after:.2f} kg"
    return PayloadEvent(event.time, kind, text, change)


def pick_or_contact_event(time: float) -> PayloadEvent:
    """Change that may be a payload or a contact."""
    return PayloadEvent(
        time, "pick or contact", "the payload changed, or something touches the arm"
    )


def contact_event(time: float, end_time: float) -> PayloadEvent:
    """Contact that has ended: the payload is unchanged."""
    text = (
        f"something touched the arm for about {end_time - time:.1f} s: the payload is what it was"
    )
    return PayloadEvent(time, "contact", text)


def earlier_contact_event(time: float) -> PayloadEvent:
    """End of a contact that began before the payload was first estimated."""
    text = "something touched the arm while the payload was read: the payload is read anew"
    return PayloadEvent(time, "contact", text)


def gap_event(last: float, time: float) -> PayloadEvent:
    """Gap: no samples between two times [s]."""
    text = f"no samples from {last:.2f} s to {time:.2f} s: friction and low-pass start anew"
    return PayloadEvent(time, "gap", text)
