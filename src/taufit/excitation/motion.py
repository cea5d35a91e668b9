"""Interface of motions: position, velocity and acceleration at any time."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from taufit.core.arrays import Array, Float


@runtime_checkable
class Motion(Protocol):
    """Motion for the simulated robot, the player and `design`."""

    @property
    def joints(self) -> int: ...

    @property
    def duration(self) -> float:
        """Duration [s]."""
        ...

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Position, velocity, acceleration at times [s]; standing before 0 and after `duration`."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a motion file."""
        ...
