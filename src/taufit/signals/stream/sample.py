"""Clean samples and notices of the stream conditioner."""

from __future__ import annotations

from typing import NamedTuple

from taufit.core.arrays import Array, Float

# Kinds of notices: spike; time stamp before the last one; missing value; torques repeated exactly
# in
# motion; restarted clock; no samples for longer than the memory of friction and low-pass.
NOTICES = ("spike", "late", "missing", "held", "clock", "gap")


class CleanSample(NamedTuple):
    """Conditioned sample.

    Attributes:
        time: Time [s], increasing.
        position, velocity: Joint motion at the time of the torque.
        torque: Joint torques [N m].
        temperature: Joint temperatures [degC], or None.
        commanded: Commanded joint velocities, or None.
        number: Number of samples received before it.
    """

    time: float
    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    torque: Float[Array, " j"]
    temperature: Float[Array, " j"] | None
    commanded: Float[Array, " j"] | None
    number: int


class Notice(NamedTuple):
    """Message to the user about the samples.

    Attributes:
        time: Time of the sample [s].
        kind: One of `NOTICES`.
        text: Message text.
    """

    time: float
    kind: str
    text: str
