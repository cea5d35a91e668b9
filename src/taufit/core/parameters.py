"""Which entry of theta is what: the order of a torque model's parameters, in one place.

    theta = (ten per link | one rotor inertia per joint | friction terms joint by joint | one offset
             per joint)

Rotor inertias, friction and offsets are there where the model has them. Everybody else asks by
name, slice, kind or owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int

LINK_PARAMETERS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
PER_LINK = len(LINK_PARAMETERS)


class Owner(NamedTuple):
    """What a parameter's name says.

    Attributes:
        kind: "link" or "joint"; anything else for names that are no parameter of an arm.
        number: Of the link or joint, from 0; -1 where the name has none.
        what: e.g. "Ixx", "rotor", "coulomb".
    """

    kind: str
    number: int
    what: str


def parse_name(name: str) -> Owner:
    """Owner("link", 2, "m") of "link_3.m"."""
    owner, dot, what = name.partition(".")
    kind, _, number = owner.rpartition("_")
    if not dot or not number.isdigit():
        return Owner(owner, -1, what)
    return Owner(kind, int(number) - 1, what)


def link_name(link: int) -> str:
    """ "link_3" of 2: how parameters call a link, whatever its own name is."""
    return f"link_{link + 1}"


def joint_name(joint: int) -> str:
    """ "joint_3" of 2: how parameters call a joint, whatever its own name is."""
    return f"joint_{joint + 1}"


def link_parameter(link: int, what: str) -> str:
    """ "link_3.m" of 2 and "m"."""
    return f"{link_name(link)}.{what}"


def joint_parameter(joint: int, what: str) -> str:
    """ "joint_3.coulomb" of 2 and "coulomb"."""
    return f"{joint_name(joint)}.{what}"


class Parts(NamedTuple):
    """theta cut by kind; rotor inertias and offsets are zero where the model has none."""

    links: Float[Array, "j 10"]
    rotors: Float[Array, " j"]
    friction: Float[Array, "j k"]
    offsets: Float[Array, " j"]


@dataclass(frozen=True)
class ParameterLayout:
    """The order of a torque model's parameters.

    Attributes:
        joints: Of the arm; a joint moves one link.
        terms: Names of one joint's friction terms.
        rotor_inertia: Whether each joint has a rotor inertia.
        offset: Whether each joint has a constant torque.
    """

    joints: int
    terms: tuple[str, ...] = ()
    rotor_inertia: bool = False
    offset: bool = False

    @staticmethod
    @lru_cache(maxsize=512)
    def of(
        joints: int, terms: tuple[str, ...] = (), rotor_inertia: bool = False, offset: bool = False
    ) -> ParameterLayout:
        """The same as the constructor, made once: names and owners are kept with it."""
        return ParameterLayout(joints, terms, rotor_inertia, offset)

    @cached_property
    def links(self) -> slice:
        """Inertial parameters of all links."""
        return slice(0, PER_LINK * self.joints)

    @cached_property
    def rotors(self) -> slice:
        """Rotor inertias; empty where the model has none."""
        start = PER_LINK * self.joints
        return slice(start, start + self.joints * self.rotor_inertia)

    @cached_property
    def friction(self) -> slice:
        """Friction terms of all joints."""
        start = self.rotors.stop
        return slice(start, start + self.joints * len(self.terms))

    @cached_property
    def offsets(self) -> slice:
        """Constant torques; empty where the model has none."""
        start = self.friction.stop
        return slice(start, start + self.joints * self.offset)

    @cached_property
    def rest(self) -> slice:
        """Everything behind the links: rotor inertias, friction, offsets."""
        return slice(self.links.stop, self.size)

    @cached_property
    def masses(self) -> slice:
        """One entry per link: its mass."""
        return slice(0, self.links.stop, PER_LINK)

    @cached_property
    def size(self) -> int:
        """How many parameters there are."""
        return int(self.offsets.stop)

    def link(self, link: int) -> slice:
        """The ten of one link; negative numbers count from the tip."""
        start = PER_LINK * (link % self.joints)
        return slice(start, start + PER_LINK)

    def from_link(self, link: int) -> slice:
        """Those of a link and of all behind it: what that link's joint moves."""
        return slice(PER_LINK * link, self.links.stop)

    def friction_of(self, joint: int) -> slice:
        """The friction terms of one joint; negative numbers count from the tip."""
        start = self.friction.start + len(self.terms) * (joint % self.joints)
        return slice(start, start + len(self.terms))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One per parameter: link_1.m, ..., joint_1.rotor, ..., joint_1.coulomb, joint_1.offset."""
        joints = range(self.joints)
        return (
            *(link_parameter(i, what) for i in joints for what in LINK_PARAMETERS),
            *(joint_parameter(i, "rotor") for i in joints if self.rotor_inertia),
            *(joint_parameter(i, term) for i in joints for term in self.terms),
            *(joint_parameter(i, "offset") for i in joints if self.offset),
        )

    @cached_property
    def kind(self) -> tuple[str, ...]:
        """ "link", "rotor", "friction" or "offset" for each parameter."""
        return (
            *["link"] * (PER_LINK * self.joints),
            *["rotor"] * (self.joints * self.rotor_inertia),
            *["friction"] * (self.joints * len(self.terms)),
            *["offset"] * (self.joints * self.offset),
        )

    @cached_property
    def owner(self) -> tuple[int, ...]:
        """The link or joint each parameter belongs to, from 0."""
        return tuple(parse_name(name).number for name in self.names)

    @cached_property
    def what(self) -> tuple[str, ...]:
        """Each parameter's name without its owner: "Ixx", "rotor", "coulomb"."""
        return tuple(parse_name(name).what for name in self.names)

    def index(self, name: str) -> int:
        """Where a parameter stands.

        Raises:
            KeyError: With the names that exist for this owner.
        """
        if name in self._place:
            return self._place[name]
        owner = name.partition(".")[0] + "."
        near = [other for other in self.names if other.startswith(owner)] or list(self.names[:3])
        raise KeyError(f"there is no parameter {name!r}: there are {', '.join(near)}")

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def live(self, joint: int, coupling: Float[Array, "j j"] | None = None) -> Bool[Array, " p"]:
        """Which columns of W can be nonzero in a joint's rows.

        A joint carries its own link and those behind it; rotors and friction act where the motors
        do and reach the joint through the coupling C (v_motor = C v); an offset acts on its own
        joint.
        """
        out = np.zeros(self.size, bool)
        out[self.from_link(joint)] = True
        every = np.arange(self.joints)
        moved = every == joint if coupling is None else np.asarray(coupling)[:, joint] != 0.0
        if self.rotor_inertia:
            out[self.rotors] = moved
        out[self.friction] = np.repeat(moved, len(self.terms))
        if self.offset:
            out[self.offsets] = every == joint
        return out

    def live_columns(
        self, joint: int, coupling: Float[Array, "j j"] | None = None
    ) -> Int[Array, " c"]:
        """`live` as column numbers."""
        return np.flatnonzero(self.live(joint, coupling))

    def split(self, theta: Float[Array, " p"]) -> Parts:
        """theta by kind, one row or entry per joint."""
        theta = np.asarray(theta)
        none = np.zeros(self.joints, theta.dtype)
        return Parts(
            theta[self.links].reshape(self.joints, PER_LINK),
            theta[self.rotors] if self.rotor_inertia else none,
            theta[self.friction].reshape(self.joints, len(self.terms)),
            theta[self.offsets] if self.offset else none,
        )
