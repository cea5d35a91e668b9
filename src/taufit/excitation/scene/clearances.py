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
PENALTY_UNIT_M = 0.02
_OVERLAP_POSITIONS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


class BodyKinematics:
    """Capsule ends in the base frame, and the Jacobians of points on links."""

    def __init__(
        self, robot: Robot | ChainKinematics, capsules: Sequence[Capsule], q: Float[Array, "n j"]
    ) -> None:
        chain = robot if isinstance(robot, ChainKinematics) else ChainKinematics(robot)
        rotations, origins = chain.poses(np.asarray(q, float))
        screws = chain.screws
        link_rotations = rotations[:, :-1]
        axes = link_rotations @ screws.reshape(-1, 2, 3).swapaxes(1, 2)
        self.angular, linear = axes[..., 0], axes[..., 1]
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
        velocity = cross(self.angular[moment], points[:, None]) + self.linear[moment]
        moves_point = np.arange(self.angular.shape[1])[None, :] <= links[:, None]
        return velocity * moves_point[:, :, None]


class Clearances:
    """Distances of a scene beyond the required clearance for many poses [m]; >= 0 is feasible.

    names: description of each constraint. Constraints that no joint can change are left out.
    """

    def __init__(self, robot: Robot, scene: Scene) -> None:
        self.robot, self.scene, self.chain = robot, scene, ChainKinematics(robot)
        self.first = np.array([a for a, _ in scene.pairs], dtype=int)
        self.second = np.array([b for _, b in scene.pairs], dtype=int)
        pair_clearance = scene.pair_clearance or (scene.clearance,) * len(scene.pairs)
        names = [f"{scene.capsules[a].body} and {scene.capsules[b].body}" for a, b in scene.pairs]
        corners = self._plane_corners()
        self.plane, self.body, self.end = (
            np.array([corner[k] for corner in corners], dtype=int) for k in range(3)
        )
        self.normals = np.array([scene.planes[p].normal for p in self.plane]).reshape(-1, 3)
        self.offsets = np.array([scene.planes[p].offset for p in self.plane])
        names += [f"{scene.planes[p].name} and {scene.capsules[c].body}" for p, c, _ in corners]
        self.names = tuple(names)
        self.required = np.r_[
            np.array(pair_clearance, float), np.full(len(self.plane), scene.clearance)
        ]
        # Bodies that always pass closely leave no room for the search margin.
        self.room = np.where(self.required < scene.clearance, 0.9 * self.required, np.inf)

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
        return np.concatenate(parts, 1) - self.required, s, t

    def penalty(self, q: Float[Array, "n j"], margin: float) -> tuple[float, Float[Array, "n j"]]:
        """Mean squared clearance violation over times (in units of 2 cm), and its gradient."""
        gradient = np.zeros_like(q)
        if not self.names:
            return 0.0, gradient
        kinematics = BodyKinematics(self.chain, self.scene.capsules, q)
        values, s, t = self._values(kinematics)
        violation = np.maximum(np.minimum(margin, self.room) - values, 0.0) / PENALTY_UNIT_M
        total = float(np.sum(violation**2))
        if total == 0.0:
            return 0.0, gradient
        moment, constraint = np.nonzero(violation)
        slope = -2.0 * violation[moment, constraint] / PENALTY_UNIT_M
        is_pair = constraint < len(self.first)
        if np.any(is_pair):
            m, k = moment[is_pair], constraint[is_pair]
            self._pull_pairs(kinematics, gradient, (m, k, s[m, k], t[m, k]), slope[is_pair])
            total += self._overlap(kinematics, gradient, m, k, values[m, k])
        if not np.all(is_pair):
            m, k = moment[~is_pair], constraint[~is_pair] - len(self.first)
            points = kinematics.points[m, self.body[k], self.end[k]]
            point_velocity = kinematics.velocities(m, points, kinematics.links[self.body[k]])
            np.add.at(
                gradient,
                m,
                slope[~is_pair, None] * np.einsum("mji,mi->mj", point_velocity, self.normals[k]),
            )
        return total / len(q), gradient / len(q)

    def _pull_pairs(
        self,
        kinematics: BodyKinematics,
        gradient: Float[Array, "n j"],
        points: tuple[Array, Array, Array, Array],
        slope: Float[Array, " m"],
    ) -> None:
        """Add slope * d distance of the pairs' nearest points to the gradient."""
        m, k, s, t = points
        ends = kinematics.points
        first, second = ends[m, self.first[k]], ends[m, self.second[k]]
        a = first[:, 0] + s[:, None] * (first[:, 1] - first[:, 0])
        b = second[:, 0] + t[:, None] * (second[:, 1] - second[:, 0])
        gap = a - b
        direction = gap / np.maximum(np.linalg.norm(gap, axis=-1), 1e-9)[:, None]
        relative_velocity = kinematics.velocities(m, a, kinematics.links[self.first[k]])
        relative_velocity -= kinematics.velocities(m, b, kinematics.links[self.second[k]])
        np.add.at(
            gradient, m, slope[:, None] * np.einsum("mji,mi->mj", relative_velocity, direction)
        )

    def _overlap(
        self,
        kinematics: BodyKinematics,
        gradient: Float[Array, "n j"],
        m: Int[Array, " m"],
        k: Int[Array, " m"],
        values: Float[Array, " m"],
    ) -> float:
        """Mean over points along each capsule of the squared penetration of the other one."""
        overlapping = values < -self.required[k]
        if not np.any(overlapping):
            return 0.0
        m, k = m[overlapping], k[overlapping]
        contact_distance = kinematics.radii[self.first[k]] + kinematics.radii[self.second[k]]
        total = 0.0
        for first, second in ((self.first, self.second), (self.second, self.first)):
            inner, outer = kinematics.points[m, first[k]], kinematics.points[m, second[k]]
            axis = outer[:, 1] - outer[:, 0]
            square = np.maximum(np.sum(axis * axis, -1), 1e-18)
            for fraction in _OVERLAP_POSITIONS:
                point = inner[:, 0] + fraction * (inner[:, 1] - inner[:, 0])
                t = np.clip(np.sum((point - outer[:, 0]) * axis, -1) / square, 0.0, 1.0)
                nearest = outer[:, 0] + t[:, None] * axis
                gap = point - nearest
                length = np.linalg.norm(gap, axis=-1)
                depth = (
                    np.maximum(contact_distance - length, 0.0)
                    / PENALTY_UNIT_M
                    / np.sqrt(2 * len(_OVERLAP_POSITIONS))
                )
                if not np.any(depth):
                    continue
                total += float(np.sum(depth**2))
                direction = gap / np.maximum(length, 1e-9)[:, None]
                relative_velocity = kinematics.velocities(m, point, kinematics.links[first[k]])
                relative_velocity -= kinematics.velocities(m, nearest, kinematics.links[second[k]])
                scale = -2.0 * depth / PENALTY_UNIT_M / np.sqrt(2 * len(_OVERLAP_POSITIONS))
                np.add.at(
                    gradient,
                    m,
                    scale[:, None] * np.einsum("mji,mi->mj", relative_velocity, direction),
                )
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
    determinant = uu * vv - uv**2
    is_regular: Bool[Array, ...] = determinant > 1e-12 * uu * vv
    s = np.where(is_regular, (uv * vw - vv * uw) / np.where(is_regular, determinant, 1.0), 0.0)
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


class ChainKinematics:
    """Forward kinematics prepared for many poses: R = A + sin(q) B + (1 - cos(q)) C."""

    def __init__(self, robot: Robot) -> None:
        robot.require_serial("the distance of bodies")
        self.joints = robot.joints
        self.screws = robot.screws
        base = robot.placements[:, :3, :3]
        w, u = self.screws[:, :3], self.screws[:, 3:]
        hat = np.zeros((robot.joints, 3, 3))
        hat[:, [2, 0, 1], [1, 2, 0]], hat[:, [1, 2, 0], [2, 0, 1]] = w, -w
        self.constant_rotation, self.sine = base, base @ hat
        self.versine = self.sine @ hat
        shift = cross(w, u)[..., None]
        self.origin = robot.placements[:, :3, 3]
        self.shift_sine = -(self.sine @ shift)[..., 0]
        self.shift_versine = -(self.versine @ shift)[..., 0]
        is_prismatic = robot.is_prismatic
        translation = np.where(is_prismatic[:, None], u, w * np.sum(w * u, -1, keepdims=True))
        self.slide = (base @ translation[..., None])[..., 0]

    def poses(
        self, q: Float[Array, "n j"]
    ) -> tuple[Float[Array, "n k 3 3"], Float[Array, "n k 3"]]:
        """Rotation and origin of every link in the base frame; the last entry is the base."""
        s, c1 = np.sin(q)[..., None], 1.0 - np.cos(q)[..., None]
        steps = self.constant_rotation + s[..., None] * self.sine + c1[..., None] * self.versine
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
