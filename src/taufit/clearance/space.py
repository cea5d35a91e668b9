"""Free space of an arm among its surroundings, with how fast each distance can change.

A distance is Lipschitz in the joints: |d distance/dt| <= sum_j lever_j |v_j|, the lever of joint j
being the farthest that the moved body can be from its axis in any pose. Between two bodies of the
arm only the joints between them count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.excitation.scene import Capsule, Clearances, Scene
from taufit.robot import Limits, Robot

# Poses whose distances are computed at once.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Distances of a scene that are kept, and levers of the joints.

    Attributes:
        robot: The arm.
        scene: Its bodies and its surroundings.
        limits: Of its joints.
        clearances: Distance of every pair of bodies, beyond what is kept.
        levers: Largest change of each distance per unit of each joint [m/rad or 1].
        tip_levers: Largest distance of the tip from each joint's axis [m].
    """

    robot: Robot
    scene: Scene
    limits: Limits
    clearances: Clearances = field(init=False)
    levers: Float[Array, "k j"] = field(init=False)
    tip_levers: Float[Array, " j"] = field(init=False)

    def __post_init__(self) -> None:
        clearances = Clearances(self.robot, self.scene)
        reach = _Reach(self.robot, self.limits)
        object.__setattr__(self, "clearances", clearances)
        object.__setattr__(self, "levers", _levers(clearances, reach))
        last = self.robot.joints - 1
        tip = [reach.of(j, last, self.robot.tip[:3, 3]) for j in range(self.robot.joints)]
        object.__setattr__(self, "tip_levers", np.array(tip))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the pairs."""
        return self.clearances.names

    @property
    def kept(self) -> Float[Array, " k"]:
        """Distance kept by every pair [m]."""
        return self.clearances.required

    def slack(self, largest: float) -> Float[Array, " k"]:
        """Part of the kept distance that a proof may leave open, at most a fifth [m]."""
        return np.minimum(largest, 0.2 * self.kept)

    def distances(self, q: Float[Array, "n j"]) -> Float[Array, "n k"]:
        """Distance of every pair beyond what is kept [m]."""
        if len(q) <= _AT_ONCE:
            return self.clearances.values(q)
        parts = [self.clearances.values(q[i : i + _AT_ONCE]) for i in range(0, len(q), _AT_ONCE)]
        return np.concatenate(parts)

    def nearest(self, q: Float[Array, " j"]) -> tuple[str, float]:
        """The pair that is shortest of its distance in a pose, and by how much it is beyond it."""
        if not self.names:
            return "", np.inf
        free = self.distances(q[None])[0]
        return self.names[int(free.argmin())], float(free.min())


class _Reach:
    """Largest distances between joint axes and points of the links, whatever the joints do."""

    def __init__(self, robot: Robot, limits: Limits) -> None:
        self.slides = np.array([link.prismatic for link in robot.links])
        w, u = robot.screws[:, :3], robot.screws[:, 3:]
        self.foot = np.where(self.slides[:, None], 0.0, np.cross(w, u))
        travel = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
        travel = np.where(self.slides, travel, 0.0)
        # From the foot of each joint's axis, in its parent's frame, to the parent's own foot.
        placed = np.einsum("jab,jb->ja", robot.placements[:, :3, :3], self.foot)
        placed += robot.placements[:, :3, 3]
        before = np.vstack([np.zeros(3), self.foot[:-1]])
        self.span = np.linalg.norm(placed - before, axis=1) + travel

    def of(self, joint: int, link: int, point: Float[Array, " 3"]) -> float:
        """From a joint's axis to a point of a link at or behind it [m]; 1 for a sliding joint."""
        if self.slides[joint]:
            return 1.0
        far = float(np.linalg.norm(point - self.foot[link]))
        return far + float(self.span[joint + 1 : link + 1].sum())


def _levers(clearances: Clearances, reach: _Reach) -> Float[Array, "k j"]:
    robot, scene = clearances.robot, clearances.scene
    out = np.zeros((len(clearances.names), robot.joints))

    def farthest(joint: int, body: Capsule, ends: tuple[Float[Array, " 3"], ...]) -> float:
        return max(reach.of(joint, body.link, end) for end in ends)

    for k, (a, b) in enumerate(zip(clearances.first, clearances.second, strict=True)):
        inner, outer = sorted((scene.capsules[a], scene.capsules[b]), key=lambda c: c.link)
        for joint in range(inner.link + 1, outer.link + 1):
            out[k, joint] = farthest(joint, outer, (outer.start, outer.end))
    axis = robot.placements[0, :3, :3] @ robot.screws[0, :3]
    for i, (c, end) in enumerate(zip(clearances.body, clearances.end, strict=True)):
        body = scene.capsules[c]
        point = (body.start, body.end)[end]
        # Turning about a plane's normal changes no height above it.
        first = int(abs(abs(float(clearances.normals[i] @ axis)) - 1.0) < 1e-12)
        for joint in range(first, body.link + 1):
            out[len(clearances.first) + i, joint] = farthest(joint, body, (point,))
    return out
