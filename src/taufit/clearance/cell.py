"""Cell of a motion as stated in its file: joint limits and obstacles."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.fields import Field
from taufit.excitation import Plane, Scene, default_limits, mounting_plane, scene_for
from taufit.excitation.scene import fit_capsules
from taufit.robot import JointLimits, Robot

# Clearance of a file without a cell, and smallest clearance that counts as certified [m].
DEFAULT_CLEARANCE, MINIMUM_CLEARANCE = 0.010, 0.002
# Acceleration limit for a robot without one, whatever a file says [rad/s^2].
DEFAULT_ACCELERATION = 40.0
_LIMIT_NAMES = ("lower", "upper", "velocity", "acceleration", "torque")
_MAXIMUM_PLANES = 100


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
    limits: JointLimits
    jerk: float = np.inf

    @classmethod
    def default(cls, robot: Robot) -> Cell:
        """Cell of a file without one: the robot itself and its mounting surface, 10 mm."""
        limits = default_limits(robot)
        return cls((), DEFAULT_CLEARANCE, None, np.inf, False, limits)

    @classmethod
    def of(
        cls, scene: Scene, limits: JointLimits, jerk: float = np.inf, radius: float | None = None
    ) -> Cell:
        """Cell of a planned motion.

        Args:
            scene: Bodies and obstacles.
            limits: Joint limits.
            jerk: Maximum jerk.
            radius: Radius of the scene's capsules, if given [m].
        """
        planes = tuple(plane for plane in scene.planes if plane.name != "mounting surface")
        is_free_space = not scene.capsules or not (scene.pairs or scene.planes)
        return cls(planes, scene.clearance, radius, scene.tip_speed, is_free_space, limits, jerk)

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
        messages = []
        if self.clearance < MINIMUM_CLEARANCE:
            messages.append(
                f"the cell keeps {1e3 * self.clearance:.1f} mm of distance; "
                f"{1e3 * MINIMUM_CLEARANCE:.0f} mm are the least that is proved"
            )
        if self.radius is not None:
            body_radius = max((body.radius for body in fit_capsules(robot)), default=0.0)
            if self.radius < body_radius - 1e-9:
                messages.append(
                    f"bodies of {1e3 * self.radius:.0f} mm radius were assumed; {robot.name} has "
                    f"up to {1e3 * body_radius:.0f} mm"
                )
        return messages

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a motion file; `from_field` returns the same cell."""
        return {
            "planes": [
                {"name": p.name, "normal": p.normal.tolist(), "offset": p.offset}
                for p in self.planes
            ],
            "clearance": self.clearance,
            "radius": self.radius,
            "tip_speed": _finite_or_none(self.tip_speed),
            "free_space": self.free_space,
            "limits": {
                name: [_finite_or_none(x) for x in getattr(self.limits, name).tolist()]
                for name in _LIMIT_NAMES
            },
            "jerk": _finite_or_none(self.jerk),
        }

    @classmethod
    def from_field(cls, data: Field, joints: int) -> Cell:
        """Inverse of `to_dict`; errors name the place of an invalid value."""
        planes: list[Plane] = []
        for plane in data["planes"].required().items():
            normal = plane["normal"].numbers(3)
            size = float(np.linalg.norm(normal))
            if not 0.999 < size < 1.001 or len(planes) >= _MAXIMUM_PLANES:
                plane["normal"].fail(f"a unit vector, of at most {_MAXIMUM_PLANES} planes")
            offset = plane["offset"].required().number()
            planes.append(Plane(plane["name"].text()[:80], normal / size, offset))
        radius = data["radius"]
        limits = data["limits"].required()
        rows = {
            name: limits[name]
            .required()
            .numbers(joints, missing=-np.inf if name == "lower" else np.inf)
            for name in _LIMIT_NAMES
        }
        return cls(
            tuple(planes),
            data["clearance"].required().number(low=0.0, most=10.0),
            None if radius.missing else radius.number(low=0.0, most=10.0),
            data["tip_speed"].number(np.inf, above=0.0),
            data["free_space"].required().flag(),
            JointLimits(**rows),
            data["jerk"].number(np.inf, above=0.0),
        )


def intersect_limits(first: JointLimits, second: JointLimits) -> JointLimits:
    """The narrower of two sets of limits, joint by joint."""
    return JointLimits(
        np.maximum(first.lower, second.lower),
        np.minimum(first.upper, second.upper),
        np.minimum(first.velocity, second.velocity),
        np.minimum(first.acceleration, second.acceleration),
        np.minimum(first.torque, second.torque),
    )


def limits_to_keep(robot: Robot, cell: Cell) -> JointLimits:
    """Smaller of the robot's and the cell's limits; default limits where neither has any."""
    robot_limits = robot.limits
    finite_limits = JointLimits(
        robot_limits.lower,
        robot_limits.upper,
        robot_limits.velocity,
        np.where(
            np.isfinite(robot_limits.acceleration), robot_limits.acceleration, DEFAULT_ACCELERATION
        ),
        # Torque limits count only if the motion was planned with them.
        np.full(robot.joints, np.inf),
    )
    combined = intersect_limits(finite_limits, cell.limits)
    defaults = default_limits(robot)
    return JointLimits(
        np.where(np.isfinite(combined.lower), combined.lower, defaults.lower),
        np.where(np.isfinite(combined.upper), combined.upper, defaults.upper),
        np.where(np.isfinite(combined.velocity), combined.velocity, defaults.velocity),
        combined.acceleration,
        combined.torque,
    )


def _finite_or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None
