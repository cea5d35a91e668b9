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
    _joints_by_parent,
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
    followers = _followers(joints)
    if tips:
        paths = [_chain(joints, start, _require_link(links, tip, "tip")) for tip in tips]
        recorded, mimic_joints = _names_on_paths(paths, joints, followers)
    else:
        recorded, mimic_joints = _match_names(recorded, joints, followers)
    names = {*recorded, *mimic_joints}
    held_positions = _rest_positions(joints, names)
    if any(held_positions.values()):
        fixed_text, held_text = _hold_at_limits(text, held_positions)
        return tree_from_urdf(fixed_text, recorded=recorded, base=base, source=source + held_text)
    order, parents, placements = _walk(joints, start, names)
    if not 1 <= len(order) <= MAX_JOINTS:
        raise RobotError(f"{len(order)} joints move below link {start!r}: 1 to {MAX_JOINTS}.")
    child_joints = _joints_by_parent(joints)
    inertia = [_inertia_with_attachments(x.child, links, child_joints, names) for x in order]
    bodies = tuple(
        _tree_link(*parts, mimic_joints) for parts in zip(order, placements, inertia, strict=True)
    )
    lengths, slopes = _lengths(list(bodies))
    ends = _branch_ends([joint.name in mimic_joints for joint in order], parents)
    tip_poses = [Tip(order[b].child, b, _flange_pose(order[b].child, child_joints)) for b in ends]
    robot = Robot(
        root.get("name") or "robot",
        bodies,
        _limits_of(recorded, joints),
        Drives.direct_drive(len(recorded)),
        tip=tip_poses[0].pose if len(ends) == 1 else np.eye(4),
        lengths=lengths,
        length_slopes=slopes,
        source=source + _rest_text(held_positions),
        urdf=text,
    )
    binding, offset = _binding([joint.name for joint in order], list(recorded), mimic_joints)
    if not _is_serial(parents, binding, offset):
        robot = build_tree(robot, parents, binding, offset, recorded, tip_poses)
    return validate_robot(robot)


def _hold_at_limits(text: str, held_positions: Mapping[str, float]) -> tuple[str, str]:
    """URDF with joints fixed at positions that are not zero, and a text about them."""
    positions = {name: x for name, x in held_positions.items() if x}
    held_text = "".join(f"; {name} held at {x:g}" for name, x in positions.items())
    return hold_joints(text, positions), held_text


def _followers(joints: Mapping[str, _Joint]) -> dict[str, Follower]:
    """Mimic joints by name, with the joints that they follow."""
    by_name = {joint.name: joint for joint in joints.values()}
    moving_names = [joint.name for joint in joints.values() if joint.is_moving]
    return {name: follower for name in moving_names if (follower := _follower(name, by_name))}


def _limits_of(recorded: Sequence[str], joints: Mapping[str, _Joint]) -> JointLimits:
    by_name = {joint.name: joint for joint in joints.values()}
    columns = np.array([_joint_limits(by_name[name]) for name in recorded]).T
    return JointLimits(*(np.array(column) for column in columns))


def _match_names(
    recorded: Sequence[str], joints: Mapping[str, _Joint], followers: Mapping[str, Follower]
) -> tuple[list[str], dict[str, Follower]]:
    """Joints of the recorded names, and those bound to them."""
    moving_names = [joint.name for joint in joints.values() if joint.is_moving]
    names = [_match_name(name, moving_names) for name in recorded]
    _require_free(names, followers)
    return names, {name: f for name, f in followers.items() if f[0] in names}


def _names_on_paths(
    paths: list[list[_Joint]], joints: Mapping[str, _Joint], followers: Mapping[str, Follower]
) -> tuple[list[str], dict[str, Follower]]:
    """Free joints on the chains to the tips, in file order, and those bound to them."""
    on_paths = {joint.name for path in paths for joint in path if joint.is_moving}
    moving_names = [joint.name for joint in joints.values() if joint.name in on_paths]
    recorded = [name for name in moving_names if name not in followers]
    mimic_joints = {n: f for n, f in followers.items() if n in on_paths and f[0] in recorded}
    unbound = [name for name in on_paths if name not in recorded and name not in mimic_joints]
    if unbound:
        raise RobotError(f"joint {unbound[0]!r} mimics a joint outside the chains to the tips.")
    return recorded, mimic_joints


def _tree_link(
    joint: _Joint,
    placement: Float[Array, "4 4"],
    inertia: Float[Array, 10],
    mimic_joints: Mapping[str, Follower],
) -> Link:
    _require_single_axis(joint, mimic_joints)
    screw = np.zeros(6)
    screw[slice(3, 6) if joint.kind == "prismatic" else slice(0, 3)] = _axis(joint)
    return Link(joint.child, joint.name, placement, screw, inertia)


def _is_serial(
    parents: list[int], binding: Float[Array, "b j"], offset: Float[Array, " b"]
) -> bool:
    """Whether recorded joints are those of one chain, in its order."""
    is_chain = parents == list(range(-1, len(parents) - 1))
    return is_chain and np.array_equal(binding, np.eye(len(parents))) and not offset.any()


def _match_name(name: str, moving_names: Sequence[str]) -> str:
    """Moving joint of a recorded name: the same, or the only one with the same ending."""
    if name in moving_names:
        return name
    similar = [other for other in moving_names if name.endswith(other) or other.endswith(name)]
    if len(similar) == 1:
        return similar[0]
    if similar:
        raise RobotError(
            f"recorded joint {name!r} may be {', '.join(similar[:5])}: name one fully."
        )
    available = ", ".join(moving_names[:40])
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
    held_positions = {}
    for joint in joints.values():
        if joint.is_moving and joint.name not in names:
            single = joint.kind not in ("floating", "planar")
            lower, upper = _joint_limits(joint)[:2] if single else (0.0, 0.0)
            held_positions[joint.name] = float(np.clip(0.0, lower, upper))
    return held_positions


def _rest_text(held_positions: Mapping[str, float]) -> str:
    if not held_positions:
        return ""
    text = ", ".join(list(held_positions)[:_SHOWN_NAMES]) + (
        ", ..." if len(held_positions) > _SHOWN_NAMES else ""
    )
    return f"; {len(held_positions)} joints held at zero: {text}"


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
    behind = [not follows for follows in is_bound]
    for b in reversed(range(len(parents))):
        if behind[b] and parents[b] >= 0:
            behind[parents[b]] = True
    inner = {parents[b] for b in range(len(parents)) if behind[b]}
    return [b for b in range(len(parents)) if not is_bound[b] and b not in inner]


def _binding(
    order: list[str], recorded: list[str], mimic_joints: Mapping[str, Follower]
) -> tuple[Float[Array, "b j"], Float[Array, " b"]]:
    binding, offsets = np.zeros((len(order), len(recorded))), np.zeros(len(order))
    for b, name in enumerate(order):
        leader, factor, offset = mimic_joints.get(name, (name, 1.0, 0.0))
        binding[b, recorded.index(leader)], offsets[b] = factor, offset
    return binding, offsets
