"""A rounded rod: the simplest body that fits a robot link."""

from __future__ import annotations

from dataclasses import dataclass

from taufit.core.arrays import Array, Float


@dataclass(frozen=True, slots=True, eq=False)
class Capsule:
    """A rounded rod fixed to a link.

    Attributes:
        link: Index of the link it moves with; -1 for the base.
        start, end: Of its axis, in that link's frame [m].
        radius: [m].
    """

    link: int
    start: Float[Array, " 3"]
    end: Float[Array, " 3"]
    radius: float

    @property
    def body(self) -> str:
        """For messages: "link 3" or "the base"."""
        return f"link {self.link + 1}" if self.link >= 0 else "the base"
