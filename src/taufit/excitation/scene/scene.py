"""The arm's bodies and what is around them: itself, planes (table, walls, ceiling)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from taufit.arrays import Array, Float
from taufit.excitation.scene.capsule import Capsule
from taufit.excitation.scene.clearances import BodyKinematics, pair_distances
from taufit.excitation.scene.link_bodies import arm_length, fit_capsules
from taufit.excitation.scene.urdf_capsules import capsules_from_urdf
from taufit.robot import Robot

_POSES = 600


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Half-space the arm keeps out of: normal . x >= offset stays free. Base frame.

    Attributes:
        name: For messages: "table", "wall".
        normal: Unit vector into the free side.
        offset: [m].
    """

    name: str
    normal: Float[Array, " 3"]
    offset: float


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Bodies of the arm and what is around it.

    Attributes:
        capsules: Of the arm.
        planes: Around it.
        clearance: Least distance to keep [m].
        self_collision: Whether the arm may not touch itself.
        tip_speed: Largest speed of the tip [m/s].
        pairs: Indices of capsules to keep apart.
    """

    capsules: tuple[Capsule, ...] = ()
    planes: tuple[Plane, ...] = ()
    clearance: float = 0.01
    self_collision: bool = True
    tip_speed: float = np.inf
    pairs: tuple[tuple[int, int], ...] = field(default=())

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
    """A scene with capsules around the URDF's own collision shapes, or fitted to the arm.

    Links whose shapes are meshes get fitted capsules, as do all where a `radius` is given.
    """
    fitted = fit_capsules(robot, radius)
    own = capsules_from_urdf(robot) if radius is None else ()
    described = {capsule.link for capsule in own}
    capsules = (*(c for c in fitted if c.link not in described), *own)
    pairs: tuple[tuple[int, int], ...] = ()
    if self_collision:
        capsules, pairs = allowed_pairs(robot, capsules, clearance)
    return Scene(capsules, planes, clearance, self_collision, tip_speed, pairs)


def mounting_plane(robot: Robot) -> Plane:
    """The surface the base is mounted on: the arm stays on the positive z side of its base."""
    return Plane("mounting surface", np.array([0.0, 0.0, 1.0]), 0.0)


def allowed_pairs(
    robot: Robot, capsules: tuple[Capsule, ...], clearance: float = 0.01, *, seed: int = 0
) -> tuple[tuple[Capsule, ...], tuple[tuple[int, int], ...]]:
    """Pairs of capsules to keep apart, and the capsules with those that had to be shortened.

    Left out are neighbours, bodies joined by so short a link that they are close in nearly every
    pose (no motion could keep them apart), and bodies that pass each other in every pose without
    touching. Where a link between two bodies is shorter than they are thick, the outer one counts
    from where it has left the hinge.
    """
    shortened: list[Capsule] = list(capsules)
    pairs = []
    for a in range(len(capsules)):
        for b in range(a + 1, len(capsules)):
            gap = capsules[b].link - capsules[a].link
            if gap == 2:
                beyond = _beyond_hinge(robot, capsules[a], capsules[b], clearance)
                if beyond is None:
                    continue
                if beyond is not capsules[b]:
                    shortened.append(beyond)
                    pairs.append((a, len(shortened) - 1))
                    continue
            if abs(gap) > 1:
                pairs.append((a, b))
    if not pairs:
        return capsules, ()
    bodies = tuple(shortened)
    q = _random_poses(robot, _POSES, seed)
    distance = pair_distances(BodyKinematics(robot, bodies, q), bodies, tuple(pairs))
    # Bodies joined by a short wrist never get far from each other; others do in most poses.
    apart = np.quantile(distance, 0.75, axis=0) > 0.04 * arm_length(robot)
    steps = np.array([abs(bodies[b].link - bodies[a].link) for a, b in pairs])
    passing = (steps == 2) & (distance.min(axis=0) > 0.004)
    fixed = np.ptp(distance, axis=0) < 1e-9
    keep = apart & ~passing & ~fixed
    return bodies, tuple(pair for pair, counts in zip(pairs, keep, strict=True) if counts)


def _beyond_hinge(robot: Robot, inner: Capsule, outer: Capsule, clearance: float) -> Capsule | None:
    """The outer body without its part that is always close to the inner one; None if all is."""
    reach = inner.radius + outer.radius + clearance
    # Where the outer body starts, seen from the inner one while the joint between them turns.
    rest = np.zeros((32, robot.joints))
    between = inner.link + 1
    rest[:, between] = np.linspace(-np.pi, np.pi, 32)
    point = replace(outer, end=outer.start, radius=0.0)
    both = (replace(inner, radius=0.0), point)
    near = pair_distances(BodyKinematics(robot, both, rest), both, ((0, 1),)).min()
    if near >= reach:
        return outer
    span = float(np.linalg.norm(outer.end - outer.start))
    if reach >= 0.8 * span:
        return None
    return replace(outer, start=outer.start + (reach / span) * (outer.end - outer.start))


def _random_poses(robot: Robot, count: int, seed: int) -> Float[Array, "n j"]:
    low = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -np.pi)
    high = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, np.pi)
    return np.random.default_rng(seed).uniform(low, high, size=(count, robot.joints))
