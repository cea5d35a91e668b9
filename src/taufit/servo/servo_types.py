"""Priors of servo types, from other data than an arm's own recording."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.plain_data import parse_yaml


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


@cache
def servo_types() -> dict[str, ServoTypePrior]:
    """Bundled servo types by name."""
    text = (files("taufit.servo") / "servo_types.yaml").read_text("utf-8")
    table = parse_yaml(text, "servo_types.yaml", "YAML", error=TaufitError)
    return {
        name: ServoTypePrior(**{**entry, "arms": tuple(entry.get("arms", ()))})
        for name, entry in table.items()
    }


def type_prior(name: str | None, robot: str) -> ServoTypePrior | None:
    """Prior of a servo type; without a name that of the bundled robot, if known."""
    types = servo_types()
    if name is None:
        return next((entry for entry in types.values() if robot in entry.arms), None)
    if name == "none":
        return None
    if name not in types:
        raise TaufitError(f"servo type {name!r} not found. Available: {', '.join(types)}, none.")
    return types[name]
