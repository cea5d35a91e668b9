"""What an intake hands on: one clean sample, and what it noticed on the way."""

from __future__ import annotations

from typing import NamedTuple

from taufit.core.arrays import Array, Float

# Kinds of notices: a single impossible value; a sample older than the last; one that lacks a value;
# one that repeats torques to the last digit while the arm moves; a clock that has started anew; no
# samples for longer than friction and low-pass remember.
NOTICES = ("spike", "late", "missing", "held", "clock", "gap")


class CleanSample(NamedTuple):
    """One sample, clean.

    Attributes:
        time: [s], rising.
        position, velocity: Of the joints, when the torque was felt.
        torque: Of the joints [N m].
        temperature: Of the joints [degC], or None.
        commanded: Commanded velocity, or None.
        number: How many samples had been pushed before it.
    """

    time: float
    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    torque: Float[Array, " j"]
    temperature: Float[Array, " j"] | None
    commanded: Float[Array, " j"] | None
    number: int


class Notice(NamedTuple):
    """Something about the samples that a user should know.

    Attributes:
        time: Of the sample [s].
        kind: One of `NOTICES`.
        text: In words.
    """

    time: float
    kind: str
    text: str
