"""Approach from the current pose to the start of a motion: straight legs, each proved free.

Tried in order: one straight leg; two legs via a home pose with much free space; one joint after
the other; a search by two trees that grow towards each other (RRT-connect [Kuffner2000]), shortened
afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from taufit.clearance.curve import line
from taufit.clearance.proof import prove_clear
from taufit.clearance.space import Space
from taufit.core.arrays import Array, Float
from taufit.excitation.scene import Scene

# Largest clearance kept on the approach [m], and tolerance of a proof [m].
CLEARANCE, SLACK = 0.010, 0.002
# Home poses: count, number of draws, minimum separation [rad], minimum distance to bodies [m].
_HOMES, _DRAWN, _APART, _ROOM = 8, 400, 0.8, 0.03
_SEARCH_S, _TREE_STEP, _SHORTCUTS = 1.0, 0.6, 60
# Largest difference of equal poses, and largest leg [rad or m].
_SAME, _LONGEST = 1e-9, 100.0


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """Path of straight legs in joint space.

    Attributes:
        poses: Poses from the current one to the start, with via poses in between.
        kind: "straight", "via", "joint by joint" or "searched".
    """

    poses: Float[Array, "n j"]
    kind: str

    @property
    def length(self) -> float:
        """Sum over legs of the largest joint travel [rad or m]."""
        return float(np.abs(np.diff(self.poses, axis=0)).max(axis=1).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Approaches:
    """Search for proved paths in one collision space.

    Attributes:
        space: Robot and surroundings, with the clearances of the approach.
        homes: Poses with much free space, far from each other.
    """

    space: Space
    homes: Float[Array, "h j"] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "homes", self._roomy())

    @classmethod
    def among(cls, space: Space) -> Approaches:
        """Approaches with the clearances of a motion's space, at most 10 mm."""
        scene = space.scene
        own = scene.pair_clearance or (scene.clearance,) * len(scene.pairs)
        nearer: Scene = replace(
            scene,
            clearance=min(CLEARANCE, scene.clearance),
            pair_clearance=tuple(min(CLEARANCE, x) for x in own),
        )
        return cls(replace(space, scene=nearer))

    def is_free(self, q: Float[Array, " j"]) -> bool:
        """Whether a pose keeps all clearances and joint limits."""
        limits = self.space.limits
        inside = np.all(q >= limits.lower - 1e-6) and np.all(q <= limits.upper + 1e-6)
        return bool(inside) and self._short(q[None]) <= 0.0

    def leg_is_clear(self, start: Float[Array, " j"], stop: Float[Array, " j"]) -> bool:
        """Whether a straight leg is proved free."""
        way = float(np.abs(stop - start).max())
        if way < _SAME:
            return True
        if not way < _LONGEST:
            return False
        step = min(1.0, 0.1 / way)
        return prove_clear(line(start, stop), self.space, slack=SLACK, step=step) is None

    def is_clear(self, poses: Float[Array, "n j"]) -> bool:
        """Whether every leg between poses is proved free."""
        if self._short(poses) > 0.0:
            return False
        return all(self.leg_is_clear(a, b) for a, b in pairwise(poses))

    def find(
        self,
        start: Float[Array, " j"],
        goal: Float[Array, " j"],
        *,
        seconds: float = _SEARCH_S,
        seed: int = 0,
    ) -> Way | None:
        """Find a proved path; None if none is found.

        Args:
            start: Current pose.
            goal: Target pose.
            seconds: Time limit of the tree search, used if nothing simpler is free [s].
            seed: Seed of that search.
        """
        straight = np.stack([start, goal])
        if self.is_clear(straight):
            return Way(straight, "straight")
        for kind, tries in (("via", self._by_homes), ("joint by joint", self._by_joints)):
            for poses in tries(start, goal):
                if self.is_clear(poses):
                    return Way(poses, kind)
        found = self._by_trees(start, goal, seconds, np.random.default_rng(seed))
        return None if found is None else Way(found, "searched")

    def homes_before(self, goal: Float[Array, " j"]) -> list[Float[Array, " j"]]:
        """Home poses with a proved straight leg to a pose, nearest first."""
        order = np.argsort(np.abs(self.homes - goal).max(axis=1))
        return [self.homes[k] for k in order if self.leg_is_clear(self.homes[k], goal)]

    def blocking(self, start: Float[Array, " j"], goal: Float[Array, " j"]) -> tuple[str, float]:
        """Pair of bodies that come closest on the straight leg, and their distance [m]."""
        steps = np.linspace(0.0, 1.0, 200)[:, None]
        free = self.space.distances(start + steps * (goal - start)) + self.space.kept
        pair = int((free - self.space.kept).min(axis=0).argmin())
        return self.space.names[pair], float(free[:, pair].min())

    def _short(self, q: Float[Array, "n j"]) -> float:
        """Largest clearance violation of poses, beyond the tolerance of a proof [m]."""
        if not self.space.names:
            return -np.inf
        return float((-self.space.distances(q) - self.space.slack(SLACK)).max())

    def _range(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """Middle and half width of the sampled range: the limits, at most half a turn each way."""
        limits = self.space.limits
        low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
        high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
        return 0.5 * (low + high), np.minimum(0.6 * 0.5 * (high - low), np.pi)

    def _roomy(self) -> Float[Array, "h j"]:
        middle, half = self._range()
        joints = self.space.robot.joints
        if not self.space.names:
            return middle[None]
        draws = np.random.default_rng(5).uniform(-1.0, 1.0, (_DRAWN, joints))
        q = middle + draws * half
        room = self.space.distances(q).min(axis=1)
        # Prefer more free space, then poses nearer to the middle.
        order = np.argsort(-np.minimum(room, 0.15) + 0.02 * np.abs(q - middle).mean(axis=1))
        q = q[order][room[order] > _ROOM]
        out: list[Float[Array, " j"]] = []
        for pose in q:
            if len(out) < _HOMES and all(np.abs(pose - one).max() > _APART for one in out):
                out.append(pose)
        return np.array(out).reshape(-1, joints)

    def _by_homes(
        self, start: Float[Array, " j"], goal: Float[Array, " j"]
    ) -> Iterator[Float[Array, "n j"]]:
        way = np.abs(self.homes - start).max(axis=1) + np.abs(self.homes - goal).max(axis=1)
        for k in np.argsort(way):
            yield np.stack([start, self.homes[k], goal])

    def _by_joints(
        self, start: Float[Array, " j"], goal: Float[Array, " j"]
    ) -> Iterator[Float[Array, "n j"]]:
        joints = list(range(len(start)))
        folded = [*joints[2::-1], *joints[3:]]
        for order in (joints[::-1], joints, folded, [*joints[3:], *joints[2::-1]]):
            poses = [start]
            for joint in order:
                pose = poses[-1].copy()
                pose[joint] = goal[joint]
                if abs(goal[joint] - start[joint]) > _SAME:
                    poses.append(pose)
            yield np.array(poses)

    def _by_trees(
        self,
        start: Float[Array, " j"],
        goal: Float[Array, " j"],
        seconds: float,
        rng: np.random.Generator,
    ) -> Float[Array, "n j"] | None:
        limits = self.space.limits
        low = np.maximum(limits.lower, np.minimum(start, goal) - np.pi)
        high = np.minimum(limits.upper, np.maximum(start, goal) + np.pi)
        near, far = _Tree(start), _Tree(goal)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            grown = near.grow(rng.uniform(low, high), self)
            while grown is not None and time.monotonic() < end:
                met = far.grow(grown, self)
                if met is None:
                    break
                if np.abs(met - grown).max() < _SAME:
                    poses = [*near.branch(), *far.branch()[::-1][1:]]
                    if np.abs(poses[0] - start).max() > _SAME:
                        poses = poses[::-1]
                    return self._shortened(poses, rng)
            near, far = far, near
        return None

    def _shortened(
        self, poses: list[Float[Array, " j"]], rng: np.random.Generator
    ) -> Float[Array, "n j"]:
        for _ in range(_SHORTCUTS):
            if len(poses) < 3:
                break
            i, j = sorted(rng.choice(len(poses), 2, replace=False).tolist())
            if j - i > 1 and self.leg_is_clear(poses[i], poses[j]):
                poses = poses[: i + 1] + poses[j:]
        return np.array(poses)


class _Tree:
    """Tree of poses reached by proved legs from a root."""

    def __init__(self, root: Float[Array, " j"]) -> None:
        self.poses, self.parent = root[None], [-1]

    def grow(self, towards: Float[Array, " j"], ways: Approaches) -> Float[Array, " j"] | None:
        """Grow one step towards a pose; the pose reached, or None."""
        k = int(np.abs(self.poses - towards).sum(axis=1).argmin())
        gap = towards - self.poses[k]
        size = float(np.abs(gap).max())
        pose: Array = towards if size <= _TREE_STEP else self.poses[k] + gap * (_TREE_STEP / size)
        if not ways.is_clear(np.stack([self.poses[k], pose])):
            return None
        self.poses = np.vstack([self.poses, pose])
        self.parent.append(k)
        return pose

    def branch(self) -> list[Float[Array, " j"]]:
        """Poses from the root to the last one."""
        k, out = len(self.parent) - 1, []
        while k >= 0:
            out.append(self.poses[k])
            k = self.parent[k]
        return out[::-1]
