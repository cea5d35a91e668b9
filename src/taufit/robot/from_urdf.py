"""Robots from URDF: one chain, with fixed joints merged into the links.

Meshes are not opened and may be missing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.robot.checks import MAX_JOINTS, normalise_axis, parse_number, validate_robot
from taufit.robot.inertia import from_centre_of_mass, transform_parameters
from taufit.robot.mounting import rotation_rpy
from taufit.robot.pose import pose_from_rpy
from taufit.robot.robot import Drives, JointLimits, Link, Robot

_MOVING_TYPES = ("revolute", "continuous", "prismatic")
_TYPES = (*_MOVING_TYPES, "fixed", "floating", "planar")
_TOOL_NAMES = ("tool0", "flange", "tool", "ee_link", "ee", "tcp")

_MAX_ELEMENTS = 500_000
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class _Joint:
    name: str
    kind: str
    parent: str
    child: str
    origin: Float[Array, "4 4"]
    element: ElementTree.Element

    @property
    def is_moving(self) -> bool:
        return self.kind != "fixed"


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
    root = parse_xml(text)
    links = _links(root)
    joints = _joints(root, links)
    start = _base_link(links, joints, base)
    tip_link = _tip_link(links, joints, start, tip)
    chain = _chain(joints, start, tip_link)
    moving = [joint for joint in chain if joint.is_moving]
    if not moving:
        raise RobotError(f"no joint moves between link {start!r} and link {tip_link!r}.")
    if len(moving) > MAX_JOINTS:
        raise RobotError(f"{len(moving)} joints are more than a serial arm has ({MAX_JOINTS}).")
    if any(_mimics_one_of(joint, moving) for joint in moving):
        from taufit.robot.urdf_tree import tree_from_urdf

        return tree_from_urdf(text, tips=(tip_link,), base=base, source=source)
    _require_single_axes(moving)

    on_chain = {joint.name for joint in chain}
    child_joints = _joints_by_parent(joints)

    chain_links, limits, placement = [], [], np.eye(4)
    for joint in chain:
        placement = placement @ joint.origin
        if not joint.is_moving:
            continue
        placement[:3, 3][np.abs(placement[:3, 3]) < 1e-9] = 0.0
        axis = _axis(joint)
        screw = np.zeros(6)
        screw[slice(3, 6) if joint.kind == "prismatic" else slice(0, 3)] = axis
        inertia = _inertia_with_attachments(joint.child, links, child_joints, on_chain)
        chain_links.append(Link(joint.child, joint.name, placement, screw, inertia))
        limits.append(_joint_limits(joint))
        placement = np.eye(4)
    if tip is None and tip_link == moving[-1].child:
        placement = _flange_pose(tip_link, child_joints)

    lengths, slopes = _lengths(chain_links)
    columns = np.array(limits).T
    return validate_robot(
        Robot(
            root.get("name") or "robot",
            tuple(chain_links),
            JointLimits(*(np.array(column) for column in columns)),
            Drives.direct_drive(len(chain_links)),
            tip=placement,
            lengths=lengths,
            length_slopes=slopes,
            source=source,
            urdf=text,
        )
    )


_FORMATS = {"robot": "URDF", "mujoco": "MJCF"}


def parse_xml(text: str, root_tag: str = "robot") -> ElementTree.Element:
    """Parse XML without document type, hence without expanding entities."""
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = _reject_doctype
    _limit_size(parser)
    # Other errors are reported by the tree builder below.
    with suppress(expat.ExpatError):
        parser.Parse(text.encode("utf-8", "replace"), True)
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise RobotError(f"this is not complete, valid XML: {error}.") from None
    if root.tag.rsplit("}", 1)[-1] != root_tag:
        raise RobotError(
            f"a {_FORMATS[root_tag]} starts with <{root_tag}>, this file with <{root.tag[:40]}>."
        )
    return root


def _limit_size(parser: expat.XMLParserType) -> None:
    """Limit number and depth of elements, since a tree needs more memory than its text."""
    count = depth = 0

    def start(*_: object) -> None:
        nonlocal count, depth
        count, depth = count + 1, depth + 1
        if count > _MAX_ELEMENTS or depth > _MAX_DEPTH:
            raise RobotError(
                f"this XML has more than {_MAX_ELEMENTS} elements, or more than {_MAX_DEPTH} "
                "inside "
                "each other: no robot description has."
            )

    def end(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler = start
    parser.EndElementHandler = end


def _reject_doctype(*_: object) -> None:
    raise RobotError(
        "this XML declares a document type or entities, which a URDF does not need and which "
        "can expand without end: remove the declaration."
    )


def _links(root: ElementTree.Element) -> dict[str, Float[Array, " 10"]]:
    """Inertial parameters of every link in its frame."""
    out: dict[str, Float[Array, " 10"]] = {}
    for element in root.findall("link"):
        name = element.get("name")
        if not name:
            raise RobotError("a <link> has no name.")
        if name in out:
            raise RobotError(f"two links are called {name!r}.")
        out[name] = _inertial(element, name)
    if not out:
        raise RobotError("this URDF has no links.")
    return out


def _inertial(element: ElementTree.Element, name: str) -> Float[Array, " 10"]:
    inertial = element.find("inertial")
    if inertial is None:
        return np.zeros(10)
    mass = inertial.find("mass")
    m = _attribute(mass, "value", f"mass of link {name!r}", 0.0)
    if m < 0.0:
        raise RobotError(f"link {name!r} has a negative mass ({m:g} kg): it must not be negative.")
    position, angles = _origin(inertial, f"inertial origin of link {name!r}")
    tensor = inertial.find("inertia")
    xx, xy, xz, yy, yz, zz = (
        _attribute(tensor, f"i{key}", f"i{key} of link {name!r}", 0.0)
        for key in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    rotation_matrix = rotation_rpy(*angles)
    tensor_at_centre = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return from_centre_of_mass(m, position, rotation_matrix @ tensor_at_centre @ rotation_matrix.T)


def _joints(root: ElementTree.Element, links: dict[str, Float[Array, " 10"]]) -> dict[str, _Joint]:
    """Every joint by its child link."""
    out: dict[str, _Joint] = {}
    names: set[str] = set()
    for element in root.findall("joint"):
        name = element.get("name")
        if not name:
            raise RobotError("a <joint> has no name.")
        if name in names:
            raise RobotError(f"two joints are called {name!r}.")
        names.add(name)
        kind = element.get("type")
        if kind not in _TYPES:
            raise RobotError(
                f"joint {name!r} is of type {kind!r}: taufit knows {', '.join(_TYPES[:4])}."
            )
        ends = []
        for tag in ("parent", "child"):
            end = element.find(tag)
            link = None if end is None else end.get("link")
            if link not in links:
                raise RobotError(
                    f"joint {name!r} names {link!r} as its {tag}, which is not a link of this URDF."
                )
            ends.append(link)
        parent, child = ends
        if child in out:
            raise RobotError(
                f"link {child!r} hangs on two joints, {out[child].name!r} and {name!r}: taufit "
                "needs a tree without loops."
            )
        origin = pose_from_rpy(*_origin(element, f"origin of joint {name!r}"))
        out[child] = _Joint(name, kind, parent, child, origin, element)
    checked_links: set[str] = set()
    for child in out:
        path: set[str] = set()
        current_link = child
        while current_link in out and current_link not in checked_links:
            if current_link in path:
                raise RobotError(
                    f"the joints form a loop through link {current_link!r}: taufit needs a tree."
                )
            path.add(current_link)
            current_link = out[current_link].parent
        checked_links |= path
    return out


def _attribute(element: ElementTree.Element | None, key: str, label: str, missing: float) -> float:
    value = None if element is None else element.get(key)
    return missing if value is None else parse_number(value, label)


def _origin(
    element: ElementTree.Element, label: str
) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
    origin = element.find("origin")
    if origin is None:
        return np.zeros(3), np.zeros(3)
    return _triple(origin, "xyz", label), _triple(origin, "rpy", label)


def _triple(element: ElementTree.Element, key: str, label: str) -> Float[Array, " 3"]:
    value = element.get(key)
    if value is None:
        return np.zeros(3)
    parts = value.split()
    if len(parts) != 3:
        raise RobotError(f"{key} of the {label} must be three numbers, not {value[:40]!r}.")
    return np.array([parse_number(part, f"{key} of the {label}") for part in parts])


def _axis(joint: _Joint) -> Float[Array, " 3"]:
    element = joint.element.find("axis")
    if element is None or element.get("xyz") is None:
        raise RobotError(f'joint {joint.name!r} has no axis: add one such as <axis xyz="0 0 1"/>.')
    return normalise_axis(
        _triple(element, "xyz", f"axis of joint {joint.name!r}"), f"joint {joint.name!r}"
    )


def _joint_limits(joint: _Joint) -> tuple[float, float, float, float, float]:
    """Limits: lower, upper, velocity, acceleration, effort; infinite if missing or zero."""
    element = joint.element.find("limit")
    label = f"limit of joint {joint.name!r}"
    inf = float("inf")
    lower = _attribute(element, "lower", f"lower {label}", -inf)
    upper = _attribute(element, "upper", f"upper {label}", inf)
    if joint.kind == "continuous" or lower == upper == 0.0:
        lower, upper = -inf, inf
    rates = [
        _attribute(element, key, f"{key} {label}", inf)
        for key in ("velocity", "acceleration", "effort")
    ]
    velocity, acceleration, effort = (inf if rate == 0.0 else abs(rate) for rate in rates)
    return lower, upper, velocity, acceleration, effort


def _mimics_one_of(joint: _Joint, others: list[_Joint]) -> bool:
    mimic = joint.element.find("mimic")
    return mimic is not None and mimic.get("joint") in {x.name for x in others if x is not joint}


def _joints_by_parent(joints: Mapping[str, _Joint]) -> dict[str, list[_Joint]]:
    """Joints below every link."""
    out: dict[str, list[_Joint]] = {}
    for joint in joints.values():
        out.setdefault(joint.parent, []).append(joint)
    return out


def _require_single_axes(moving: list[_Joint]) -> None:
    for joint in moving:
        _require_single_axis(joint)


def _require_single_axis(joint: _Joint, bound: Container[str] = ()) -> None:
    if joint.kind in ("floating", "planar"):
        raise RobotError(
            f"joint {joint.name!r} is {joint.kind}: taufit needs joints with one axis. Start the "
            "chain behind it with --base."
        )
    if joint.element.find("mimic") is not None and joint.name not in bound:
        raise RobotError(
            f"joint {joint.name!r} mimics another joint: taufit needs independent joints. End the "
            f"chain before it, for example with --tip {joint.parent}."
        )


def _base_link(
    links: dict[str, Float[Array, " 10"]], joints: dict[str, _Joint], base: str | None
) -> str:
    if base is not None:
        return _require_link(links, base, "base")
    roots = [name for name in links if name not in joints]
    parents = {joint.parent for joint in joints.values()}
    with_joints = [name for name in roots if name in parents]
    if len(with_joints) > 1:
        raise RobotError(
            f"this URDF has {len(with_joints)} separate trees, starting at "
            f"{', '.join(with_joints[:10])}: choose one with --base."
        )
    if not with_joints:
        raise RobotError("this URDF has no connected joints: nothing can move.")
    return with_joints[0]


def _require_link(links: dict[str, Float[Array, " 10"]], name: str, role: str) -> str:
    if name not in links:
        raise RobotError(
            f"{role} link {name!r} is not in this URDF; it has {', '.join(list(links)[:40])}."
        )
    return name


def _depths(joints: dict[str, _Joint], start: str) -> dict[str, int]:
    """Number of moving joints between start and each link below it."""
    child_joints: dict[str, list[_Joint]] = {}
    for joint in joints.values():
        child_joints.setdefault(joint.parent, []).append(joint)
    out = {start: 0}
    stack = [start]
    while stack:
        link = stack.pop()
        for joint in child_joints.get(link, []):
            out[joint.child] = out[link] + joint.is_moving
            stack.append(joint.child)
    return out


def _tip_link(
    links: dict[str, Float[Array, " 10"]],
    joints: dict[str, _Joint],
    start: str,
    tip: str | None,
) -> str:
    """Last link of the chain: the requested one, or the child of the farthest joint."""
    depths = _depths(joints, start)
    if tip is not None:
        if _require_link(links, tip, "tip") not in depths:
            raise RobotError(f"link {tip!r} does not hang below link {start!r}.")
        return tip
    depth = {
        joint.child: depths[joint.child]
        for joint in joints.values()
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
            f"--tip {_common_link(joints, depths, start, ends)}."
        )
    return ends[0]


def _common_link(
    joints: dict[str, _Joint], depths: dict[str, int], start: str, ends: list[str]
) -> str:
    """Farthest link common to all ends, if a joint moves before it, else the first end."""

    def ancestors(link: str) -> list[str]:
        path = [link]
        while path[-1] != start:
            path.append(joints[path[-1]].parent)
        return path

    common = set(ancestors(ends[0])).intersection(*(ancestors(end) for end in ends[1:20]))
    first = next(link for link in ancestors(ends[0]) if link in common)
    return first if depths[first] else ends[0]


def _chain(joints: dict[str, _Joint], start: str, last: str) -> list[_Joint]:
    out = []
    current_link = last
    while current_link != start:
        out.append(joints[current_link])
        current_link = joints[current_link].parent
    return out[::-1]


def _inertia_with_attachments(
    link: str,
    links: dict[str, Float[Array, " 10"]],
    child_joints: dict[str, list[_Joint]],
    on_chain: set[str],
) -> Float[Array, " 10"]:
    """Inertial parameters of a link with everything attached to it except the next moving link.

    Fixed joints of the chain are followed, moving ones are not; moving joints outside the chain are
    at zero.
    """
    total = np.zeros(10)
    stack = [(link, np.eye(4))]
    while stack:
        name, pose = stack.pop()
        total = total + transform_parameters(links[name], pose)
        stack.extend(
            (joint.child, pose @ joint.origin)
            for joint in child_joints.get(name, [])
            if not (joint.is_moving and joint.name in on_chain)
        )
    return total


def _flange_pose(last: str, child_joints: dict[str, list[_Joint]]) -> Float[Array, "4 4"]:
    """Tool frame fixed to the last link: by usual names, else the only end."""
    ends: list[tuple[str, Float[Array, "4 4"]]] = []
    all_links: list[tuple[str, Float[Array, "4 4"]]] = []
    stack = [(last, np.eye(4))]
    while stack:
        name, pose = stack.pop()
        all_links.append((name, pose))
        fixed = [joint for joint in child_joints.get(name, []) if not joint.is_moving]
        if not fixed:
            ends.append((name, pose))
        stack += [(joint.child, pose @ joint.origin) for joint in fixed]
    for tool_name in _TOOL_NAMES:
        for name, pose in all_links:
            if name == tool_name or name.endswith(f"_{tool_name}"):
                return pose
    return ends[0][1] if len(ends) == 1 else np.eye(4)


def _lengths(
    links: list[Link],
) -> tuple[tuple[tuple[str, float], ...], Float[Array, "l j 9"]]:
    """Distinct nonzero coordinates of the joint origins as named lengths: x2, z3.

    Equal values are one length.
    """
    lengths: list[tuple[str, float]] = []
    slopes: list[Float[Array, "j 9"]] = []
    for i, link in enumerate(links):
        for k in range(3):
            value = float(link.placement[k, 3])
            if value == 0.0:
                continue
            index = next(
                (n for n, (_, x) in enumerate(lengths) if abs(abs(value) - x) < 1e-9), len(lengths)
            )
            if index == len(lengths):
                lengths.append((f"{'xyz'[k]}{i + 1}", abs(value)))
                slopes.append(np.zeros((len(links), 9)))
            slopes[index][i, k] = np.sign(value)
    return tuple(lengths), np.array(slopes).reshape(-1, len(links), 9)
