"""Gravity compensator: a spring or gas cylinder that carries part of the weight at one joint.

It is anchored at distance a from the axis on the previous link and at b on the link; with x the
angle
between the two arms its length is l(x) = sqrt(a^2 + b^2 - 2 a b cos x), and a tension F causes the
joint torque F dl/dx = F a b sin(x) / l.
"""

from __future__ import annotations

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError

KINDS = ("spring", "gas", "unknown")
# Keys of its geometry in robot files, beside the angle.
COMPENSATOR_KEYS = ("base_arm", "link_arm", "gas_length", "exponent")


@dataclass(frozen=True, slots=True)
class Compensator:
    """Gravity compensator.

    Attributes:
        joint: Index of the joint, from 0.
        kind: "spring" pulls with k (l - l0); "gas" with F0 (1 + (l - l_zero) / g)^-n, with l_zero
            its length at the joint's zero; "unknown" has no geometry: a torque A sin q + B cos q,
            exact for a spring of zero natural length.
        base_arm: Distance a from the axis to the anchor on the previous link [m].
        link_arm: Distance b from the axis to the anchor on the link [m].
        angle: Angle x at the recorded zero of the joint [rad].
        gas_length: Gas volume over piston area g at the joint's zero [m]; negative if a longer rod
            compresses the gas.
        exponent: Polytropic exponent n of the gas: 1 if slow, 1.4 if fast.
    """

    joint: int
    kind: str = "unknown"
    base_arm: float = 0.0
    link_arm: float = 0.0
    angle: float = 0.0
    gas_length: float = 0.0
    exponent: float = 1.2

    def __post_init__(self) -> None:
        label = f"the compensator of joint {self.joint + 1}"
        if self.kind not in KINDS:
            raise RobotError(f"{label} is of kind {self.kind!r}: use {', '.join(KINDS)}.")
        numbers = (self.base_arm, self.link_arm, self.angle, self.gas_length, self.exponent)
        if self.joint < 0 or not np.all(np.isfinite(numbers)):
            raise RobotError(f"{label} has numbers that are not finite, or no joint.")
        if self.kind == "unknown":
            return
        if min(self.base_arm, self.link_arm) <= 0.0 or (
            abs(self.base_arm - self.link_arm) < 1e-3 * self.base_arm
        ):
            raise RobotError(
                f"{label} needs base_arm and link_arm, two lengths above 0 that differ; found "
                f"{self.base_arm:g} and {self.link_arm:g} m. Use kind unknown where they are not "
                "known."
            )
        max_length = self.base_arm + self.link_arm
        min_length = abs(self.base_arm - self.link_arm)
        if self.kind == "gas" and not (
            min(
                1.0 + (length - self.length_at_zero) / (self.gas_length or 1e-12)
                for length in (min_length, max_length)
            )
            > 0.0
        ):
            raise RobotError(
                f"{label}: with gas_length {self.gas_length:g} m the gas would have no volume left "
                f"between lengths of {min_length:.3g} and {max_length:.3g} m. gas_length is gas "
                "volume "
                "over piston area, and larger than the stroke."
            )

    @property
    def length_at_zero(self) -> float:
        """Length l at the joint's zero [m]."""
        a, b = self.base_arm, self.link_arm
        return float(np.sqrt(a**2 + b**2 - 2.0 * a * b * np.cos(self.angle)))
