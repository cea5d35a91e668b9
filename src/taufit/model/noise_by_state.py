"""Noise by friction state: residual torque of contact-free motion.

A joint that slides fast is predicted several times better than one that reverses, starts or stands,
so one number per joint is wrong most of the time. Estimated from the training samples; states that
these do not contain (standing joints) use the friction level until contact-free recordings are
available.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.codec import Limits
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.terms.friction.states import StateSettings


@dataclass(frozen=True, slots=True)
class AlarmTail:
    """Exponential tail of the contact evidence in contact-free motion.

    In a fraction `share` of blocks of `block` seconds the largest evidence exceeds `start`, by an
    exponential excess with mean `scale`.

    Attributes:
        start, scale: Start and scale of the tail, in evidence 2 ln B.
        share: Fraction of the blocks.
        block: Length of a block [s].
        minutes: Duration of contact-free motion behind the estimate [min]; 0 for an assumption.
    """

    start: float
    scale: Annotated[float, Limits(above=0.0)]
    share: Annotated[float, Limits(above=0.0, most=1.0)] = 0.1
    block: Annotated[float, Limits(above=0.0)] = 2.0
    minutes: Annotated[float, Limits(low=0.0)] = 0.0

    def threshold(self, alarms_per_hour: float) -> float:
        """Detection threshold for a given false alarm rate [1/h]."""
        blocks = 3600.0 / self.block
        return self.start + self.scale * float(np.log(self.share * blocks / alarms_per_hour))


@dataclass(frozen=True, slots=True, eq=False)
class NoiseByState:
    """Residual torque of contact-free motion, one row per entry of `friction.states.STATES`.

    The residual r of a joint is torque noise, a random walk, and the noise of differentiated
    velocities, which telescopes: the mean of r over n time bins of length h has variance

        white^2 / n + walk^2 n h / 3 + 2 sum_k (M_jk velocity_k)^2 / (n h)^2

    about its previous level. Low-passed it stays within +- NORMAL_95 `level` for 95 % of the time.

    Attributes:
        rate_hz: Rate of the time bins of `white` [Hz].
        cutoff_hz: Cut-off frequency of the low-pass of `level` [Hz].
        standstill: Speed below which a joint stands [rad/s or m/s].
        level: Standard deviation of the low-passed residual [N m].
        white: White noise of a time bin [N m].
        walk: Random walk [N m / sqrt(s)].
        velocity: Velocity noise of a time bin [rad/s or m/s].
        seconds: Duration of motion behind each row [s]; 0 where derived from the friction level.
        tail: Tail of the contact evidence, or None.
        runs: Number of contact-free recordings used.
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
        """Settings of the friction states."""
        return StateSettings(standstill=self.standstill)

    def band(
        self, state: Int[Array, "n j"], drift_std: Float[Array, "n j"] | float = 0.0
    ) -> Float[Array, "n j"]:
        """Half width of the 95 % interval of the low-passed residual, given the states [N m].

        Args:
            state: Friction states.
            drift_std: Standard deviation of the drift of friction [N m].
        """
        level = self.level[state, np.arange(state.shape[-1])]
        return np.asarray(NORMAL_95 * np.hypot(level, drift_std))
