"""Capsule: a cylinder with hemispherical ends, the collision body of a robot link."""

from __future__ import annotations

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Capsule:
    """Capsule fixed to a link.

    Attributes:
        link: Index of its link; -1 for the base.
        start, end: Ends of its axis, in the link frame [m].
        radius: Radius [m].
    """

    link: int
    start: Float[Array, " 3"]
    end: Float[Array, " 3"]
    radius: float

    @property
    def body(self) -> str:
        """Name for messages: "link 3" or "the base"."""
        return f"link {self.link + 1}" if self.link >= 0 else "the base"
