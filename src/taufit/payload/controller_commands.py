"""Payload commands of robot controllers: values in the flange frame, one line per manufacturer.

With T the flange (the robot's tip) in the last link's frame, rotation R and origin t,

    centre_flange = R' (centre - t),      inertia_flange = R' inertia R      (about the centre).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass

FRAME = "flange (the robot's tip)"


def manufacturer(robot: str) -> str | None:
    """Manufacturer of the controller by the robot's name; None if unknown."""
    name = robot.lower().replace("_", "").replace("-", "").replace(" ", "")
    prefixes = {
        "ur": ("ur3", "ur5", "ur7", "ur8", "ur10", "ur12", "ur15", "ur16", "ur20", "ur30"),
        "franka": ("panda", "fr3", "fp3", "franka"),
        "kuka": ("kr", "lbr", "iiwa", "kuka"),
        "abb": ("irb", "gofa", "yumi", "swifti", "abb"),
    }
    return next(
        (maker for maker, model_prefixes in prefixes.items() if name.startswith(model_prefixes)),
        None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class FlangePayload:
    """Mass, centre and inertia in the axes of the flange.

    Attributes:
        mass: Mass [kg].
        centre: Centre of mass from the flange's origin [m].
        inertia: Inertia about the centre of mass [kg m^2].
    """

    mass: float
    centre: Float[Array, " 3"]
    inertia: Float[Array, "3 3"]

    @classmethod
    def from_last_link(
        cls,
        mass: float,
        centre: Float[Array, " 3"],
        inertia: Float[Array, "3 3"],
        flange: Float[Array, "4 4"],
    ) -> FlangePayload:
        """Convert from the last link's frame, given the flange in it."""
        rotation, origin = flange[:3, :3], flange[:3, 3]
        rotated = rotation.T @ inertia @ rotation
        return cls(float(mass), rotation.T @ (centre - origin), 0.5 * (rotated + rotated.T))

    def lines(self) -> dict[str, str]:
        """Controller command of each manufacturer, in the flange frame."""
        return {
            "ur": self._ur(),
            "franka": self._franka(),
            "kuka": self._kuka(),
            "abb": self._abb(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Values and commands for JSON."""
        t = self.inertia
        inertia = [t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]
        lines = self.lines()
        return {
            "frame": FRAME,
            "mass": self.mass,
            "cog": self.centre.tolist(),
            "inertia": [float(x) for x in inertia],
            "inertia_order": ["Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"],
            "script": lines["ur"],
            "lines": lines,
        }

    def _ur(self) -> str:
        """URScript command: centre [m], inertia Ixx, Iyy, Izz, Ixy, Ixz, Iyz about it."""
        t = self.inertia
        entries = [t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]
        return (
            f"set_target_payload({self.mass:.4f}, [{_with_digits(self.centre, 5)}], "
            f"[{_significant_digits(entries)}])"
        )

    def _franka(self) -> str:
        """libfranka command: centre [m], inertia by columns."""
        return (
            f"robot.setLoad({self.mass:.4f}, {{{{{_with_digits(self.centre, 5)}}}}}, "
            f"{{{{{_significant_digits(self.inertia.T.ravel())}}}}});"
        )

    def _kuka(self) -> str:
        """KRL command [mm]; A, B, C rotate the flange axes onto the principal axes (Z, Y, X)."""
        moments, axes = self._principal()
        pitch = np.arctan2(-axes[2, 0], np.hypot(axes[0, 0], axes[1, 0]))
        if np.hypot(axes[0, 0], axes[1, 0]) > 1e-9:
            yaw, roll = np.arctan2(axes[1, 0], axes[0, 0]), np.arctan2(axes[2, 1], axes[2, 2])
        else:
            yaw, roll = 0.0, np.arctan2(-axes[1, 2], axes[1, 1])
        x, y, z = 1e3 * self.centre
        a, b, c = np.degrees([yaw, pitch, roll]) + 0.0
        jx, jy, jz = moments
        return (
            f"LOAD_DATA[1]={{M {self.mass:.4f},CM {{X {x:.3f},Y {y:.3f},Z {z:.3f},"
            f"A {a:.3f},B {b:.3f},C {c:.3f}}},J {{X {jx:.6g},Y {jy:.6g},Z {jz:.6g}}}}}"
        )

    def _abb(self) -> str:
        """RAPID command for tool0 [mm], with the principal axes as a quaternion."""
        moments, axes = self._principal()
        return (
            f"PERS loaddata payload := "
            f"[{self.mass:.4f},[{_with_digits(1e3 * self.centre, 3, ',')}],"
            f"[{_with_digits(_quaternion(axes), 6, ',')}],{_significant_digits(moments, ',')}];"
        )

    def _principal(self) -> tuple[Float[Array, " 3"], Float[Array, "3 3"]]:
        """Principal moments and axes (columns), each close to the flange axis of the same name."""
        moments, axes = np.linalg.eigh(self.inertia)
        order = _axis_order(np.abs(axes))
        moments, axes = moments[order], axes[:, order]
        axes = axes * np.where(np.diag(axes) < 0.0, -1.0, 1.0)
        if np.linalg.det(axes) < 0.0:
            axes[:, int(np.argmin(np.abs(np.diag(axes))))] *= -1.0
        return moments, axes


def _axis_order(share: Float[Array, "3 3"]) -> list[int]:
    """Columns for x, y and z with the largest diagonal."""
    from itertools import permutations

    return list(
        max(permutations(range(3)), key=lambda p: sum(share[i, k] for i, k in enumerate(p)))
    )


def _quaternion(r: Float[Array, "3 3"]) -> Float[Array, " 4"]:
    """Quaternion w, x, y, z of a rotation close to the identity: w is not small."""
    w = 0.5 * np.sqrt(max(1.0 + np.trace(r), 1e-12))
    q = np.array(
        [w, *(np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]) / (4 * w))]
    )
    return q / np.linalg.norm(q)


def _with_digits(values: Any, digits: int, comma: str = ", ") -> str:
    return comma.join(f"{float(x) + 0.0:.{digits}f}" for x in values)


def _significant_digits(values: Any, comma: str = ", ") -> str:
    return comma.join(f"{float(x) + 0.0:.6g}" for x in values)
