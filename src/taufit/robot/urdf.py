"""Links and joints of a URDF, and robots of those that move.

Meshes are not opened and may be missing.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import cached_property
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.robot.checks import normalise_axis, parse_number
from taufit.robot.inertia import from_centre_of_mass, transform_parameters
from taufit.robot.mounting import rotation_rpy
from taufit.robot.pose import pose_from_rpy
from taufit.robot.robot import Drives, JointLimits, Link, Robot

_MOVING_TYPES = ("revolute", "continuous", "prismatic")
_TYPES = (*_MOVING_TYPES, "fixed", "floating", "planar")
_TOOL_NAMES = ("tool0", "flange", "tool", "ee_link", "ee", "tcp")

_MAX_ELEMENTS = 500_000
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, eq=False)
class UrdfJoint:
    """Joint of a URDF.

    Attributes:
        name, kind: Name and type.
        parent, child: Names of its links.
        origin: Pose of the child in the parent at zero.
        element: XML element.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: Float[Array, "4 4"]
    element: ElementTree.Element

    @property
    def is_moving(self) -> bool:
        return self.kind != "fixed"

    @property
    def has_single_axis(self) -> bool:
        return self.kind in _MOVING_TYPES

    @property
    def mimic(self) -> ElementTree.Element | None:
        """Element that binds the joint to another one."""
        return self.element.find("mimic")

    @property
    def screw(self) -> Float[Array, " 6"]:
        """Screw of the joint in the frame of its child."""
        element = self.element.find("axis")
        if element is None or element.get("xyz") is None:
            raise RobotError(
                f'joint {self.name!r} has no axis: add one such as <axis xyz="0 0 1"/>.'
            )
        axis = _triple(element, "xyz", f"axis of joint {self.name!r}")
        screw = np.zeros(6)
        screw[slice(3, 6) if self.kind == "prismatic" else slice(0, 3)] = normalise_axis(
            axis, f"joint {self.name!r}"
        )
        return screw

    @property
    def limits(self) -> tuple[float, float, float, float, float]:
        """Limits: lower, upper, velocity, acceleration, effort; infinite if missing or zero."""
        element = self.element.find("limit")
        label = f"limit of joint {self.name!r}"
        inf = float("inf")
        lower = _attribute(element, "lower", f"lower {label}", -inf)
        upper = _attribute(element, "upper", f"upper {label}", inf)
        if self.kind == "continuous" or lower == upper == 0.0:
            lower, upper = -inf, inf
        rates = [
            _attribute(element, key, f"{key} {label}", inf)
            for key in ("velocity", "acceleration", "effort")
        ]
        velocity, acceleration, effort = (inf if rate == 0.0 else abs(rate) for rate in rates)
        return lower, upper, velocity, acceleration, effort

    def require_single_axis(self, bound: Collection[str] = ()) -> None:
        """RobotError for a joint of several axes, or one that mimics another and is not bound."""
        if self.is_moving and not self.has_single_axis:
            raise RobotError(
                f"joint {self.name!r} is {self.kind}: taufit needs joints with one axis. Start the "
                "chain behind it with --base."
            )
        if self.mimic is not None and self.name not in bound:
            raise RobotError(
                f"joint {self.name!r} mimics another joint: taufit needs independent joints. End "
                f"the chain before it, for example with --tip {self.parent}."
            )


@dataclass(frozen=True, eq=False)
class Urdf:
    """Links and joints of a URDF.

    Attributes:
        text: The file.
        name: Name of the robot.
        links: Inertial parameters of every link in its frame.
        joints: Every joint by its child link.
    """

    text: str
    name: str
    links: dict[str, Float[Array, " 10"]]
    joints: dict[str, UrdfJoint]

    @classmethod
    def parse(cls, text: str) -> Urdf:
        """Links and joints of the text of a URDF."""
        root = parse_xml(text)
        links = _links(root)
        return cls(text, root.get("name") or "robot", links, _joints(root, links))

    @cached_property
    def by_name(self) -> dict[str, UrdfJoint]:
        """Every joint by its name."""
        return {joint.name: joint for joint in self.joints.values()}

    @cached_property
    def by_parent(self) -> dict[str, list[UrdfJoint]]:
        """Joints below every link."""
        out: dict[str, list[UrdfJoint]] = {}
        for joint in self.joints.values():
            out.setdefault(joint.parent, []).append(joint)
        return out

    @property
    def single_axis_joints(self) -> dict[str, UrdfJoint]:
        """Joints that turn or slide, by name."""
        return {name: joint for name, joint in self.by_name.items() if joint.has_single_axis}

    @property
    def moving_names(self) -> list[str]:
        """Names of all joints that move, in file order."""
        return [joint.name for joint in self.joints.values() if joint.is_moving]

    def base_link(self, base: str | None) -> str:
        """First link: the requested one, or the only root."""
        if base is not None:
            return self.require_link(base, "base")
        roots = [name for name in self.links if name not in self.joints]
        with_joints = [name for name in roots if name in self.by_parent]
        if len(with_joints) > 1:
            raise RobotError(
                f"this URDF has {len(with_joints)} separate trees, starting at "
                f"{', '.join(with_joints[:10])}: choose one with --base."
            )
        if not with_joints:
            raise RobotError("this URDF has no connected joints: nothing can move.")
        return with_joints[0]

    def require_link(self, name: str, role: str) -> str:
        """The name; RobotError if it is that of no link."""
        if name not in self.links:
            raise RobotError(
                f"{role} link {name!r} is not in this URDF; it has "
                f"{', '.join(list(self.links)[:40])}."
            )
        return name

    def path(self, link: str) -> list[UrdfJoint]:
        """Joints from the root to a link."""
        out = []
        while link in self.joints:
            out.append(self.joints[link])
            link = out[-1].parent
        return out[::-1]

    def chain(self, start: str, last: str) -> list[UrdfJoint]:
        """Joints from one link to another; RobotError if that does not hang below it."""
        path = self.path(last)
        ancestors = [joint.parent for joint in path]
        if last != start and start not in ancestors:
            raise RobotError(f"link {last!r} does not hang below link {start!r}.")
        return path[ancestors.index(start) :] if last != start else []

    def robot(
        self,
        links: list[Link],
        recorded: list[UrdfJoint],
        tip: Float[Array, "4 4"],
        source: str,
    ) -> Robot:
        """Robot of some links, with the limits of recorded joints."""
        lengths, slopes = _lengths(links)
        limits = np.array([joint.limits for joint in recorded]).T
        return Robot(
            self.name,
            tuple(links),
            JointLimits(*(np.array(column) for column in limits)),
            Drives.direct_drive(len(recorded)),
            tip=tip,
            lengths=lengths,
            length_slopes=slopes,
            source=source,
            urdf=self.text,
        )

    def links_of(
        self, start: str, names: Collection[str], bound: Collection[str] = ()
    ) -> tuple[list[Link], list[int]]:
        """Links of the joints of given names, depth first in file order, and their parents.

        Args:
            start: First link.
            names: Names of moving joints.
            bound: Those of them that may mimic others.
        """
        out: list[Link] = []
        parents: list[int] = []
        stack = [(start, -1, np.eye(4))]
        while stack:
            name, parent, pose = stack.pop()
            joint = self.joints.get(name)
            if joint is not None and joint.name in names and name != start:
                joint.require_single_axis(bound)
                placement = pose.copy()
                placement[:3, 3][np.abs(placement[:3, 3]) < 1e-9] = 0.0
                inertia = self._inertia_with_attachments(name, names)
                out.append(Link(name, joint.name, placement, joint.screw, inertia))
                parents.append(parent)
                parent, pose = len(out) - 1, np.eye(4)
            below = reversed(self.by_parent.get(name, []))
            stack += [(joint.child, parent, pose @ joint.origin) for joint in below]
        return out, parents

    def _inertia_with_attachments(self, link: str, names: Collection[str]) -> Float[Array, " 10"]:
        """Inertial parameters of a link with everything attached to it except the next links.

        Joints of other names are at zero.
        """
        total = np.zeros(10)
        stack = [(link, np.eye(4))]
        while stack:
            name, pose = stack.pop()
            total = total + transform_parameters(self.links[name], pose)
            stack.extend(
                (joint.child, pose @ joint.origin)
                for joint in self.by_parent.get(name, [])
                if not (joint.is_moving and joint.name in names)
            )
        return total

    def flange_pose(self, last: str) -> Float[Array, "4 4"]:
        """Tool frame fixed to a link: by usual names, else the only end."""
        ends: list[Float[Array, "4 4"]] = []
        fixed_links: list[tuple[str, Float[Array, "4 4"]]] = []
        stack = [(last, np.eye(4))]
        while stack:
            name, pose = stack.pop()
            fixed_links.append((name, pose))
            fixed = [joint for joint in self.by_parent.get(name, []) if not joint.is_moving]
            if not fixed:
                ends.append(pose)
            stack += [(joint.child, pose @ joint.origin) for joint in fixed]
        for tool_name in _TOOL_NAMES:
            for name, pose in fixed_links:
                if name == tool_name or name.endswith(f"_{tool_name}"):
                    return pose
        return ends[0] if len(ends) == 1 else np.eye(4)


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


def _joints(
    root: ElementTree.Element, links: dict[str, Float[Array, " 10"]]
) -> dict[str, UrdfJoint]:
    """Every joint by its child link."""
    out: dict[str, UrdfJoint] = {}
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
        out[child] = UrdfJoint(name, kind, parent, child, origin, element)
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


def roll_pitch_yaw(rotation: Float[Array, "3 3"]) -> Float[Array, " 3"]:
    """Angles with rotation = Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[0, 0], rotation[1, 0]))
    if np.hypot(rotation[0, 0], rotation[1, 0]) > 1e-12:
        roll = np.arctan2(rotation[2, 1], rotation[2, 2])
        yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    else:
        roll, yaw = np.arctan2(-rotation[1, 2], rotation[1, 1]), 0.0
    return np.array([roll, pitch, yaw])
