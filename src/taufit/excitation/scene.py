"""What the arm must not touch: itself, planes (table, walls, ceiling), the outside of a box.

Links are capsules: a segment with a radius. Distances and their derivatives with respect to joint
positions come from the closest points, batched over poses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from taufit.arrays import Array, Float
from taufit.dynamics import forward_kinematics
from taufit.excitation.capsule import Capsule
from taufit.excitation.urdf_capsules import capsules_from_urdf
from taufit.robot import Robot


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


def fit_capsules(robot: Robot, radius: float | None = None) -> tuple[Capsule, ...]:
    """One or two capsules per link, from the arm's own geometry.

    Link i spans from its joint's axis to the next joint's; the path goes through the link frame's
    origin, and the base's column from the base to the first joint. The radius is 5 % of the arm's
    length by default, three quarters of that in the wrist, about what industrial arms have; give
    your own where it matters.
    """
    ends = _path_points(robot)
    thick = 0.05 * arm_length(robot) if radius is None else radius
    capsules = []
    column = robot.links[0].placement[:3, 3]
    if np.linalg.norm(column) > 1e-3:
        capsules.append(Capsule(-1, np.zeros(3), column, thick))
    for link, points in enumerate(ends):
        slim = thick * (1.0 if link < robot.joints / 2 else 0.75)
        for a, b in pairwise(points):
            if np.linalg.norm(b - a) > 1e-3:
                capsules.append(Capsule(link, a, b, slim))
    return tuple(capsules)


def arm_length(robot: Robot) -> float:
    """Length of the path from the first joint through the links to the tip [m]."""
    steps = [np.linalg.norm(np.diff(points, axis=0), axis=1) for points in _path_points(robot)]
    return float(sum(step.sum() for step in steps))


def _path_points(robot: Robot) -> list[Float[Array, "k 3"]]:
    """Per link, in its own frame: joint axis foot, frame origin, next joint's foot (or the tip)."""
    out = []
    for i, link in enumerate(robot.links):
        w, u = link.screw[:3], link.screw[3:]
        foot = np.zeros(3) if link.prismatic else np.cross(w, u)
        if i + 1 < robot.joints:
            after = robot.links[i + 1]
            w2, u2 = after.screw[:3], after.screw[3:]
            local = np.zeros(3) if after.prismatic else np.cross(w2, u2)
            end = after.placement[:3, :3] @ local + after.placement[:3, 3]
        else:
            end = robot.tip[:3, 3]
        points = [foot]
        for point in (np.zeros(3), end):
            if np.linalg.norm(point - points[-1]) > 1e-9:
                points.append(point)
        out.append(np.array(points))
    return out


def allowed_pairs(
    robot: Robot, capsules: tuple[Capsule, ...], *, samples: int = 300, seed: int = 0
) -> tuple[tuple[int, int], ...]:
    """Pairs of capsules to keep apart: not on the same or adjacent links, and not a hinge.

    Pairs that stay close in nearly every random pose are neighbours by construction (short wrist
    links), which no motion could keep apart.
    """
    pairs = [
        (a, b)
        for a in range(len(capsules))
        for b in range(a + 1, len(capsules))
        if abs(capsules[a].link - capsules[b].link) > 1
    ]
    if not pairs:
        return ()
    rng = np.random.default_rng(seed)
    low = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -np.pi)
    high = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, np.pi)
    q = rng.uniform(low, high, size=(samples, robot.joints))
    distance, _ = _pair_distances(robot, Scene(capsules, pairs=tuple(pairs)), q, slope=False)
    # Bodies joined by a short wrist never get far from each other; others do in most poses.
    apart = np.quantile(distance, 0.75, axis=0) > 0.04 * arm_length(robot)
    return tuple(pair for pair, counts in zip(pairs, apart, strict=True) if counts)


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
    pairs = allowed_pairs(robot, capsules) if self_collision else ()
    return Scene(capsules, planes, clearance, self_collision, tip_speed, pairs)


def mounting_plane(robot: Robot) -> Plane:
    """The surface the base is bolted to: the arm stays on the positive z side of its base."""
    return Plane("mounting surface", np.array([0.0, 0.0, 1.0]), 0.0)


class Clearances:
    """Distances of a scene for many poses, with derivatives.

    values: one column per constraint, metres of free space beyond the clearance (>= 0 is fine);
    names: what each column is about.
    """

    def __init__(self, robot: Robot, scene: Scene) -> None:
        self.robot, self.scene = robot, scene
        names = [
            f"{_body(scene.capsules[a])} and {_body(scene.capsules[b])}" for a, b in scene.pairs
        ]
        # A capsule on the first link turns about the base axis and cannot leave the surface the
        # arm is bolted to.
        self.plane_pairs = [
            (p, c, end)
            for p, plane in enumerate(scene.planes)
            for c, capsule in enumerate(scene.capsules)
            for end in (0, 1)
            if capsule.link > 0 or (capsule.link == 0 and plane.name != "mounting surface")
        ]
        names += [
            f"{scene.planes[p].name} and {_body(scene.capsules[c])}" for p, c, _ in self.plane_pairs
        ]
        self.names = tuple(names)

    def evaluate(
        self, q: Float[Array, "n j"], *, slope: bool = True
    ) -> tuple[Float[Array, "n k"], Float[Array, "n k j"] | None]:
        """Free space of every constraint, and its derivative."""
        n, joints = q.shape
        values, slopes = [], []
        kinematics = _Kinematics(self.robot, self.scene.capsules, q)
        if self.scene.pairs:
            distance, change = _pair_distances(
                self.robot, self.scene, q, slope=slope, kinematics=kinematics
            )
            values.append(distance - self.scene.clearance)
            if change is not None:
                slopes.append(change)
        if self.plane_pairs:
            p, c, end = (np.array(column) for column in zip(*self.plane_pairs, strict=True))
            normals = np.array([plane.normal for plane in self.scene.planes])[p]
            offsets = np.array([plane.offset for plane in self.scene.planes])[p]
            radii = np.array([capsule.radius for capsule in self.scene.capsules])[c]
            points = kinematics.points[:, c, end]
            height = np.einsum("nki,ki->nk", points, normals) - offsets - radii
            values.append(height - self.scene.clearance)
            if slope:
                moves = kinematics.jacobian(points, c)
                slopes.append(np.einsum("nkij,ki->nkj", moves, normals))
        value = np.concatenate(values, 1) if values else np.zeros((n, 0))
        if not slope:
            return value, None
        return value, np.concatenate(slopes, 1) if slopes else np.zeros((n, 0, joints))


def _body(capsule: Capsule) -> str:
    return f"link {capsule.link + 1}" if capsule.link >= 0 else "the base"


class _Kinematics:
    """Capsule ends in the base frame, and how points on links move with the joints."""

    def __init__(self, robot: Robot, capsules: tuple[Capsule, ...], q: Float[Array, "n j"]) -> None:
        poses = forward_kinematics(robot, q)
        # Behind the links stands the base, so that index -1 is the base's frame.
        poses[:, -1] = np.eye(4)
        rotations, origins = poses[:, :, :3, :3], poses[:, :, :3, 3]
        screws = np.vstack([robot.screws, np.zeros(6)])
        angular = np.einsum("njab,jb->nja", rotations, screws[:, :3])
        linear = np.einsum("njab,jb->nja", rotations, screws[:, 3:])
        # Velocity of the body point at the base origin: linear + w x (0 - origin).
        self.angular = angular[:, :-1]
        self.linear = (linear - np.cross(angular, origins))[:, :-1]
        self.links = np.array([capsule.link for capsule in capsules], dtype=int)
        local = np.array([[capsule.start, capsule.end] for capsule in capsules]).reshape(-1, 2, 3)
        self.points = (
            np.einsum("nkab,keb->nkea", rotations[:, self.links], local)
            + origins[:, self.links][:, :, None]
        )

    def jacobian(self, points: Float[Array, "n k 3"], capsule: Array) -> Float[Array, "n k 3 j"]:
        """Velocity of each point per joint velocity; joints behind its link do not move it."""
        moved = np.cross(self.angular[:, None], points[:, :, None]) + self.linear[:, None]
        joints = self.angular.shape[1]
        before = np.arange(joints)[None, :] <= self.links[capsule][:, None]
        return np.swapaxes(moved * before[None, :, :, None], 2, 3)


def _pair_distances(
    robot: Robot,
    scene: Scene,
    q: Float[Array, "n j"],
    *,
    slope: bool = True,
    kinematics: _Kinematics | None = None,
) -> tuple[Float[Array, "n k"], Float[Array, "n k j"] | None]:
    """Distance between the surfaces of every pair, negative where they overlap."""
    kinematics = kinematics or _Kinematics(robot, scene.capsules, q)
    first, second = (np.array(column) for column in zip(*scene.pairs, strict=True))
    radii = np.array([capsule.radius for capsule in scene.capsules])
    p1, p2 = kinematics.points[:, first, 0], kinematics.points[:, first, 1]
    p3, p4 = kinematics.points[:, second, 0], kinematics.points[:, second, 1]
    s, t = closest_parameters(p1, p2 - p1, p3, p4 - p3)
    a = p1 + s[..., None] * (p2 - p1)
    b = p3 + t[..., None] * (p4 - p3)
    gap = a - b
    length = np.linalg.norm(gap, axis=-1)
    distance = length - radii[first] - radii[second]
    if not slope:
        return distance, None
    direction = gap / np.maximum(length, 1e-9)[..., None]
    move = kinematics.jacobian(a, first) - kinematics.jacobian(b, second)
    return distance, np.einsum("nkij,nki->nkj", move, direction)


def closest_parameters(
    p: Float[Array, "... 3"],
    u: Float[Array, "... 3"],
    r: Float[Array, "... 3"],
    v: Float[Array, "... 3"],
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    """Where on the segments p + s u and r + t v (s, t in [0, 1]) they come closest.

    The unconstrained optimum is clamped in s, t follows, is clamped, and s follows again: exact for
    segments, parallel ones included.
    """
    w = p - r
    uu, vv = np.sum(u * u, -1), np.sum(v * v, -1)
    uv, uw, vw = np.sum(u * v, -1), np.sum(u * w, -1), np.sum(v * w, -1)
    across = uu * vv - uv**2
    safe = across > 1e-12 * uu * vv
    s = np.where(safe, (uv * vw - vv * uw) / np.where(safe, across, 1.0), 0.0)
    s = np.clip(s, 0.0, 1.0)
    t = np.clip((uv * s + vw) / np.maximum(vv, 1e-18), 0.0, 1.0)
    s = np.clip((uv * t - uw) / np.maximum(uu, 1e-18), 0.0, 1.0)
    return s, t
