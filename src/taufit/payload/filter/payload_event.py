"""What happened on the way, in words: a payload picked up or put down, samples that are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Changes of mass smaller than this at the moment they show may go either way [kg].
_MIN_CLEAR_CHANGE = 0.3


@dataclass(frozen=True, slots=True)
class PayloadEvent:
    """Something that happened on the way.

    Attributes:
        time: When it was noticed [s].
        kind: "pick", "drop", "change" (which of them is not clear), "pick or contact" (which of
            them is not clear yet, for a second of motion or so), "contact" or "gap".
        text: In words.
        change: Of mass [kg], once the new payload is known; None until then and for what is none.
    """

    time: float
    kind: str
    text: str
    change: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a change of mass that is not known is left out."""
        change = {} if self.change is None else {"mass_change": self.change}
        return {"t": self.time, "kind": self.kind, "text": self.text, **change}


def payload_change_event(time: float, mass: float) -> PayloadEvent:
    """A change of payload; which way is not always clear at the moment it shows.

    Args:
        time: When it was noticed [s].
        mass: What the first moments say of it, a lower bound rather than an estimate [kg].
    """
    if abs(mass) < _MIN_CLEAR_CHANGE:
        return PayloadEvent(time, "change", "the payload changed")
    kind = "pick" if mass > 0.0 else "drop"
    return PayloadEvent(time, kind, f"{kind}: the payload changed by at least {abs(mass):.1f} kg")


def measured_change(event: PayloadEvent, before: float, after: float) -> PayloadEvent:
    """The same event once the new payload is known."""
    change = after - before
    kind = "pick" if change > 0.0 else "drop"
    text = f"{kind}: the payload changed by {change:+.2f} kg to {after:.2f} kg"
    return PayloadEvent(event.time, kind, text, change)


def pick_or_contact_event(time: float) -> PayloadEvent:
    """A change that may be a payload or a push."""
    return PayloadEvent(
        time, "pick or contact", "the payload changed, or something touches the arm"
    )


def contact_event(time: float, end_time: float) -> PayloadEvent:
    """A change that has ended: the payload is what it was."""
    text = (
        f"something touched the arm for about {end_time - time:.1f} s: the payload is what it was"
    )
    return PayloadEvent(time, "contact", text)


def earlier_contact_event(time: float) -> PayloadEvent:
    """A change that was the end of a push, begun before the payload was known."""
    text = "something touched the arm while the payload was read: the payload is read anew"
    return PayloadEvent(time, "contact", text)


def gap_event(last: float, time: float) -> PayloadEvent:
    """No samples between two times."""
    text = f"no samples from {last:.2f} s to {time:.2f} s: friction and low-pass start anew"
    return PayloadEvent(time, "gap", text)
