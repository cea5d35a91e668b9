"""Order of a torque model's parameters, derived from its terms.

    theta = (ten per link | one block after the other)

A block holds one or more terms, joint by joint: rotor inertias, then friction and all else that
acts on a joint side by side (the block "drive"), then offsets. Everybody else asks by name, slice,
kind, group or owner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.parameters import PER_LINK, LinkLayout, joint_parameter
from taufit.terms.term import INERTIAL, Group, Kind, Parameter, Term

DRIVE = "drive"


class Entry(NamedTuple):
    """A parameter that every joint has, and what its term says of it."""

    parameter: Parameter
    kind: Kind
    at_motor: bool


class Block(NamedTuple):
    """Entries that stand side by side, joint after joint."""

    name: str
    entries: tuple[Entry, ...]


class Parts(NamedTuple):
    """theta cut by block; rotor inertias and offsets are zero where the model has none."""

    links: Float[Array, "j 10"]
    rotors: Float[Array, " j"]
    drive: Float[Array, "j k"]
    offsets: Float[Array, " j"]


@dataclass(frozen=True)
class ParameterLayout(LinkLayout):
    """Places of a torque model's parameters.

    Attributes:
        joints: Of the arm; a joint moves one link.
        blocks: What stands behind the links, in order.
    """

    blocks: tuple[Block, ...] = ()

    @staticmethod
    def from_terms(joints: int, terms: tuple[Term, ...] = ()) -> ParameterLayout:
        """Derive the layout; equal terms share one, with its names and owners."""
        try:
            return _build_layout(joints, terms)
        except TypeError:  # a term that cannot be hashed
            return _build_layout.__wrapped__(joints, terms)

    @cached_property
    def _slices(self) -> dict[str, slice]:
        out, start = {}, self.links.stop
        for block in self.blocks:
            stop = start + self.joints * len(block.entries)
            out[block.name] = slice(start, stop)
            start = stop
        return out

    def block_slice(self, block: str) -> slice:
        """Parameters of a block: "rotor", "drive" or "offset"; empty where the model has none."""
        return self._slices.get(block, slice(self.size, self.size))

    def has(self, block: str) -> bool:
        """Whether the model has such a block."""
        return block in self._slices

    @cached_property
    def drive(self) -> slice:
        """Parameters of friction and of all other terms of the joints but rotor and offset."""
        if self.has(DRIVE):
            return self.block_slice(DRIVE)
        start = self.block_slice("rotor").stop if self.has("rotor") else self.links.stop
        return slice(start, start)

    def drive_of(self, joint: int) -> slice:
        """Those of one joint; negative numbers count from the tip."""
        width = len(self.drive_entries)
        start = self.drive.start + width * (joint % self.joints)
        return slice(start, start + width)

    @cached_property
    def drive_entries(self) -> tuple[Entry, ...]:
        """One joint's entries of the drive."""
        return next((block.entries for block in self.blocks if block.name == DRIVE), ())

    @cached_property
    def drive_names(self) -> tuple[str, ...]:
        """Names of one joint's parameters of the drive."""
        return tuple(entry.parameter.name for entry in self.drive_entries)

    @cached_property
    def after_links(self) -> slice:
        """Everything behind the links."""
        return slice(self.links.stop, self.size)

    @cached_property
    def size(self) -> int:
        """How many parameters there are."""
        return PER_LINK * self.joints + self.joints * sum(len(b.entries) for b in self.blocks)

    @cached_property
    def _entries(self) -> tuple[tuple[int, Entry], ...]:
        """Joint and entry of each parameter behind the links."""
        return tuple(
            (joint, entry)
            for block in self.blocks
            for joint in range(self.joints)
            for entry in block.entries
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One per parameter: link_1.m, ..., joint_1.rotor, ..., joint_1.coulomb, joint_1.offset."""
        links = LinkLayout(self.joints).names
        return (*links, *(joint_parameter(j, entry.parameter.name) for j, entry in self._entries))

    @cached_property
    def parameters(self) -> tuple[Parameter | None, ...]:
        """What is known of each parameter; None for those of links."""
        return (*[None] * self.links.stop, *(entry.parameter for _, entry in self._entries))

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of each parameter; links are inertial."""
        return (*[INERTIAL] * self.links.stop, *(entry.kind for _, entry in self._entries))

    def of_kind(self, *kinds: Kind) -> Bool[Array, " p"]:
        """Which parameters behind the links are of these kinds."""
        out = np.array([kind in kinds for kind in self.kinds], bool)
        out[self.links] = False
        return out

    def of_group(self, *groups: Group) -> Bool[Array, " p"]:
        """Which parameters behind the links are of these groups."""
        return self.select(lambda parameter: parameter.group in groups)

    def select(self, condition: Callable[[Parameter], bool]) -> Bool[Array, " p"]:
        """Which parameters behind the links are as wanted."""
        return np.array(
            [parameter is not None and condition(parameter) for parameter in self.parameters], bool
        )

    def active(self, joint: int, coupling: Float[Array, "j j"] | None = None) -> Bool[Array, " p"]:
        """Which columns of W can be nonzero in a joint's rows.

        A joint carries its own link and those behind it; terms that act where the motors do reach
        the joint through the coupling C (v_motor = C v); all others act on their own joint.
        """
        out = np.zeros(self.size, bool)
        out[self.from_link(joint)] = True
        joint_index = np.arange(self.joints)
        is_driven = (
            joint_index == joint if coupling is None else np.asarray(coupling)[:, joint] != 0.0
        )
        out[self.after_links] = [
            is_driven[j] if entry.at_motor else j == joint for j, entry in self._entries
        ]
        return out

    def active_columns(
        self, joint: int, coupling: Float[Array, "j j"] | None = None
    ) -> Int[Array, " c"]:
        """`live` as column numbers."""
        return np.flatnonzero(self.active(joint, coupling))

    def split(self, theta: Float[Array, " p"]) -> Parts:
        """theta by block, one row or entry per joint."""
        theta = np.asarray(theta)
        zeros = np.zeros(self.joints, theta.dtype)
        return Parts(
            theta[self.links].reshape(self.joints, PER_LINK),
            theta[self.block_slice("rotor")] if self.has("rotor") else zeros,
            theta[self.drive].reshape(self.joints, len(self.drive_entries)),
            theta[self.block_slice("offset")] if self.has("offset") else zeros,
        )


@lru_cache(maxsize=512)
def _build_layout(joints: int, terms: tuple[Term, ...]) -> ParameterLayout:
    blocks: dict[str, list[Entry]] = {}
    for term in terms:
        own = blocks.setdefault(term.block, [])
        own += map(Entry, term.parameters, term.kinds, term.at_motors)
    nonempty = {name: entries for name, entries in blocks.items() if entries}
    return ParameterLayout(joints, tuple(Block(n, tuple(e)) for n, e in nonempty.items()))
