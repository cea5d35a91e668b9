"""Parameters of position servos, and the floor under the arm."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass

# Per-joint fields in the order of kernel/servo.cpp; the acceleration limit comes last.
JOINT_FIELDS = ("kp", "damping", "coulomb", "armature", "offset", "delay")


@dataclass(frozen=True, slots=True, eq=False)
class ServoParameters:
    """Closed loop of every joint: kp (u(t - delay) + offset - q) against damping and friction.

    Attributes:
        kp: Position gain at the joint [N m/rad].
        damping: Viscous friction and back-EMF [N m s/rad].
        coulomb: Coulomb friction [N m].
        armature: Inertia of the rotor at the joint [kg m^2].
        offset: Offset of the command [rad].
        delay: Delay of the command [s].
        acceleration_limit: Limit of the servo's own reference [rad/s^2]; 0 for none.
    """

    kp: Float[Array, " j"]
    damping: Float[Array, " j"]
    coulomb: Float[Array, " j"]
    armature: Float[Array, " j"]
    offset: Float[Array, " j"]
    delay: Float[Array, " j"]
    acceleration_limit: float = 0.0

    @property
    def joints(self) -> int:
        return len(self.kp)

    def matrix(self) -> Float[Array, "j 7"]:
        """One row per joint, as the kernel reads it."""
        columns = [getattr(self, name) for name in JOINT_FIELDS]
        return np.column_stack([*columns, np.full(self.joints, self.acceleration_limit)])

    def replace(self, **changes: Any) -> ServoParameters:
        """Copy with some fields exchanged."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; inverse of `from_dict`."""
        lists = {name: getattr(self, name).tolist() for name in JOINT_FIELDS}
        return {**lists, "acceleration_limit": self.acceleration_limit}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ServoParameters:
        """Inverse of `to_dict`."""
        arrays = {name: np.array(data[name], float) for name in JOINT_FIELDS}
        return cls(**arrays, acceleration_limit=float(data["acceleration_limit"]))


@dataclass(frozen=True, slots=True)
class Floor:
    """Horizontal plane that the contact point of the last link may touch.

    Attributes:
        height: Height above the base origin [m].
        stiffness: Force per depth [N/m].
        damping: Force per speed [N s/m].
        friction: Friction coefficient [-].
    """

    height: float
    stiffness: float = 3000.0
    damping: float = 20.0
    friction: float = 0.3

    def values(self) -> list[float]:
        """Height, stiffness, damping and friction in order."""
        return [getattr(self, field.name) for field in fields(self)]
