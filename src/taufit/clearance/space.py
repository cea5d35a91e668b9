"""Collision space of a robot and its surroundings, with Lipschitz bounds of each distance.

A distance is Lipschitz in the joints: |d distance/dt| <= sum_j lever_j |v_j|, the lever of joint j
being the largest distance of the moved body from its axis in any pose. For two bodies of the robot
only the joints between them count.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation.scene import Capsule, Clearances, Scene
from taufit.robot import JointLimits, Robot

# Number of poses evaluated at once.
_BATCH_SIZE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class CollisionSpace:
    """Distances of a scene beyond their clearances, and levers of the joints.

    Attributes:
        robot: The robot.
        scene: Bodies and surroundings.
        limits: Joint limits.
        clearances: Distance of every pair of bodies beyond its clearance.
        levers: Largest change of each distance per unit of each joint [m/rad or 1].
        tip_levers: Largest distance of the tip from each joint's axis [m].
    """

    robot: Robot
    scene: Scene
    limits: JointLimits
    clearances: Clearances = field(init=False)
    levers: Float[Array, "k j"] = field(init=False)
    tip_levers: Float[Array, " j"] = field(init=False)

    def __post_init__(self) -> None:
        clearances = Clearances(self.robot, self.scene)
        reach = _LinkReach(self.robot, self.limits)
        object.__setattr__(self, "clearances", clearances)
        object.__setattr__(self, "levers", _levers(clearances, reach))
        last = self.robot.joints - 1
        tip = [reach.distance(j, last, self.robot.tip[:3, 3]) for j in range(self.robot.joints)]
        object.__setattr__(self, "tip_levers", np.array(tip))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pairs."""
        return self.clearances.names

    @property
    def required(self) -> Float[Array, " k"]:
        """Required clearance of every pair [m]."""
        return self.clearances.required

    def slack(self, largest: float) -> Float[Array, " k"]:
        """Part of the required clearance that a proof may leave open, at most a fifth [m]."""
        return np.minimum(largest, 0.2 * self.required)

    def distances(self, q: Float[Array, "n j"]) -> Float[Array, "n k"]:
        """Distance of every pair beyond its clearance [m]."""
        if len(q) <= _BATCH_SIZE:
            return self.clearances.values(q)
        parts = [
            self.clearances.values(q[i : i + _BATCH_SIZE]) for i in range(0, len(q), _BATCH_SIZE)
        ]
        return np.concatenate(parts)

    def nearest(self, q: Float[Array, " j"]) -> tuple[str, float]:
        """Pair with the smallest distance beyond its clearance in a pose, and that distance [m]."""
        if not self.names:
            return "", np.inf
        distances = self.distances(q[None])[0]
        return self.names[int(distances.argmin())], float(distances.min())


class _LinkReach:
    """Largest distances between joint axes and points of the links in any pose."""

    def __init__(self, robot: Robot, limits: JointLimits) -> None:
        self.is_prismatic = robot.is_prismatic
        w, u = robot.screws[:, :3], robot.screws[:, 3:]
        self.foot = np.where(self.is_prismatic[:, None], 0.0, np.cross(w, u))
        travel = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
        travel = np.where(self.is_prismatic, travel, 0.0)
        # From the foot of each joint's axis, in its parent's frame, to the parent's foot.
        foot_in_parent = np.einsum("jab,jb->ja", robot.placements[:, :3, :3], self.foot)
        foot_in_parent += robot.placements[:, :3, 3]
        parent_foot = np.vstack([np.zeros(3), self.foot[:-1]])
        self.span = np.linalg.norm(foot_in_parent - parent_foot, axis=1) + travel

    def distance(self, joint: int, link: int, point: Float[Array, " 3"]) -> float:
        """Distance from a joint axis to a point of a later link [m]; 1 for a prismatic joint."""
        if self.is_prismatic[joint]:
            return 1.0
        offset = float(np.linalg.norm(point - self.foot[link]))
        return offset + float(self.span[joint + 1 : link + 1].sum())


def _levers(clearances: Clearances, reach: _LinkReach) -> Float[Array, "k j"]:
    robot, scene = clearances.robot, clearances.scene
    levers = np.zeros((len(clearances.names), robot.joints))

    def farthest(joint: int, body: Capsule, ends: tuple[Float[Array, " 3"], ...]) -> float:
        return max(reach.distance(joint, body.link, end) for end in ends)

    for k, (a, b) in enumerate(zip(clearances.first, clearances.second, strict=True)):
        inner, outer = sorted((scene.capsules[a], scene.capsules[b]), key=lambda c: c.link)
        for joint in range(inner.link + 1, outer.link + 1):
            levers[k, joint] = farthest(joint, outer, (outer.start, outer.end))
    axis = robot.placements[0, :3, :3] @ robot.screws[0, :3]
    for i, (c, end) in enumerate(zip(clearances.body, clearances.end, strict=True)):
        body = scene.capsules[c]
        point = (body.start, body.end)[end]
        # Rotation about a plane's normal does not change the height above it.
        first = int(abs(abs(float(clearances.normals[i] @ axis)) - 1.0) < 1e-12)
        for joint in range(first, body.link + 1):
            levers[len(clearances.first) + i, joint] = farthest(joint, body, (point,))
    return levers
