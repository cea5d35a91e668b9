"""Distances between capsules and from planes for many poses, with derivatives.

The distance of two capsules whose axes cross has no gradient, nor where the nearest points do not
move: there the penalty also includes the overlap of the two, which has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.excitation.scene.capsule import Capsule
from taufit.robot import Robot

if TYPE_CHECKING:
    from taufit.excitation.scene.scene import Scene

# Distance of one unit of penalty [m], and positions along a capsule where overlap is evaluated.
UNIT = 0.02
_ALONG = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


class BodyKinematics:
    """Capsule ends in the base frame, and the Jacobians of points on links."""

    def __init__(
        self, robot: Robot | Chain, capsules: Sequence[Capsule], q: Float[Array, "n j"]
    ) -> None:
        chain = robot if isinstance(robot, Chain) else Chain(robot)
        rotations, origins = chain.poses(np.asarray(q, float))
        screws = chain.screws
        turned = rotations[:, :-1]
        both = turned @ screws.reshape(-1, 2, 3).swapaxes(1, 2)
        self.angular, linear = both[..., 0], both[..., 1]
        # Velocity of the body point at the base origin: linear + w x (0 - origin).
        self.linear = linear - cross(self.angular, origins[:, :-1])
        self.links = np.array([capsule.link for capsule in capsules], dtype=int)
        self.radii = np.array([capsule.radius for capsule in capsules])
        local = np.array([[capsule.start, capsule.end] for capsule in capsules]).reshape(-1, 2, 3)
        self.points = (rotations[:, self.links] @ local.swapaxes(1, 2)).swapaxes(2, 3) + origins[
            :, self.links
        ][:, :, None]

    def velocities(
        self, moment: Int[Array, " m"], points: Float[Array, "m 3"], links: Int[Array, " m"]
    ) -> Float[Array, "m j 3"]:
        """Velocity of points per unit joint velocity; joints after a link do not move it."""
        moved = cross(self.angular[moment], points[:, None]) + self.linear[moment]
        before = np.arange(self.angular.shape[1])[None, :] <= links[:, None]
        return moved * before[:, :, None]


class Clearances:
    """Distances of a scene beyond the required clearance for many poses [m]; >= 0 is feasible.

    names: description of each constraint. Constraints that no joint can change are left out.
    """

    def __init__(self, robot: Robot, scene: Scene) -> None:
        self.robot, self.scene, self.chain = robot, scene, Chain(robot)
        self.first = np.array([a for a, _ in scene.pairs], dtype=int)
        self.second = np.array([b for _, b in scene.pairs], dtype=int)
        own = scene.pair_clearance or (scene.clearance,) * len(scene.pairs)
        names = [f"{scene.capsules[a].body} and {scene.capsules[b].body}" for a, b in scene.pairs]
        corners = self._plane_corners()
        self.plane, self.body, self.end = (
            np.array([corner[k] for corner in corners], dtype=int) for k in range(3)
        )
        self.normals = np.array([scene.planes[p].normal for p in self.plane]).reshape(-1, 3)
        self.offsets = np.array([scene.planes[p].offset for p in self.plane])
        names += [f"{scene.planes[p].name} and {scene.capsules[c].body}" for p, c, _ in corners]
        self.names = tuple(names)
        self.kept = np.r_[np.array(own, float), np.full(len(self.plane), scene.clearance)]
        # Bodies that always pass closely leave no room for the search margin.
        self.room = np.where(self.kept < scene.clearance, 0.9 * self.kept, np.inf)

    def _plane_corners(self) -> list[tuple[int, int, int]]:
        """(plane, capsule, end) whose height depends on a joint.

        The first link rotates about the base axis and stays at the mounting surface.
        """
        scene = self.scene
        corners = [
            (p, c, end)
            for p, plane in enumerate(scene.planes)
            for c, capsule in enumerate(scene.capsules)
            for end in (0, 1)
            if capsule.link > 0 or (capsule.link == 0 and plane.name != "mounting surface")
        ]
        if not corners:
            return []
        q = np.random.default_rng(0).uniform(-1.0, 1.0, size=(16, self.robot.joints))
        points = BodyKinematics(self.chain, scene.capsules, q).points
        heights = [points[:, c, end] @ scene.planes[p].normal for p, c, end in corners]
        return [
            corner for corner, height in zip(corners, heights, strict=True) if np.ptp(height) > 1e-9
        ]

    def values(self, q: Float[Array, "n j"]) -> Float[Array, "n k"]:
        """Distance beyond the clearance of every constraint [m]."""
        if not self.names:
            return np.zeros((len(q), 0))
        kinematics = BodyKinematics(self.chain, self.scene.capsules, q)
        return self._values(kinematics)[0]

    def _values(self, kinematics: BodyKinematics) -> tuple[Float[Array, "n k"], Array, Array]:
        n = len(kinematics.points)
        s = t = np.zeros((n, 0))
        parts = []
        if len(self.first):
            distance, s, t = _nearest(kinematics, self.first, self.second)
            parts.append(distance)
        if len(self.plane):
            points = kinematics.points[:, self.body, self.end]
            height = np.einsum("nki,ki->nk", points, self.normals)
            parts.append(height - self.offsets - kinematics.radii[self.body])
        return np.concatenate(parts, 1) - self.kept, s, t

    def penalty(self, q: Float[Array, "n j"], margin: float) -> tuple[float, Float[Array, "n j"]]:
        """Mean squared clearance violation over times (in units of 2 cm), and its gradient."""
        by = np.zeros_like(q)
        if not self.names:
            return 0.0, by
        kinematics = BodyKinematics(self.chain, self.scene.capsules, q)
        values, s, t = self._values(kinematics)
        short = np.maximum(np.minimum(margin, self.room) - values, 0.0) / UNIT
        total = float(np.sum(short**2))
        if total == 0.0:
            return 0.0, by
        moment, which = np.nonzero(short)
        slope = -2.0 * short[moment, which] / UNIT
        pair = which < len(self.first)
        if np.any(pair):
            m, k = moment[pair], which[pair]
            self._pull_pairs(kinematics, by, (m, k, s[m, k], t[m, k]), slope[pair])
            total += self._overlap(kinematics, by, m, k, values[m, k])
        if not np.all(pair):
            m, k = moment[~pair], which[~pair] - len(self.first)
            points = kinematics.points[m, self.body[k], self.end[k]]
            moved = kinematics.velocities(m, points, kinematics.links[self.body[k]])
            np.add.at(by, m, slope[~pair, None] * np.einsum("mji,mi->mj", moved, self.normals[k]))
        return total / len(q), by / len(q)

    def _pull_pairs(
        self,
        kinematics: BodyKinematics,
        by: Float[Array, "n j"],
        where: tuple[Array, Array, Array, Array],
        slope: Float[Array, " m"],
    ) -> None:
        """Add slope * d distance of the pairs' nearest points to the gradient."""
        m, k, s, t = where
        ends = kinematics.points
        one, two = ends[m, self.first[k]], ends[m, self.second[k]]
        a = one[:, 0] + s[:, None] * (one[:, 1] - one[:, 0])
        b = two[:, 0] + t[:, None] * (two[:, 1] - two[:, 0])
        gap = a - b
        direction = gap / np.maximum(np.linalg.norm(gap, axis=-1), 1e-9)[:, None]
        moved = kinematics.velocities(m, a, kinematics.links[self.first[k]])
        moved -= kinematics.velocities(m, b, kinematics.links[self.second[k]])
        np.add.at(by, m, slope[:, None] * np.einsum("mji,mi->mj", moved, direction))

    def _overlap(
        self,
        kinematics: BodyKinematics,
        by: Float[Array, "n j"],
        m: Int[Array, " m"],
        k: Int[Array, " m"],
        values: Float[Array, " m"],
    ) -> float:
        """Mean over points along each capsule of the squared penetration of the other one."""
        inside = values < -self.kept[k]
        if not np.any(inside):
            return 0.0
        m, k = m[inside], k[inside]
        reach = kinematics.radii[self.first[k]] + kinematics.radii[self.second[k]]
        total = 0.0
        for one, two in ((self.first, self.second), (self.second, self.first)):
            mine, other = kinematics.points[m, one[k]], kinematics.points[m, two[k]]
            axis = other[:, 1] - other[:, 0]
            square = np.maximum(np.sum(axis * axis, -1), 1e-18)
            for along in _ALONG:
                point = mine[:, 0] + along * (mine[:, 1] - mine[:, 0])
                t = np.clip(np.sum((point - other[:, 0]) * axis, -1) / square, 0.0, 1.0)
                near = other[:, 0] + t[:, None] * axis
                gap = point - near
                length = np.linalg.norm(gap, axis=-1)
                depth = np.maximum(reach - length, 0.0) / UNIT / np.sqrt(2 * len(_ALONG))
                if not np.any(depth):
                    continue
                total += float(np.sum(depth**2))
                direction = gap / np.maximum(length, 1e-9)[:, None]
                moved = kinematics.velocities(m, point, kinematics.links[one[k]])
                moved -= kinematics.velocities(m, near, kinematics.links[two[k]])
                scale = -2.0 * depth / UNIT / np.sqrt(2 * len(_ALONG))
                np.add.at(by, m, scale[:, None] * np.einsum("mji,mi->mj", moved, direction))
        return total


def pair_distances(
    kinematics: BodyKinematics,
    capsules: Sequence[Capsule],
    pairs: Sequence[tuple[int, int]],
) -> Float[Array, "n k"]:
    """Distance between the surfaces of every pair, negative where they overlap."""
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    return _nearest(kinematics, first, second)[0]


def _nearest(
    kinematics: BodyKinematics, first: Int[Array, " k"], second: Int[Array, " k"]
) -> tuple[Float[Array, "n k"], Float[Array, "n k"], Float[Array, "n k"]]:
    """Distance of surfaces, and positions of the nearest points along both axes."""
    p1, p3 = kinematics.points[:, first, 0], kinematics.points[:, second, 0]
    u, v = kinematics.points[:, first, 1] - p1, kinematics.points[:, second, 1] - p3
    s, t = closest_parameters(p1, u, p3, v)
    gap = p1 + s[..., None] * u - p3 - t[..., None] * v
    length = np.sqrt(np.einsum("nki,nki->nk", gap, gap))
    return length - kinematics.radii[first] - kinematics.radii[second], s, t


def closest_parameters(
    p: Float[Array, "... 3"],
    u: Float[Array, "... 3"],
    r: Float[Array, "... 3"],
    v: Float[Array, "... 3"],
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    """Parameters s, t in [0, 1] at which the segments p + s u and r + t v are closest.

    The unconstrained optimum is clamped in s, t follows, is clamped, and s follows again: exact for
    segments, including parallel ones.
    """
    w = p - r
    uu, vv = np.einsum("...i,...i", u, u), np.einsum("...i,...i", v, v)
    uv, uw = np.einsum("...i,...i", u, v), np.einsum("...i,...i", u, w)
    vw = np.einsum("...i,...i", v, w)
    across = uu * vv - uv**2
    safe: Bool[Array, ...] = across > 1e-12 * uu * vv
    s = np.where(safe, (uv * vw - vv * uw) / np.where(safe, across, 1.0), 0.0)
    s = np.clip(s, 0.0, 1.0)
    t = np.clip((uv * s + vw) / np.maximum(vv, 1e-18), 0.0, 1.0)
    s = np.clip((uv * t - uw) / np.maximum(uu, 1e-18), 0.0, 1.0)
    return s, t


def cross(a: Float[Array, "... 3"], b: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    """Cross product, faster than `numpy.cross`."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    out[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    out[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return out


class Chain:
    """Forward kinematics prepared for many poses: R = A + sin(q) B + (1 - cos(q)) C."""

    def __init__(self, robot: Robot) -> None:
        self.joints = robot.joints
        self.screws = robot.screws
        base = robot.placements[:, :3, :3]
        w, u = self.screws[:, :3], self.screws[:, 3:]
        hat = np.zeros((robot.joints, 3, 3))
        hat[:, [2, 0, 1], [1, 2, 0]], hat[:, [1, 2, 0], [2, 0, 1]] = w, -w
        self.still, self.sine = base, base @ hat
        self.versine = self.sine @ hat
        shift = cross(w, u)[..., None]
        self.origin = robot.placements[:, :3, 3]
        self.shift_sine = -(self.sine @ shift)[..., 0]
        self.shift_versine = -(self.versine @ shift)[..., 0]
        slides = np.array([link.prismatic for link in robot.links])
        along = np.where(slides[:, None], u, w * np.sum(w * u, -1, keepdims=True))
        self.slide = (base @ along[..., None])[..., 0]

    def poses(
        self, q: Float[Array, "n j"]
    ) -> tuple[Float[Array, "n k 3 3"], Float[Array, "n k 3"]]:
        """Rotation and origin of every link in the base frame; the last entry is the base."""
        s, c1 = np.sin(q)[..., None], 1.0 - np.cos(q)[..., None]
        steps = self.still + s[..., None] * self.sine + c1[..., None] * self.versine
        shifts = self.origin + s * self.shift_sine + c1 * self.shift_versine
        shifts += q[..., None] * self.slide
        rotations = np.empty((len(q), self.joints + 1, 3, 3))
        origins = np.zeros((len(q), self.joints + 1, 3))
        rotations[:, -1] = np.eye(3)
        rotation, origin = steps[:, 0], shifts[:, 0]
        for i in range(self.joints):
            if i:
                origin = origin + (rotation @ shifts[:, i, :, None])[..., 0]
                rotation = rotation @ steps[:, i]
            rotations[:, i], origins[:, i] = rotation, origin
        return rotations, origins
