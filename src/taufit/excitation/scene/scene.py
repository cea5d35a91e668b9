"""Bodies of a robot and its surroundings: itself, planes (table, walls, ceiling)."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation.scene.capsule import Capsule
from taufit.excitation.scene.clearances import BodyKinematics, pair_distances
from taufit.excitation.scene.link_bodies import arm_length, fit_capsules
from taufit.excitation.scene.urdf_capsules import capsules_from_urdf
from taufit.robot import Robot

_POSES = 600


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Forbidden half-space: normal . x >= offset is free. Base frame.

    Attributes:
        name: Name for messages: "table", "wall".
        normal: Unit vector into the free side.
        offset: Distance of the plane from the origin [m].
    """

    name: str
    normal: Float[Array, " 3"]
    offset: float


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Bodies of a robot and its surroundings.

    Attributes:
        capsules: Collision bodies of the robot.
        planes: Obstacles.
        clearance: Minimum distance to keep [m].
        self_collision: Whether self-collision is checked.
        tip_speed: Maximum speed of the tip [m/s].
        pairs: Indices of capsules to keep apart.
        pair_clearance: Smaller clearance of each pair of bodies that always pass each other more
            closely than `clearance`, without touching [m].
    """

    capsules: tuple[Capsule, ...] = ()
    planes: tuple[Plane, ...] = ()
    clearance: float = 0.01
    self_collision: bool = True
    tip_speed: float = np.inf
    pairs: tuple[tuple[int, int], ...] = field(default=())
    pair_clearance: tuple[float, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.planes or self.pairs or np.isfinite(self.tip_speed))


def scene_for(
    robot: Robot,
    *,
    planes: tuple[Plane, ...] = (),
    clearance: float = 0.01,
    self_collision: bool = True,
    tip_speed: float = np.inf,
    radius: float | None = None,
) -> Scene:
    """Scene with capsules around the collision shapes of the URDF, or fitted to the robot.

    Links with meshes get fitted capsules, as do all links if a `radius` is given.
    """
    robot.require_serial("a scene with bodies around the links")
    fitted = fit_capsules(robot, radius)
    urdf_capsules = capsules_from_urdf(robot) if radius is None else ()
    described_links = {capsule.link for capsule in urdf_capsules}
    capsules = (*(c for c in fitted if c.link not in described_links), *urdf_capsules)
    pairs: tuple[tuple[int, int], ...] = ()
    pair_clearances: tuple[float, ...] = ()
    if self_collision:
        capsules, pairs, pair_clearances = collision_pairs(robot, capsules, clearance)
    return Scene(capsules, planes, clearance, self_collision, tip_speed, pairs, pair_clearances)


def mounting_plane(robot: Robot) -> Plane:
    """Mounting surface: the robot stays on the positive z side of its base."""
    return Plane("mounting surface", np.array([0.0, 0.0, 1.0]), 0.0)


def collision_pairs(
    robot: Robot, capsules: tuple[Capsule, ...], clearance: float = 0.01, *, seed: int = 0
) -> tuple[tuple[Capsule, ...], tuple[tuple[int, int], ...], tuple[float, ...]]:
    """Pairs of capsules to keep apart, with their clearances; some capsules are shortened.

    Left out are neighbours, bodies joined by so short a link that they are close in nearly every
    pose (no motion could keep them apart), and bodies that pass each other in every pose without
    touching. If a link between two bodies is shorter than they are thick, the outer one is
    shortened next to the joint; if they always pass each other more closely than the clearance,
    half of their distance is kept.
    """
    shortened: list[Capsule] = list(capsules)
    pairs: list[tuple[int, int]] = []
    clearances: list[float] = []
    for a in range(len(capsules)):
        for b in range(a + 1, len(capsules)):
            gap = abs(capsules[b].link - capsules[a].link)
            if gap < 2:
                continue
            outer, pair_clearance = b, clearance
            if gap == 2 and capsules[b].link > capsules[a].link:
                shortened_capsule, pair_clearance = _beyond_hinge(
                    robot, capsules[a], capsules[b], clearance
                )
                if shortened_capsule is None:
                    continue
                if shortened_capsule is not capsules[b]:
                    shortened.append(shortened_capsule)
                    outer = len(shortened) - 1
            pairs.append((a, outer))
            clearances.append(pair_clearance)
    if not pairs:
        return capsules, (), ()
    bodies = tuple(shortened)
    q = _random_poses(robot, _POSES, seed)
    distance = pair_distances(BodyKinematics(robot, bodies, q), bodies, tuple(pairs))
    # Bodies joined by a short wrist are always close; others are apart in most poses.
    is_usually_apart = np.quantile(distance, 0.75, axis=0) > 0.04 * arm_length(robot)
    steps = np.array([abs(bodies[b].link - bodies[a].link) for a, b in pairs])
    always_passes = (steps == 2) & (distance.min(axis=0) > 0.004)
    is_constant = np.ptp(distance, axis=0) < 1e-9
    keep = np.flatnonzero(
        (is_usually_apart | (np.array(clearances) < clearance)) & ~always_passes & ~is_constant
    )
    return bodies, tuple(pairs[k] for k in keep), tuple(clearances[k] for k in keep)


def _beyond_hinge(
    robot: Robot, inner: Capsule, outer: Capsule, clearance: float
) -> tuple[Capsule | None, float]:
    """Outer body without the part always close to the inner one, and the clearance to keep."""
    contact_distance = inner.radius + outer.radius
    # Start of the outer body relative to the inner one, for all positions of the joint between.
    poses = np.zeros((32, robot.joints))
    joint = inner.link + 1
    poses[:, joint] = np.linspace(-np.pi, np.pi, 32)
    point = replace(outer, end=outer.start, radius=0.0)
    bodies = (replace(inner, radius=0.0), point)
    minimum_distance = float(
        pair_distances(BodyKinematics(robot, bodies, poses), bodies, ((0, 1),)).min()
    )
    if minimum_distance > contact_distance + 0.002:
        return outer, min(clearance, 0.5 * (minimum_distance - contact_distance))
    span = float(np.linalg.norm(outer.end - outer.start))
    cut_length = contact_distance + clearance
    if cut_length >= 0.8 * span:
        return None, clearance
    cut = outer.start + (cut_length / span) * (outer.end - outer.start)
    return replace(outer, start=cut), clearance


def _random_poses(robot: Robot, count: int, seed: int) -> Float[Array, "n j"]:
    low = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -np.pi)
    high = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, np.pi)
    return np.random.default_rng(seed).uniform(low, high, size=(count, robot.joints))
