"""Priors of servo types, from other data than an arm's own recording or those of benchmarks."""

from __future__ import annotations

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError


@dataclass(frozen=True, slots=True)
class ServoTypePrior:
    """Prior of the servos of one type.

    Attributes:
        damping_ratio: Damping/kp [s].
        damping_log_std: Std of its logarithm.
        acceleration_limit: Limit of the servo's own reference [rad/s^2].
        limit_log_std: Std of its logarithm.
        arms: Bundled robots with this servo.
    """

    damping_ratio: float
    damping_log_std: float
    acceleration_limit: float
    limit_log_std: float
    arms: tuple[str, ...] = ()


SERVO_TYPES = {
    # Damping/kp of the motor bench fit published with BAM (Rhoban, m1, 7.4 V): kt 1.178 N m/A,
    # R 2.479 ohm, viscous 0.0599 N m s/rad, duty 0.166 per rad and unit of P, at P = 16:
    # (kt^2/R + viscous) / (kt/R 7.4 V 0.166 16) = 0.066 s. Acceleration register 254 of
    # 100 steps/s^2 each (4096 steps per turn): 39 rad/s^2.
    "sts3215": ServoTypePrior(0.066, 0.2, 39.0, 0.15, arms=("so100", "so101")),
}


def type_prior(name: str | None, robot: str) -> ServoTypePrior | None:
    """Prior of a servo type; without a name that of the bundled robot, if known."""
    if name is None:
        return next((entry for entry in SERVO_TYPES.values() if robot in entry.arms), None)
    if name == "none":
        return None
    if name not in SERVO_TYPES:
        raise TaufitError(
            f"servo type {name!r} not found. Available: {', '.join(SERVO_TYPES)}, none."
        )
    return SERVO_TYPES[name]
