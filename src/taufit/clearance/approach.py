"""Approach from the current pose to the start of a motion: straight legs, each proved free.

Tried in order: one straight leg; two legs via a home pose with much free space; one joint after
the other; a search by two trees that grow towards each other (RRT-connect [Kuffner2000]), shortened
afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import field, replace
from itertools import pairwise

import numpy as np

from taufit.clearance.curve import straight_line
from taufit.clearance.proof import prove_clear
from taufit.clearance.space import CollisionSpace
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation.scene import Scene

# Largest clearance kept on the approach [m], and tolerance of a proof [m].
CLEARANCE_M, TOLERANCE_M = 0.010, 0.002
# Home poses: count, number of draws, minimum separation [rad], minimum distance to bodies [m].
_HOME_COUNT, _HOME_DRAWS, _HOME_SEPARATION, _HOME_DISTANCE_M = 8, 400, 0.8, 0.03
_SEARCH_S, _TREE_STEP, _SHORTCUT_TRIALS = 1.0, 0.6, 60
# Largest difference of equal poses, and largest leg [rad or m].
_EQUAL_POSES, _MAXIMUM_LEG = 1e-9, 100.0


@dataclass(frozen=True, slots=True, eq=False)
class JointPath:
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
        home_poses: Poses with much free space, far from each other.
    """

    space: CollisionSpace
    home_poses: Float[Array, "h j"] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "home_poses", self._find_home_poses())

    @classmethod
    def from_space(cls, space: CollisionSpace) -> Approaches:
        """Approaches with the clearances of a motion's space, at most 10 mm."""
        scene = space.scene
        pair_clearances = scene.pair_clearance or (scene.clearance,) * len(scene.pairs)
        scene_with_clearance: Scene = replace(
            scene,
            clearance=min(CLEARANCE_M, scene.clearance),
            pair_clearance=tuple(min(CLEARANCE_M, x) for x in pair_clearances),
        )
        return cls(replace(space, scene=scene_with_clearance))

    def is_free(self, q: Float[Array, " j"]) -> bool:
        """Whether a pose keeps all clearances and joint limits."""
        limits = self.space.limits
        inside = np.all(q >= limits.lower - 1e-6) and np.all(q <= limits.upper + 1e-6)
        return bool(inside) and self._violation(q[None]) <= 0.0

    def leg_is_clear(self, start: Float[Array, " j"], stop: Float[Array, " j"]) -> bool:
        """Whether a straight leg is proved free."""
        travel = float(np.abs(stop - start).max())
        if travel < _EQUAL_POSES:
            return True
        if not travel < _MAXIMUM_LEG:
            return False
        step = min(1.0, 0.1 / travel)
        return (
            prove_clear(straight_line(start, stop), self.space, slack=TOLERANCE_M, step=step)
            is None
        )

    def is_clear(self, poses: Float[Array, "n j"]) -> bool:
        """Whether every leg between poses is proved free."""
        if self._violation(poses) > 0.0:
            return False
        return all(self.leg_is_clear(a, b) for a, b in pairwise(poses))

    def find(
        self,
        start: Float[Array, " j"],
        goal: Float[Array, " j"],
        *,
        seconds: float = _SEARCH_S,
        seed: int = 0,
    ) -> JointPath | None:
        """Find a proved path; None if none is found.

        Args:
            start: Current pose.
            goal: Target pose.
            seconds: Time limit of the tree search, used if nothing simpler is free [s].
            seed: Seed of that search.
        """
        straight = np.stack([start, goal])
        if self.is_clear(straight):
            return JointPath(straight, "straight")
        for kind, candidates in (
            ("via", self._paths_via_homes),
            ("joint by joint", self._paths_by_joints),
        ):
            for poses in candidates(start, goal):
                if self.is_clear(poses):
                    return JointPath(poses, kind)
        poses_found = self._search_by_trees(start, goal, seconds, np.random.default_rng(seed))
        return None if poses_found is None else JointPath(poses_found, "searched")

    def homes_with_leg_to(self, goal: Float[Array, " j"]) -> list[Float[Array, " j"]]:
        """Home poses with a proved straight leg to a pose, nearest first."""
        order = np.argsort(np.abs(self.home_poses - goal).max(axis=1))
        return [self.home_poses[k] for k in order if self.leg_is_clear(self.home_poses[k], goal)]

    def blocking(self, start: Float[Array, " j"], goal: Float[Array, " j"]) -> tuple[str, float]:
        """Pair of bodies that come closest on the straight leg, and their distance [m]."""
        steps = np.linspace(0.0, 1.0, 200)[:, None]
        distances = self.space.distances(start + steps * (goal - start)) + self.space.required
        pair = int((distances - self.space.required).min(axis=0).argmin())
        return self.space.names[pair], float(distances[:, pair].min())

    def _violation(self, q: Float[Array, "n j"]) -> float:
        """Largest clearance violation of poses, beyond the tolerance of a proof [m]."""
        if not self.space.names:
            return -np.inf
        return float((-self.space.distances(q) - self.space.slack(TOLERANCE_M)).max())

    def _sampling_range(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """Middle and half width of the sampled range: the limits, at most half a turn each way."""
        limits = self.space.limits
        low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
        high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
        return 0.5 * (low + high), np.minimum(0.6 * 0.5 * (high - low), np.pi)

    def _find_home_poses(self) -> Float[Array, "h j"]:
        middle, half = self._sampling_range()
        joints = self.space.robot.joints
        if not self.space.names:
            return middle[None]
        draws = np.random.default_rng(5).uniform(-1.0, 1.0, (_HOME_DRAWS, joints))
        q = middle + draws * half
        room = self.space.distances(q).min(axis=1)
        # Prefer more free space, then poses nearer to the middle.
        order = np.argsort(-np.minimum(room, 0.15) + 0.02 * np.abs(q - middle).mean(axis=1))
        q = q[order][room[order] > _HOME_DISTANCE_M]
        homes: list[Float[Array, " j"]] = []
        for pose in q:
            if len(homes) < _HOME_COUNT and all(
                np.abs(pose - home).max() > _HOME_SEPARATION for home in homes
            ):
                homes.append(pose)
        return np.array(homes).reshape(-1, joints)

    def _paths_via_homes(
        self, start: Float[Array, " j"], goal: Float[Array, " j"]
    ) -> Iterator[Float[Array, "n j"]]:
        travel = np.abs(self.home_poses - start).max(axis=1) + np.abs(self.home_poses - goal).max(
            axis=1
        )
        for k in np.argsort(travel):
            yield np.stack([start, self.home_poses[k], goal])

    def _paths_by_joints(
        self, start: Float[Array, " j"], goal: Float[Array, " j"]
    ) -> Iterator[Float[Array, "n j"]]:
        joints = list(range(len(start)))
        folded = [*joints[2::-1], *joints[3:]]
        for order in (joints[::-1], joints, folded, [*joints[3:], *joints[2::-1]]):
            poses = [start]
            for joint in order:
                pose = poses[-1].copy()
                pose[joint] = goal[joint]
                if abs(goal[joint] - start[joint]) > _EQUAL_POSES:
                    poses.append(pose)
            yield np.array(poses)

    def _search_by_trees(
        self,
        start: Float[Array, " j"],
        goal: Float[Array, " j"],
        seconds: float,
        rng: np.random.Generator,
    ) -> Float[Array, "n j"] | None:
        limits = self.space.limits
        low = np.maximum(limits.lower, np.minimum(start, goal) - np.pi)
        high = np.minimum(limits.upper, np.maximum(start, goal) + np.pi)
        tree, other_tree = _Tree(start), _Tree(goal)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            reached = tree.grow(rng.uniform(low, high), self)
            while reached is not None and time.monotonic() < deadline:
                other_reached = other_tree.grow(reached, self)
                if other_reached is None:
                    break
                if np.abs(other_reached - reached).max() < _EQUAL_POSES:
                    poses = [*tree.branch(), *other_tree.branch()[::-1][1:]]
                    if np.abs(poses[0] - start).max() > _EQUAL_POSES:
                        poses = poses[::-1]
                    return self._shorten(poses, rng)
            tree, other_tree = other_tree, tree
        return None

    def _shorten(
        self, poses: list[Float[Array, " j"]], rng: np.random.Generator
    ) -> Float[Array, "n j"]:
        for _ in range(_SHORTCUT_TRIALS):
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

    def grow(
        self, towards: Float[Array, " j"], approaches: Approaches
    ) -> Float[Array, " j"] | None:
        """Grow one step towards a pose; the pose reached, or None."""
        k = int(np.abs(self.poses - towards).sum(axis=1).argmin())
        gap = towards - self.poses[k]
        size = float(np.abs(gap).max())
        pose: Array = towards if size <= _TREE_STEP else self.poses[k] + gap * (_TREE_STEP / size)
        if not approaches.is_clear(np.stack([self.poses[k], pose])):
            return None
        self.poses = np.vstack([self.poses, pose])
        self.parent.append(k)
        return pose

    def branch(self) -> list[Float[Array, " j"]]:
        """Poses from the root to the last one."""
        k, branch = len(self.parent) - 1, []
        while k >= 0:
            branch.append(self.poses[k])
            k = self.parent[k]
        return branch[::-1]
