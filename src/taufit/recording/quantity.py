"""Quantities of a recording, their units and column names."""

from __future__ import annotations

import math

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError

_ANGLE = {
    "rad": 1.0,
    "mrad": 1e-3,
    "deg": math.pi / 180,
    "turn": 2 * math.pi,
    # Position count of 12-bit servos: Feetech STS and Dynamixel X have 4096 per turn.
    "step4096": 2 * math.pi / 4096,
    "m": 1.0,
    "mm": 1e-3,
}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}
_CURRENT = {"A": 1.0, "mA": 1e-3}
_TEMPERATURE = {"degC": 1.0, "K": 1.0}
_TORQUE = {
    "N m": 1.0,
    "mN m": 1e-3,
    "kN m": 1e3,
    "N": 1.0,
    "N cm": 1e-2,
    "kgf cm": 0.0980665,
    "lbf in": 0.1129848290276167,
}


def _per(units: dict[str, float], suffixes: tuple[str, ...]) -> dict[str, float]:
    return {unit + suffix: factor for unit, factor in units.items() for suffix in suffixes}


_SPEED = {**_per(_ANGLE, ("/s",)), "rpm": 2 * math.pi / 60}
_ACCELERATION = _per(_ANGLE, ("/s^2", "/s2"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """Kind of column.

    Attributes:
        field: Field of `Recording`; for a channel its name.
        prefix: Column prefix in taufit's files: prefix_1, prefix_2, ...; the whole name for a
            single column.
        units: Accepted units and their factor to SI; the first is SI.
        per_joint: Whether there is one column per joint.
        max_magnitude: Largest valid magnitude (SI); larger values are corrupt.
        is_slow: Whether it changes slowly: interpolated, not low-passed, in `Samples`; zero for
            joints without a sensor.
    """

    field: str
    prefix: str
    units: dict[str, float]
    per_joint: bool
    max_magnitude: float
    is_slow: bool = False


# Bounds are three to four decades above usual values: 1e4 rad is 1,600 turns, 1e6 N m lifts 50 t
# at 2 m.
QUANTITIES = {
    "time": Quantity("time", "t", _TIME, False, 1e18),
    "run": Quantity("run", "run", {"": 1.0}, False, 2.0**53),
    "position": Quantity("position", "q", _ANGLE, True, 1e4),
    "velocity": Quantity("velocity", "v", _SPEED, True, 1e4),
    "acceleration": Quantity("acceleration", "a", _ACCELERATION, True, 1e6),
    "current": Quantity("signal", "current", _CURRENT, True, 1e5),
    "torque": Quantity("signal", "torque", _TORQUE, True, 1e6),
    "signal": Quantity("signal", "signal", {"": 1.0, "counts": 1.0}, True, 1e12),
    "target_current": Quantity("target_current", "target_current", _CURRENT, True, 1e5),
    "target_torque": Quantity("target_torque", "target_torque", _TORQUE, True, 1e6),
    "commanded_position": Quantity("commanded_position", "q_cmd", _ANGLE, True, 1e4),
    "commanded_velocity": Quantity("commanded_velocity", "v_cmd", _SPEED, True, 1e4),
    "commanded_acceleration": Quantity("commanded_acceleration", "a_cmd", _ACCELERATION, True, 1e6),
    "temperature": Quantity("temperature", "temperature", _TEMPERATURE, True, 1e3, is_slow=True),
    "motor_temperature": Quantity(
        "motor_temperature", "motor_temperature", _TEMPERATURE, True, 1e3, is_slow=True
    ),
    "motor_position": Quantity("motor_position", "q_motor", _ANGLE, True, 1e6),
    "payload": Quantity("payload", "payload", {"kg": 1.0, "g": 1e-3}, False, 1e5),
}
SIGNALS = ("current", "torque", "signal")
# Fields of `Recording` with one column per joint.
MEASUREMENTS = ("position", "velocity", "acceleration", "signal")


def is_channel(name: str) -> bool:
    """Whether a name is a further channel, stored in `Recording.channels`."""
    spec = QUANTITIES.get(name)
    return spec is not None and spec.per_joint and spec.field == name and name not in MEASUREMENTS


def slow_channels() -> tuple[str, ...]:
    """Names of slow channels, which are passed on to samples."""
    return tuple(name for name, spec in QUANTITIES.items() if spec.is_slow)


def channel_names() -> tuple[str, ...]:
    """Names of all channels of a recording, in the order of their columns."""
    return tuple(name for name in QUANTITIES if is_channel(name))


SIGNAL_UNITS = {"current": "A", "torque": "N m", "signal": ""}
# Motion quantities; if measured at the motor, gear ratio and coupling convert them.
MOTIONS = tuple(
    name
    for name in QUANTITIES
    if name.endswith(("position", "velocity", "acceleration")) and name != "motor_position"
)
_SPELLINGS = {
    "Nm": "N m",
    "N.m": "N m",
    "N*m": "N m",
    "mNm": "mN m",
    "kNm": "kN m",
    "radians": "rad",
    "degrees": "deg",
    "degree": "deg",
    "°": "deg",
    "seconds": "s",
    "C": "degC",
    "celsius": "degC",
    "°C": "degC",
    "µs": "us",
    "1/s": "rad/s",
}


def unit_factor(quantity: str, unit: str) -> float:
    """Factor from `unit` to SI; raises with the list of valid units."""
    units = QUANTITIES[quantity].units
    unit_name = _SPELLINGS.get(unit, unit)
    for alias, canonical in (("degrees/", "deg/"), ("°/", "deg/")):
        unit_name = unit_name.replace(alias, canonical)
    if unit_name not in units:
        raise RecordingError(
            f"unit {unit!r} is not known for {quantity}: use one of "
            f"{', '.join(name or '(none)' for name in units)}."
        )
    return units[unit_name]
