"""Robots whose links branch, or whose joints are bound: dual arms, parallelograms, mimic joints.

In: links, each placed in its parent's frame, and how recorded joints move them. Out: a `TreeRobot`.
Not covered: floating bases, and loops that no constant binding describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.core.fields import Field
from taufit.core.parameters import LinkLayout
from taufit.robot.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class Tip:
    """Flange at the end of a branch.

    Attributes:
        name: Name of the tip.
        link: Number of its link, from 0.
        pose: Pose in that link's frame.
    """

    name: str
    link: int
    pose: Float[Array, "4 4"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeRobot(Robot):
    """Robot with a parent for every link, and joints bound to the recorded ones.

    The joint of link b is at q_b = sum_j C[b, j] q_j + o_b, with C and o constant. Limits, drives,
    friction and joint names are those of the recorded joints j.

    Attributes:
        coordinates: Names of the recorded joints.
        parents: Parent of every link, from 0; -1 is the base. Parents come before children.
        binding: Matrix C.
        binding_offset: Offsets o [rad or m].
        tips: Ends that may carry a load.
        tip_name: Name of the tip in use; empty if none was chosen among several.
    """

    coordinates: tuple[str, ...] = ()
    parents: tuple[int, ...] = ()
    binding: Float[Array, "b j"] = field(default_factory=lambda: np.zeros((0, 0)))
    binding_offset: Float[Array, " b"] = field(default_factory=lambda: np.zeros(0))
    tips: tuple[Tip, ...] = ()
    tip_name: str = ""

    def __post_init__(self) -> None:
        Robot.__post_init__(self)
        bodies, joints = len(self.links), len(self.coordinates)
        if np.shape(self.binding) != (bodies, joints) or len(self.parents) != bodies:
            raise RobotError(
                f"{self.name} has {bodies} links and {joints} recorded joints: it needs a parent "
                f"per link and a binding of {bodies} rows of {joints} numbers."
            )
        for b, parent in enumerate(self.parents):
            if not -1 <= parent < b:
                raise RobotError(
                    f"link {self.links[b].name!r} must come after its parent: order links from the "
                    "base."
                )
        idle = ~np.any(self.support, axis=0)
        if idle.any():
            name = self.coordinates[int(np.flatnonzero(idle)[0])]
            raise RobotError(f"recorded joint {name!r} moves no link of {self.name}.")

    @property
    def joints(self) -> int:
        """Number of recorded joints."""
        return len(self.coordinates)

    @property
    def is_tree(self) -> bool:
        return True

    def require_serial(self, task: str) -> None:
        raise RobotError(
            f"{self.name} is a tree or has bound joints: {task} is for serial arms. Read one chain "
            "of it (--tip), or leave this step out."
        )

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.coordinates

    @property
    def carriers(self) -> Sequence[int]:
        """Link whose joint has the name of each recorded joint, else the first that it moves."""
        joints = [link.joint for link in self.links]
        return [
            joints.index(name) if name in joints else int(np.flatnonzero(column)[0])
            for name, column in zip(self.coordinates, self.binding.T != 0.0, strict=True)
        ]

    @property
    def support(self) -> Bool[Array, "b j"]:
        out = np.asarray(self.binding != 0.0)
        for b, parent in enumerate(self.parents):
            if parent >= 0:
                out[b] |= out[parent]
        return out

    def bind(self, motion: Float[Array, "*n j"]) -> Float[Array, "*n b"]:
        return np.asarray(np.asarray(motion, float) @ self.binding.T)

    def bind_torque(self, torque: Float[Array, "*n b"]) -> Float[Array, "*n j"]:
        return np.asarray(torque @ self.binding)

    @property
    def layout(self) -> LinkLayout:
        return _layout(self)

    @property
    def tip_link(self) -> int | None:
        """Link of the tip in use; None if none was chosen among several."""
        return next((tip.link for tip in self.tips if tip.name == self.tip_name), None)

    def with_tip(self, name: str) -> TreeRobot:
        """Copy that uses one of its tips, or the frame of a link, for a payload or a force.

        A link takes the place of the tips that all of its joints move: these carry nothing.
        """
        for tip in self.tips:
            if tip.name == name:
                return replace(self, tip_name=name, tip=tip.pose)
        if name in self.link_names:
            tip, support = Tip(name, self.link_names.index(name), np.eye(4)), self.support
            moved_apart = [t for t in self.tips if np.any(support[tip.link] & ~support[t.link])]
            return replace(self, tips=(*moved_apart, tip), tip_name=name, tip=tip.pose)
        names = ", ".join(tip.name for tip in self.tips)
        links = ", ".join(self.link_names)
        raise RobotError(f"{self.name} has no tip {name!r}. Available: {names}; links: {links}.")

    @property
    def other_tip_joints(self) -> Bool[Array, " j"]:
        others = [tip.link for tip in self.tips if tip.name != self.tip_name]
        return np.asarray(self.support[others].any(axis=0))

    @property
    def tip_robots(self) -> tuple[Robot, ...]:
        return tuple(self.with_tip(tip.name) for tip in self.tips)

    def path(self, link: int) -> list[int]:
        out = []
        while link >= 0:
            out.append(link)
            link = self.parents[link]
        return out[::-1]

    def to_dict(self) -> dict[str, Any]:
        return {
            **Robot.to_dict(self),
            "coordinates": list(self.coordinates),
            "parents": list(self.parents),
            "binding": np.asarray(self.binding, float).tolist(),
            "binding_offset": np.asarray(self.binding_offset, float).tolist(),
            "tips": [
                {"name": tip.name, "link": tip.link, "pose": tip.pose.tolist()} for tip in self.tips
            ],
            "tip_name": self.tip_name,
        }


@lru_cache(maxsize=64)
def _layout(robot: TreeRobot) -> LinkLayout:
    support = tuple(tuple(row) for row in robot.support.T.tolist())
    return LinkLayout(robot.joints, support, robot.tip_link)


def build_tree(
    robot: Robot,
    parents: Sequence[int],
    binding: Float[Array, "b j"],
    offset: Float[Array, " b"],
    coordinates: Sequence[str],
    tips: Sequence[Tip] = (),
) -> TreeRobot:
    """Tree of a robot's links; without tips, every end that a recorded joint of its own moves.

    Limits and drives of `robot` are those of the recorded joints.
    """
    tips = tuple(tips) or _branch_tips(robot, parents, coordinates)
    names = [tip.name for tip in tips]
    if len(set(names)) < len(names):
        raise RobotError(f"{robot.name} has two tips of one name: {', '.join(names)}.")
    single_tip = tips[0] if len(tips) == 1 else None
    values = {item.name: getattr(robot, item.name) for item in fields(Robot)}
    values["tip"] = np.eye(4) if single_tip is None else single_tip.pose
    return TreeRobot(
        **values,
        coordinates=tuple(coordinates),
        parents=tuple(int(parent) for parent in parents),
        binding=np.asarray(binding, float),
        binding_offset=np.asarray(offset, float),
        tips=tips,
        tip_name="" if single_tip is None else single_tip.name,
    )


def _branch_tips(
    robot: Robot, parents: Sequence[int], coordinates: Sequence[str]
) -> tuple[Tip, ...]:
    """Tip at every end of a branch that a recorded joint of its own moves."""
    ends = [b for b in range(len(robot.links)) if b not in parents]
    driven = [b for b in ends if robot.links[b].joint in coordinates] or ends
    return tuple(
        Tip(robot.links[b].name, b, robot.tip if len(driven) == 1 else np.eye(4)) for b in driven
    )


def tree_from_field(robot: Robot, data: Field) -> TreeRobot:
    """Tree from the data of `TreeRobot.to_dict`, given the links it shares with serial arms."""
    from taufit.robot.from_dict import read_pose

    bodies = len(robot.links)
    names = tuple(item.text() for item in data["coordinates"].required().items())
    if len(set(names)) < len(names):
        data["coordinates"].fail("recorded joints that each have their own name")
    last = float(bodies - 1)
    tips = [
        Tip(
            item["name"].required().text(),
            int(item["link"].required().number(low=0.0, most=last)),
            read_pose(item["pose"]),
        )
        for item in data["tips"].required().items()
    ]
    parents = data["parents"].required().numbers(bodies, low=-1.0, most=last)
    binding = data["binding"].required().matrix(bodies, len(names))
    offset = data["binding_offset"].required().numbers(bodies)
    tree = build_tree(robot, parents.astype(int).tolist(), binding, offset, names, tips)
    tip_name = data["tip_name"].text("")
    return tree.with_tip(tip_name) if tip_name else tree
