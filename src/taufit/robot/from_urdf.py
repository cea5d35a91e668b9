"""Robots from URDF: one chain, with fixed joints merged into the links."""

from __future__ import annotations

from functools import reduce

import numpy as np

from taufit.core.errors import RobotError
from taufit.robot.checks import MAX_JOINTS, validate_robot
from taufit.robot.robot import Robot
from taufit.robot.urdf import Urdf, UrdfJoint


def from_urdf(
    text: str, *, base: str | None = None, tip: str | None = None, source: str = ""
) -> Robot:
    """Create a robot from the chain from link `base` to link `tip` of a URDF.

    Default `base` is the root; default `tip` ends the chain with most moving joints, and a tie is
    an error. Link frames are the child frames of the joints. The inertia of links connected by
    fixed joints, or by joints outside the chain (at zero), is added. A joint that mimics another
    one of the chain is bound to it (`TreeRobot`).

    Angles within 1e-5 of a multiple of 45 degrees are rounded to it.
    """
    urdf = Urdf.parse(text)
    start = urdf.base_link(base)
    tip_link = _tip_link(urdf, start, tip)
    chain = urdf.chain(start, tip_link)
    moving = [joint for joint in chain if joint.is_moving]
    if not moving:
        raise RobotError(f"no joint moves between link {start!r} and link {tip_link!r}.")
    if len(moving) > MAX_JOINTS:
        raise RobotError(f"{len(moving)} joints are more than a serial arm has ({MAX_JOINTS}).")
    if any(_mimics_one_of(joint, moving) for joint in moving):
        from taufit.robot.urdf_tree import tree_from_urdf

        return tree_from_urdf(text, tips=(tip_link,), base=base, source=source)
    for joint in moving:
        joint.require_single_axis()
    links, _ = urdf.links_of(start, [joint.name for joint in moving])
    behind = chain[chain.index(moving[-1]) + 1 :]
    flange = reduce(np.matmul, (joint.origin for joint in behind), np.eye(4))
    if tip is None and not behind:
        flange = urdf.flange_pose(tip_link)
    return validate_robot(urdf.robot(links, moving, flange, source))


def _mimics_one_of(joint: UrdfJoint, others: list[UrdfJoint]) -> bool:
    mimic = joint.mimic
    return mimic is not None and mimic.get("joint") in {x.name for x in others if x is not joint}


def _depths(urdf: Urdf, start: str) -> dict[str, int]:
    """Number of moving joints between start and each link below it."""
    out, stack = {start: 0}, [start]
    while stack:
        link = stack.pop()
        for joint in urdf.by_parent.get(link, []):
            out[joint.child] = out[link] + joint.is_moving
            stack.append(joint.child)
    return out


def _tip_link(urdf: Urdf, start: str, tip: str | None) -> str:
    """Last link of the chain: the requested one, or the child of the farthest joint."""
    if tip is not None:
        return urdf.require_link(tip, "tip")
    depths = _depths(urdf, start)
    depth = {
        joint.child: depths[joint.child]
        for joint in urdf.joints.values()
        if joint.is_moving and joint.child in depths
    }
    if not depth:
        raise RobotError(f"no joint moves below link {start!r}.")
    max_depth = max(depth.values())
    ends = [link for link, count in depth.items() if count == max_depth]
    if len(ends) > 1:
        raise RobotError(
            f"this URDF branches into {len(ends)} equally long chains, ending at "
            f"{', '.join(ends[:10])}: choose the end with --tip, for example "
            f"--tip {_common_link(urdf, depths, start, ends)}."
        )
    return ends[0]


def _common_link(urdf: Urdf, depths: dict[str, int], start: str, ends: list[str]) -> str:
    """Farthest link common to all ends, if a joint moves before it, else the first end."""
    paths = [[start, *(joint.child for joint in urdf.chain(start, end))] for end in ends[:20]]
    common = set(paths[0]).intersection(*paths[1:])
    last = next(link for link in reversed(paths[0]) if link in common)
    return last if depths[last] else ends[0]
