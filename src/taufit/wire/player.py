"""Playing a motion on a robot: what every player does, whatever the controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.wire.source import Block

# What a player is at: on the way to the start, slow and warming up, in what counts, through.
APPROACH, PREPARATION, RECORDED, FINISHED = 1, 2, 3, 4
# Rest before and after what is played [s], and speed of the way back to the start [rad/s].
_REST_S, _BACK = 0.5, 0.3


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


class Playable(Protocol):
    """A motion: position, velocity and acceleration at any time, at rest outside its duration."""

    @property
    def duration(self) -> float: ...

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]: ...


class _Part(NamedTuple):
    """A part of a playback: the motion from 0 at a share of its speed, rest, or the way back."""

    phase: int
    seconds: float
    pace: float
    where: str


@dataclass(frozen=True, slots=True, eq=False)
class Playback:
    """A motion as it is played from its start pose: slowly once, to warm up, and for the record.

    Attributes:
        motion: What counts.
        slow: Play it (one period, where it has periods) at this share of its speed first; 0: not.
        warm_up_s: Then play it for at least this long.
        period: Of a motion that goes on where it began; None for any other.
    """

    motion: Playable
    slow: float = 0.0
    warm_up_s: float = 0.0
    period: float | None = None

    @property
    def parts(self) -> tuple[_Part, ...]:
        """In order, each from where the one before ends."""
        once = self.motion.duration if self.period is None else self.period
        ends = self.motion.at(np.array([0.0, once]))[0]
        way = float(np.abs(ends[1] - ends[0]).max())
        # A cubic from rest to rest peaks at 1.5 times its mean speed.
        back = [_Part(PREPARATION, 1.5 * way / _BACK, 1.0, "back")] if way > 1e-6 else []
        rest = _Part(PREPARATION, _REST_S, 0.0, "start")
        out: list[_Part] = []
        if self.slow > 0.0:
            out += [_Part(PREPARATION, once / self.slow, self.slow, "motion"), *back, rest]
        for _ in range(int(np.ceil(self.warm_up_s / once))):
            out += [_Part(PREPARATION, once, 1.0, "motion"), *back]
        return (
            *out,
            _Part(RECORDED, _REST_S, 0.0, "start"),
            _Part(RECORDED, self.motion.duration, 1.0, "motion"),
            _Part(RECORDED, _REST_S, 0.0, "end"),
        )

    @property
    def duration(self) -> float:
        """Of all of it [s]."""
        return float(sum(part.seconds for part in self.parts))

    @property
    def start(self) -> Float[Array, " j"]:
        """Where it begins, and the arm must be."""
        first: Float[Array, " j"] = self.motion.at(np.zeros(1))[0][0]
        return first

    def at(
        self, time: Float[Array, " n"]
    ) -> tuple[Int[Array, " n"], Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Phase, position, velocity, acceleration; APPROACH before 0, FINISHED at the end."""
        time = np.asarray(time, float)
        parts = self.parts
        edges = np.cumsum([0.0, *(part.seconds for part in parts)])
        number = np.searchsorted(edges, time, side="right") - 1
        phase = np.full(len(time), FINISHED)
        phase[number < 0] = APPROACH
        # Outside its time the motion stands at its ends.
        q, v, a = self.motion.at(np.where(number < 0, -1.0, self.motion.duration + 1.0))
        for k, part in enumerate(parts):
            chosen = number == k
            if not chosen.any():
                continue
            phase[chosen] = part.phase
            since = time[chosen] - edges[k]
            if part.where == "back":
                q[chosen], v[chosen], a[chosen] = self._back(since / part.seconds, part.seconds)
                continue
            inner = {"start": 0.0 * since - 1.0, "end": since + self.motion.duration}
            own = self.motion.at(inner.get(part.where, part.pace * since))
            q[chosen] = own[0]
            v[chosen], a[chosen] = part.pace * own[1], part.pace**2 * own[2]
        return phase, q, v, a

    def _back(
        self, s: Float[Array, " n"], seconds: float
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """A cubic from the end to the start, at rest at both."""
        first, last = self.motion.at(np.array([-1.0, self.motion.duration + 1.0]))[0]
        way, s = first - last, s[:, None]
        q = last + way * s**2 * (3.0 - 2.0 * s)
        return q, way * 6.0 * s * (1.0 - s) / seconds, way * (6.0 - 12.0 * s) / seconds**2


class Player(Protocol):
    """Sends a motion and says, block by block, how it goes."""

    @property
    def notes(self) -> Notes: ...

    def prepare(self) -> None:
        """Find the controller; nothing moves yet."""
        ...

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
