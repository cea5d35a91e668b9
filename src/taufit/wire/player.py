"""Playing a motion on a robot: what every player does, whatever the controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taufit.arrays import Array, Float
from taufit.wire.source import Block


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """What a motion asks of the joints, to be shown before anything moves.

    Attributes:
        lower, upper: Of the positions [rad].
        speed, acceleration: Largest [rad/s], [rad/s^2].
        duration: [s].
        start: Where it begins.
    """

    lower: Float[Array, " j"]
    upper: Float[Array, " j"]
    speed: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    duration: float
    start: Float[Array, " j"]

    @classmethod
    def of(
        cls,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        duration: float,
    ) -> Reach:
        """Of a motion sampled densely."""
        return cls(
            position.min(0),
            position.max(0),
            np.abs(velocity).max(0),
            np.abs(acceleration).max(0),
            duration,
            position[0].copy(),
        )


class Player(Protocol):
    """Sends a motion and says, block by block, how it goes."""

    def start(self) -> None:
        """Have the controller begin."""
        ...

    def watch(self, block: Block) -> str | None:
        """Why the recording should end ("" when the motion is over), or None to go on."""
        ...

    def keep(self, block: Block) -> Block | None:
        """The part of a block that belongs into the recording."""
        ...

    def stop(self) -> None:
        """Bring the robot to rest."""
        ...


@dataclass(slots=True)
class Notes:
    """What a watcher noticed on the way, each kind once."""

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if text not in self.texts and len(self.texts) < 100:
            self.texts.append(text)


def rows(block: Block, keep: Array) -> Block | None:
    """Some rows of a block; None where there are none."""
    if not keep.any():
        return None
    return Block(
        block.time[keep],
        {name: values[keep] for name, values in block.values.items()},
        {name: values[keep] for name, values in block.status.items()},
    )
