"""Names of parameters, and layout of the link parameters.

The layout of a complete torque model is derived from its terms (`terms.layout`).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError

LINK_PARAMETERS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
PER_LINK = len(LINK_PARAMETERS)


class ParsedName(NamedTuple):
    """Parts of a parameter name.

    Attributes:
        kind: "link" or "joint"; anything else for names that are no parameter of a robot.
        number: Number of the link or joint, from 0; -1 if the name has none.
        quantity: Quantity, e.g. "Ixx", "rotor", "coulomb".
    """

    kind: str
    number: int
    quantity: str


def parse_name(name: str) -> ParsedName:
    """Parse a parameter name: ParsedName("link", 2, "m") of "link_3.m"."""
    owner, dot, quantity = name.partition(".")
    kind, _, number = owner.rpartition("_")
    if not dot or not number.isdigit():
        return ParsedName(owner, -1, quantity)
    return ParsedName(kind, int(number) - 1, quantity)


def link_name(link: int) -> str:
    """Name of a link in parameter names: "link_3" of 2."""
    return f"link_{link + 1}"


def joint_name(joint: int) -> str:
    """Name of a joint in parameter names: "joint_3" of 2."""
    return f"joint_{joint + 1}"


def link_parameter(link: int, quantity: str) -> str:
    """Name of a link parameter: "link_3.m" of 2 and "m"."""
    return f"{link_name(link)}.{quantity}"


def joint_parameter(joint: int, quantity: str) -> str:
    """Name of a joint parameter: "joint_3.coulomb" of 2 and "coulomb"."""
    return f"{joint_name(joint)}.{quantity}"


@dataclass(frozen=True)
class LinkLayout:
    """Layout of ten parameters per link, link after link.

    Attributes:
        joints: Number of joints.
        support: Links that each joint moves, of a tree; empty if it moves its link and all later.
        tip: Number of the link at the tip; None if a tree has several.
    """

    joints: int
    support: tuple[tuple[bool, ...], ...] = ()
    tip: int | None = -1

    @cached_property
    def bodies(self) -> int:
        """Number of links."""
        return len(self.support[0]) if self.support else self.joints

    @cached_property
    def links(self) -> slice:
        """Slice of the inertial parameters of all links."""
        return slice(0, PER_LINK * self.bodies)

    @cached_property
    def masses(self) -> slice:
        """Slice of the link masses."""
        return slice(0, self.links.stop, PER_LINK)

    @cached_property
    def size(self) -> int:
        """Number of parameters."""
        return PER_LINK * self.bodies

    def link(self, link: int) -> slice:
        """Slice of one link; -1 is the link at the tip, others count back from it."""
        if link == -1 and self.support:
            if self.tip is None:
                raise RobotError("the robot has several tips: choose one (`with_tip`, --at TIP).")
            link = self.tip
        start = PER_LINK * (link % self.bodies)
        return slice(start, start + PER_LINK)

    def columns_of_joint(self, joint: int) -> list[int]:
        """Indices of the parameters of all links that a joint moves."""
        if not self.support:
            return list(range(PER_LINK * joint, self.links.stop))
        return [c for c in range(self.links.stop) if self.support[joint][c // PER_LINK]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameter names: link_1.m, link_1.hx, ..."""
        return tuple(
            link_parameter(i, quantity) for i in range(self.bodies) for quantity in LINK_PARAMETERS
        )

    @cached_property
    def owner(self) -> tuple[int, ...]:
        """Link or joint of each parameter, from 0."""
        return tuple(parse_name(name).number for name in self.names)

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Quantity of each parameter: "Ixx", "rotor", "coulomb"."""
        return tuple(parse_name(name).quantity for name in self.names)

    def index(self, name: str) -> int:
        """Index of a parameter.

        Raises:
            KeyError: With similar names.
        """
        if name in self._index_by_name:
            return self._index_by_name[name]
        owner = name.partition(".")[0] + "."
        candidates = [other for other in self.names if other.startswith(owner)] or list(
            self.names[:3]
        )
        raise KeyError(f"there is no parameter {name!r}: there are {', '.join(candidates)}")

    @cached_property
    def _index_by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}
