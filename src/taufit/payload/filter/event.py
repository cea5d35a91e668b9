"""What happened on the way, in words: a payload picked up or put down, samples that are missing."""

from __future__ import annotations

from dataclasses import dataclass

# Changes of mass smaller than this at the moment they show may go either way [kg].
_UNCLEAR = 0.3


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened on the way.

    Attributes:
        time: When it was noticed [s].
        kind: "pick", "drop", "change" (which of them is not clear), "pick or contact" (which of
            them is not clear yet, for a second at most), "contact" or "gap".
        text: In words.
        change: Of mass, where it is one [kg].
    """

    time: float
    kind: str
    text: str
    change: float = 0.0


def payload_change(time: float, mass: float) -> Event:
    """A change of payload; which way is not always clear at the moment it shows."""
    if abs(mass) < _UNCLEAR:
        return Event(time, "change", "the payload changed", mass)
    kind = "pick" if mass > 0.0 else "drop"
    return Event(time, kind, f"{kind}: the payload changed by at least {abs(mass):.1f} kg", mass)


def pick_or_contact(time: float, mass: float) -> Event:
    """A change that may be a payload or a push."""
    return Event(time, "pick or contact", "the payload changed, or something touches the arm", mass)


def contact(time: float, until: float) -> Event:
    """A change that has ended: the payload is what it was."""
    text = f"something touched the arm for about {until - time:.1f} s: the payload is what it was"
    return Event(time, "contact", text)


def gap(last: float, time: float) -> Event:
    """No samples between two times."""
    text = f"no samples from {last:.2f} s to {time:.2f} s: friction and low-pass start anew"
    return Event(time, "gap", text)
