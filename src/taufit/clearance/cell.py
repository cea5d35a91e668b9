"""Cell of a motion as stated in its file: joint limits and obstacles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.fields import Field
from taufit.excitation import Plane, Scene, default_limits, mounting_plane, scene_for
from taufit.excitation.scene import fit_capsules
from taufit.robot import Limits, Robot

# Clearance of a file without a cell, and smallest clearance that counts as certified [m].
DEFAULT_CLEARANCE, LEAST_CLEARANCE = 0.010, 0.002
# Acceleration limit for a robot without one, whatever a file says [rad/s^2].
LARGEST_ACCELERATION = 40.0
_NAMES = ("lower", "upper", "velocity", "acceleration", "torque")
_MOST_PLANES = 100


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Cell for which a motion was planned.

    Attributes:
        planes: Obstacles besides the mounting surface.
        clearance: Minimum distance [m].
        radius: Radius of the capsules around the links, instead of the robot's bodies [m].
        tip_speed: Maximum speed of the tip [m/s].
        free_space: Whether no obstacle was considered.
        limits: Joint limits.
        jerk: Maximum jerk of every joint.
    """

    planes: tuple[Plane, ...]
    clearance: float
    radius: float | None
    tip_speed: float
    free_space: bool
    limits: Limits
    jerk: float = np.inf

    @classmethod
    def default(cls, robot: Robot) -> Cell:
        """Cell of a file without one: the robot itself and its mounting surface, 10 mm."""
        limits = default_limits(robot)
        return cls((), DEFAULT_CLEARANCE, None, np.inf, False, limits)

    @classmethod
    def of(
        cls, scene: Scene, limits: Limits, jerk: float = np.inf, radius: float | None = None
    ) -> Cell:
        """Cell of a planned motion.

        Args:
            scene: Bodies and obstacles.
            limits: Joint limits.
            jerk: Maximum jerk.
            radius: Radius of the scene's capsules, if given [m].
        """
        planes = tuple(plane for plane in scene.planes if plane.name != "mounting surface")
        free = not scene.capsules or not (scene.pairs or scene.planes)
        return cls(planes, scene.clearance, radius, scene.tip_speed, free, limits, jerk)

    def scene(self, robot: Robot) -> Scene:
        """Bodies of the robot, its mounting surface and the planes."""
        if self.free_space:
            return Scene(tip_speed=self.tip_speed)
        return scene_for(
            robot,
            planes=(mounting_plane(robot), *self.planes),
            clearance=self.clearance,
            tip_speed=self.tip_speed,
            radius=self.radius,
        )

    def uncertified(self, robot: Robot) -> list[str]:
        """Descriptions of what no proof covers; empty if all is covered."""
        if self.free_space:
            return ["the motion was planned in free space: self-collision and table are not proved"]
        out = []
        if self.clearance < LEAST_CLEARANCE:
            out.append(
                f"the cell keeps {1e3 * self.clearance:.1f} mm of distance; "
                f"{1e3 * LEAST_CLEARANCE:.0f} mm are the least that is proved"
            )
        if self.radius is not None:
            drawn = max((body.radius for body in fit_capsules(robot)), default=0.0)
            if self.radius < drawn - 1e-9:
                out.append(
                    f"bodies of {1e3 * self.radius:.0f} mm radius were assumed; {robot.name} has "
                    f"up to {1e3 * drawn:.0f} mm"
                )
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a motion file; `from_field` returns the same cell."""
        return {
            "planes": [
                {"name": p.name, "normal": p.normal.tolist(), "offset": p.offset}
                for p in self.planes
            ],
            "clearance": self.clearance,
            "radius": self.radius,
            "tip_speed": _or_null(self.tip_speed),
            "free_space": self.free_space,
            "limits": {
                name: [_or_null(x) for x in getattr(self.limits, name).tolist()] for name in _NAMES
            },
            "jerk": _or_null(self.jerk),
        }

    @classmethod
    def from_field(cls, data: Field, joints: int) -> Cell:
        """Inverse of `to_dict`; errors name the place of an invalid value."""
        planes: list[Plane] = []
        for plane in data["planes"].required().items():
            normal = plane["normal"].numbers(3)
            size = float(np.linalg.norm(normal))
            if not 0.999 < size < 1.001 or len(planes) >= _MOST_PLANES:
                plane["normal"].fail(f"a unit vector, of at most {_MOST_PLANES} planes")
            offset = plane["offset"].required().number()
            planes.append(Plane(plane["name"].text()[:80], normal / size, offset))
        radius = data["radius"]
        limits = data["limits"].required()
        rows = {
            name: limits[name]
            .required()
            .numbers(joints, missing=-np.inf if name == "lower" else np.inf)
            for name in _NAMES
        }
        return cls(
            tuple(planes),
            data["clearance"].required().number(low=0.0, most=10.0),
            None if radius.missing else radius.number(low=0.0, most=10.0),
            data["tip_speed"].number(np.inf, above=0.0),
            data["free_space"].required().flag(),
            Limits(**rows),
            data["jerk"].number(np.inf, above=0.0),
        )


def smaller_limits(first: Limits, second: Limits) -> Limits:
    """The narrower of two sets of limits, joint by joint."""
    return Limits(
        np.maximum(first.lower, second.lower),
        np.minimum(first.upper, second.upper),
        np.minimum(first.velocity, second.velocity),
        np.minimum(first.acceleration, second.acceleration),
        np.minimum(first.torque, second.torque),
    )


def limits_to_keep(robot: Robot, cell: Cell) -> Limits:
    """Smaller of the robot's and the cell's limits; default limits where neither has any."""
    own = robot.limits
    arm = Limits(
        own.lower,
        own.upper,
        own.velocity,
        np.where(np.isfinite(own.acceleration), own.acceleration, LARGEST_ACCELERATION),
        # Torque limits count only if the motion was planned with them.
        np.full(robot.joints, np.inf),
    )
    both = smaller_limits(arm, cell.limits)
    usual = default_limits(robot)
    return Limits(
        np.where(np.isfinite(both.lower), both.lower, usual.lower),
        np.where(np.isfinite(both.upper), both.upper, usual.upper),
        np.where(np.isfinite(both.velocity), both.velocity, usual.velocity),
        both.acceleration,
        both.torque,
    )


def _or_null(value: float) -> float | None:
    return value if np.isfinite(value) else None
