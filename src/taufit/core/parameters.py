"""Names of parameters, and which of the links' is where.

A torque model has more than links: its layout is derived from its terms (`terms.layout`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

LINK_PARAMETERS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
PER_LINK = len(LINK_PARAMETERS)


class ParsedName(NamedTuple):
    """What a parameter's name says.

    Attributes:
        kind: "link" or "joint"; anything else for names that are no parameter of an arm.
        number: Of the link or joint, from 0; -1 where the name has none.
        quantity: e.g. "Ixx", "rotor", "coulomb".
    """

    kind: str
    number: int
    quantity: str


def parse_name(name: str) -> ParsedName:
    """Owner("link", 2, "m") of "link_3.m"."""
    owner, dot, quantity = name.partition(".")
    kind, _, number = owner.rpartition("_")
    if not dot or not number.isdigit():
        return ParsedName(owner, -1, quantity)
    return ParsedName(kind, int(number) - 1, quantity)


def link_name(link: int) -> str:
    """ "link_3" of 2: how parameters call a link, whatever its own name is."""
    return f"link_{link + 1}"


def joint_name(joint: int) -> str:
    """ "joint_3" of 2: how parameters call a joint, whatever its own name is."""
    return f"joint_{joint + 1}"


def link_parameter(link: int, quantity: str) -> str:
    """ "link_3.m" of 2 and "m"."""
    return f"{link_name(link)}.{quantity}"


def joint_parameter(joint: int, quantity: str) -> str:
    """ "joint_3.coulomb" of 2 and "coulomb"."""
    return f"{joint_name(joint)}.{quantity}"


@dataclass(frozen=True)
class LinkLayout:
    """Ten parameters per link, link after link.

    Attributes:
        joints: Of the arm; a joint moves one link.
    """

    joints: int

    @cached_property
    def links(self) -> slice:
        """Inertial parameters of all links."""
        return slice(0, PER_LINK * self.joints)

    @cached_property
    def masses(self) -> slice:
        """One entry per link: its mass."""
        return slice(0, self.links.stop, PER_LINK)

    @cached_property
    def size(self) -> int:
        """How many parameters there are."""
        return PER_LINK * self.joints

    def link(self, link: int) -> slice:
        """The ten of one link; negative numbers count from the tip."""
        start = PER_LINK * (link % self.joints)
        return slice(start, start + PER_LINK)

    def from_link(self, link: int) -> slice:
        """Those of a link and of all behind it: what that link's joint moves."""
        return slice(PER_LINK * link, self.links.stop)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One per parameter: link_1.m, link_1.hx, ..."""
        return tuple(
            link_parameter(i, quantity) for i in range(self.joints) for quantity in LINK_PARAMETERS
        )

    @cached_property
    def owner(self) -> tuple[int, ...]:
        """The link or joint each parameter belongs to, from 0."""
        return tuple(parse_name(name).number for name in self.names)

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Each parameter's name without its owner: "Ixx", "rotor", "coulomb"."""
        return tuple(parse_name(name).quantity for name in self.names)

    def index(self, name: str) -> int:
        """Where a parameter stands.

        Raises:
            KeyError: With the names that exist for this owner.
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
