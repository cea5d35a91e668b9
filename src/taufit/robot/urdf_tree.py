"""Trees from URDF: several tips, `<mimic>` joints, or the part of a whole robot that was recorded.

Moving joints that are neither recorded nor bound to a recorded one are held at zero, or at the
limit next to it, and their links are added to the link that carries them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.robot.checks import MAX_JOINTS, parse_number, validate_robot
from taufit.robot.from_urdf import (
    _axis,
    _base_link,
    _chain,
    _flange_pose,
    _inertia_with_attachments,
    _Joint,
    _joint_limits,
    _joints,
    _lengths,
    _links,
    _require_link,
    _require_single_axis,
    parse_xml,
)
from taufit.robot.held_joints import hold_joints
from taufit.robot.robot import Drives, JointLimits, Link, Robot
from taufit.robot.tree import Tip, build_tree

_SHOWN_NAMES = 5
# Joint that a mimic joint follows, factor, offset.
Follower = tuple[str, float, float]


def tree_from_urdf(
    text: str,
    *,
    recorded: Sequence[str] = (),
    tips: Sequence[str] = (),
    base: str | None = None,
    source: str = "",
) -> Robot:
    """Create a robot from the recorded joints of a URDF, or from all chains to several tips.

    A joint that mimics a recorded one is bound to it. A single chain of recorded joints in their
    order is a serial `Robot`.

    Args:
        text: URDF.
        recorded: Names of recorded joints in recorded order; a unique ending is enough.
        tips: Last links, in place of `recorded`.
        base: First link; the root by default.
        source: Origin of the text.
    """
    root = parse_xml(text)
    links = _links(root)
    joints = _joints(root, links)
    start = _base_link(links, joints, base)
    by_name = {joint.name: joint for joint in joints.values()}
    moving = [joint.name for joint in joints.values() if joint.is_moving]
    if tips:
        paths = [_chain(joints, start, _require_link(links, tip, "tip")) for tip in tips]
        on_paths = {joint.name for path in paths for joint in path if joint.is_moving}
        recorded = [
            n for n in by_name if n in on_paths and by_name[n].element.find("mimic") is None
        ]
    else:
        recorded = [_match_name(name, moving) for name in recorded]
    followers = {name: follower for name in moving if (follower := _follower(name, by_name))}
    _require_free(recorded, followers)
    bound = {name: f for name, f in followers.items() if f[0] in recorded}
    if tips:
        bound = {name: f for name, f in bound.items() if name in on_paths}
        unbound = [name for name in on_paths if name not in recorded and name not in bound]
        if unbound:
            raise RobotError(f"joint {unbound[0]!r} mimics a joint outside the chains to the tips.")
    names = {*recorded, *bound}
    rest = _rest_positions(joints, names)
    if any(rest.values()):
        text = hold_joints(text, {name: x for name, x in rest.items() if x})
        shown = "".join(f"; {name} held at {x:g}" for name, x in rest.items() if x)
        return tree_from_urdf(text, recorded=recorded, base=base, source=source + shown)
    order, parents, placements = _walk(joints, start, names)
    if not 1 <= len(order) <= MAX_JOINTS:
        raise RobotError(f"{len(order)} joints move below link {start!r}: 1 to {MAX_JOINTS}.")
    child_joints: dict[str, list[_Joint]] = {}
    for joint in joints.values():
        child_joints.setdefault(joint.parent, []).append(joint)
    tree_links = []
    for joint, placement in zip(order, placements, strict=True):
        _require_single_axis(joint, bound)
        screw = np.zeros(6)
        screw[slice(3, 6) if joint.kind == "prismatic" else slice(0, 3)] = _axis(joint)
        inertia = _inertia_with_attachments(joint.child, links, child_joints, names)
        tree_links.append(Link(joint.child, joint.name, placement, screw, inertia))
    lengths, slopes = _lengths(tree_links)
    limits = np.array([_joint_limits(by_name[name]) for name in recorded]).T
    binding, offset = _binding([joint.name for joint in order], list(recorded), bound)
    ends = _branch_ends([joint.name in bound for joint in order], parents)
    poses = [_flange_pose(order[b].child, child_joints) for b in ends]
    robot = Robot(
        root.get("name") or "robot",
        tuple(tree_links),
        JointLimits(*(np.array(column) for column in limits)),
        Drives.direct_drive(len(recorded)),
        tip=poses[0] if len(ends) == 1 else np.eye(4),
        lengths=lengths,
        length_slopes=slopes,
        source=source + _rest_text(rest),
        urdf=text,
    )
    is_chain = parents == list(range(-1, len(order) - 1))
    if not (is_chain and np.array_equal(binding, np.eye(len(order))) and not offset.any()):
        branch_tips = [Tip(order[b].child, b, pose) for b, pose in zip(ends, poses, strict=True)]
        robot = build_tree(robot, parents, binding, offset, recorded, branch_tips)
    return validate_robot(robot)


def _match_name(name: str, moving: Sequence[str]) -> str:
    """Moving joint of a recorded name: the same, or the only one with the same ending."""
    if name in moving:
        return name
    similar = [other for other in moving if name.endswith(other) or other.endswith(name)]
    if len(similar) == 1:
        return similar[0]
    if similar:
        raise RobotError(
            f"recorded joint {name!r} may be {', '.join(similar[:5])}: name one fully."
        )
    available = ", ".join(moving[:40])
    raise RobotError(f"recorded joint {name!r} not found in this URDF. Available: {available}.")


def _follower(name: str, by_name: Mapping[str, _Joint]) -> Follower | None:
    """Joint that a mimic joint follows at the end of its chain, with factor and offset."""
    factor, offset, seen, current = 1.0, 0.0, {name}, name
    while (mimic := by_name[current].element.find("mimic")) is not None:
        label = f"of the mimic of joint {current!r}"
        offset += factor * parse_number(mimic.get("offset", "0"), f"offset {label}")
        factor *= parse_number(mimic.get("multiplier", "1"), f"multiplier {label}")
        current = mimic.get("joint", "")
        if current not in by_name or current in seen:
            raise RobotError(
                f"joint {name!r} mimics {current!r}, which is not a joint of this URDF or mimics "
                "it in turn: correct its <mimic>."
            )
        seen.add(current)
    return None if current == name else (current, factor, offset)


def _require_free(recorded: Sequence[str], followers: Mapping[str, Follower]) -> None:
    for name in recorded:
        if name in followers:
            raise RobotError(
                f"recorded joint {name!r} mimics {followers[name][0]!r}: record that one, or "
                "remove the <mimic>."
            )


def _rest_positions(joints: Mapping[str, _Joint], names: set[str]) -> dict[str, float]:
    """Position of every moving joint that is held: zero, or the limit next to it."""
    rest = {}
    for joint in joints.values():
        if joint.is_moving and joint.name not in names:
            single = joint.kind not in ("floating", "planar")
            lower, upper = _joint_limits(joint)[:2] if single else (0.0, 0.0)
            rest[joint.name] = float(np.clip(0.0, lower, upper))
    return rest


def _rest_text(rest: Mapping[str, float]) -> str:
    if not rest:
        return ""
    text = ", ".join(list(rest)[:_SHOWN_NAMES]) + (", ..." if len(rest) > _SHOWN_NAMES else "")
    return f"; {len(rest)} joints held at zero: {text}"


def _walk(
    joints: Mapping[str, _Joint], start: str, names: set[str]
) -> tuple[list[_Joint], list[int], list[Float[Array, "4 4"]]]:
    """Joints of given names depth first in file order, their parents, and poses in these."""
    order: list[_Joint] = []
    parents: list[int] = []
    placements: list[Float[Array, "4 4"]] = []
    stack = [(start, -1, np.eye(4))]
    below: dict[str, list[_Joint]] = {}
    for joint in joints.values():
        below.setdefault(joint.parent, []).append(joint)
    while stack:
        link, parent, pose = stack.pop()
        if link in joints and joints[link].name in names and link != start:
            placement = pose.copy()
            placement[:3, 3][np.abs(placement[:3, 3]) < 1e-9] = 0.0
            order.append(joints[link])
            parents.append(parent)
            placements.append(placement)
            parent, pose = len(order) - 1, np.eye(4)
        stack += [(j.child, parent, pose @ j.origin) for j in reversed(below.get(link, []))]
    return order, parents, placements


def _branch_ends(is_bound: list[bool], parents: list[int]) -> list[int]:
    """Last link of every branch that a recorded joint of its own moves."""
    behind = [not bound for bound in is_bound]
    for b in reversed(range(len(parents))):
        if behind[b] and parents[b] >= 0:
            behind[parents[b]] = True
    inner = {parents[b] for b in range(len(parents)) if behind[b]}
    return [b for b in range(len(parents)) if not is_bound[b] and b not in inner]


def _binding(
    order: list[str], recorded: list[str], bound: Mapping[str, Follower]
) -> tuple[Float[Array, "b j"], Float[Array, " b"]]:
    binding, offsets = np.zeros((len(order), len(recorded))), np.zeros(len(order))
    for b, name in enumerate(order):
        leader, factor, offset = bound.get(name, (name, 1.0, 0.0))
        binding[b, recorded.index(leader)], offsets[b] = factor, offset
    return binding, offsets
