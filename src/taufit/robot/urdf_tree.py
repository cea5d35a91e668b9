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
from taufit.robot.held_joints import hold_joints
from taufit.robot.robot import Robot
from taufit.robot.tree import Tip, build_tree
from taufit.robot.urdf import Urdf

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
    urdf = Urdf.parse(text)
    start = urdf.base_link(base)
    followers = {name: f for name in urdf.moving_names if (f := _follower(name, urdf))}
    if tips:
        recorded, mimic_joints = _names_on_paths(urdf, start, tips, followers)
    else:
        recorded, mimic_joints = _match_names(recorded, urdf.moving_names, followers)
    names = {*recorded, *mimic_joints}
    held_positions = _rest_positions(urdf, names)
    if any(held_positions.values()):
        positions = {name: x for name, x in held_positions.items() if x}
        held_text = "".join(f"; {name} held at {x:g}" for name, x in positions.items())
        text = hold_joints(text, positions)
        return tree_from_urdf(text, recorded=recorded, base=base, source=source + held_text)
    links, parents = urdf.links_of(start, names, mimic_joints)
    if not 1 <= len(links) <= MAX_JOINTS:
        raise RobotError(f"{len(links)} joints move below link {start!r}: 1 to {MAX_JOINTS}.")
    joint_names = [link.joint for link in links]
    ends = _branch_ends([name in mimic_joints for name in joint_names], parents)
    flanges = [Tip(links[b].name, b, urdf.flange_pose(links[b].name)) for b in ends]
    tip = flanges[0].pose if len(ends) == 1 else np.eye(4)
    source += _rest_text(held_positions)
    robot = urdf.robot(links, [urdf.by_name[name] for name in recorded], tip, source)
    binding, offset = _binding(joint_names, list(recorded), mimic_joints)
    if not _is_serial(parents, binding, offset):
        robot = build_tree(robot, parents, binding, offset, recorded, flanges)
    return validate_robot(robot)


def _match_names(
    recorded: Sequence[str], moving_names: Sequence[str], followers: Mapping[str, Follower]
) -> tuple[list[str], dict[str, Follower]]:
    """Joints of the recorded names, and those bound to them."""
    names = [_match_name(name, moving_names) for name in recorded]
    for name in names:
        if name in followers:
            raise RobotError(
                f"recorded joint {name!r} mimics {followers[name][0]!r}: record that one, or "
                "remove the <mimic>."
            )
    return names, {name: f for name, f in followers.items() if f[0] in names}


def _names_on_paths(
    urdf: Urdf, start: str, tips: Sequence[str], followers: Mapping[str, Follower]
) -> tuple[list[str], dict[str, Follower]]:
    """Free joints on the chains to the tips, in file order, and those bound to them."""
    chains = [urdf.chain(start, urdf.require_link(tip, "tip")) for tip in tips]
    on_paths = {joint.name for chain in chains for joint in chain if joint.is_moving}
    recorded = [name for name in urdf.moving_names if name in on_paths and name not in followers]
    mimic_joints = {n: f for n, f in followers.items() if n in on_paths and f[0] in recorded}
    unbound = [name for name in on_paths if name not in recorded and name not in mimic_joints]
    if unbound:
        raise RobotError(f"joint {unbound[0]!r} mimics a joint outside the chains to the tips.")
    return recorded, mimic_joints


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


def _follower(name: str, urdf: Urdf) -> Follower | None:
    """Joint that a mimic joint follows at the end of its chain, with factor and offset."""
    factor, offset, seen, current = 1.0, 0.0, {name}, name
    while (mimic := urdf.by_name[current].mimic) is not None:
        label = f"of the mimic of joint {current!r}"
        offset += factor * parse_number(mimic.get("offset", "0"), f"offset {label}")
        factor *= parse_number(mimic.get("multiplier", "1"), f"multiplier {label}")
        current = mimic.get("joint", "")
        if current not in urdf.by_name or current in seen:
            raise RobotError(
                f"joint {name!r} mimics {current!r}, which is not a joint of this URDF or mimics "
                "it in turn: correct its <mimic>."
            )
        seen.add(current)
    return None if current == name else (current, factor, offset)


def _rest_positions(urdf: Urdf, names: set[str]) -> dict[str, float]:
    """Position of every moving joint that is held: zero, or the limit next to it."""
    return {
        joint.name: float(np.clip(0.0, *joint.limits[:2])) if joint.has_single_axis else 0.0
        for joint in urdf.joints.values()
        if joint.is_moving and joint.name not in names
    }


def _rest_text(held_positions: Mapping[str, float]) -> str:
    if not held_positions:
        return ""
    text = ", ".join(list(held_positions)[:_SHOWN_NAMES]) + (
        ", ..." if len(held_positions) > _SHOWN_NAMES else ""
    )
    return f"; {len(held_positions)} joints held at zero: {text}"


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
