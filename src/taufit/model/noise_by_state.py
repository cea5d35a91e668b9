"""How far measured torque is from the model where nothing touches the arm, by friction state.

A joint that slides fast is predicted several times better than one that turns, starts or stands, so
one number per joint is wrong for most of the time. Learnt at fit time from the training samples;
states they do not show (standing joints) come from the size of friction until contact-free
recordings say more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.codec import Limits
from taufit.core.statistics import NORMAL_95
from taufit.terms.friction.states import StateSettings


@dataclass(frozen=True, slots=True)
class AlarmTail:
    """How often contact-free motion gives evidence for contact, far out.

    In a `share` of blocks of `block` seconds the largest evidence exceeds `start`, by an excess
    that is exponential with mean `scale`.

    Attributes:
        start, scale: Of the evidence, 2 ln B.
        share: Of the blocks.
        block: [s].
        minutes: Of contact-free motion that this rests on; 0 for an assumption.
    """

    start: float
    scale: Annotated[float, Limits(above=0.0)]
    share: Annotated[float, Limits(above=0.0, most=1.0)] = 0.1
    block: Annotated[float, Limits(above=0.0)] = 2.0
    minutes: Annotated[float, Limits(low=0.0)] = 0.0

    def threshold(self, alarms_per_hour: float) -> float:
        """Evidence that contact-free motion exceeds this often."""
        blocks = 3600.0 / self.block
        return self.start + self.scale * float(np.log(self.share * blocks / alarms_per_hour))


@dataclass(frozen=True, slots=True, eq=False)
class NoiseByState:
    """Residual torque of contact-free motion, one row per entry of `friction.states.STATES`.

    The residual r of a joint is torque noise, a level that wanders, and the noise of velocities it
    was differentiated from, which telescopes: the mean of r over n cells of length h has variance

        white^2 / n + walk^2 n h / 3 + 2 sum_k (M_jk velocity_k)^2 / (n h)^2

    about its level before. Low-passed it stays within +- NORMAL_95 `level` for 95 % of the time.

    Attributes:
        rate_hz: Of the cells that `white` belongs to.
        cutoff_hz: Of the low-pass that `level` belongs to.
        standstill: Slower than this a joint does not move [rad/s or m/s].
        level: [N m].
        white: [N m].
        walk: [N m / sqrt(s)].
        velocity: Of a cell's velocity [rad/s or m/s].
        seconds: Of motion each row rests on; 0 where it was taken from the size of friction.
        tail: Of the evidence for contact, or None.
        runs: Contact-free recordings it was refined with.
    """

    rate_hz: float
    cutoff_hz: float
    standstill: float
    level: Float[Array, "s j"]
    white: Float[Array, "s j"]
    walk: Float[Array, "s j"]
    velocity: Float[Array, "s j"]
    seconds: Float[Array, "s j"]
    tail: AlarmTail | None = None
    runs: int = 0

    @property
    def states(self) -> StateSettings:
        """When a joint is in which state."""
        return StateSettings(standstill=self.standstill)

    def band(self, state: Int[Array, "n j"]) -> Float[Array, "n j"]:
        """Half width of the 95 % interval of the low-passed residual, given the states [N m]."""
        return np.asarray(NORMAL_95 * self.level[state, np.arange(state.shape[-1])])
