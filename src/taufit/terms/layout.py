"""Layout of a torque model's parameter vector, derived from its terms.

    theta = (ten per link | one block after the other)

A block holds one or more terms, joint by joint: rotor inertias, then friction and all further terms
of a joint side by side (the block "drive"), then offsets. All other code selects parameters by
name, slice, kind, group or owner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import PER_LINK, LinkLayout, joint_parameter
from taufit.terms.sum import terms_in
from taufit.terms.term import INERTIAL, Group, Kind, Parameter, Term

DRIVE = "drive"


class LayoutEntry(NamedTuple):
    """Parameter that every joint has, with the properties of its term."""

    parameter: Parameter
    kind: Kind
    term: Term


class Block(NamedTuple):
    """Entries side by side, joint after joint."""

    name: str
    entries: tuple[LayoutEntry, ...]


class Parts(NamedTuple):
    """Parameter vector by block; rotor inertias and offsets are zero if the model has none."""

    links: Float[Array, "b 10"]
    rotors: Float[Array, " j"]
    drive: Float[Array, "j k"]
    offsets: Float[Array, " j"]


@dataclass(frozen=True)
class ParameterLayout(LinkLayout):
    """Positions of a torque model's parameters.

    Attributes:
        joints, support, tip: As in `LinkLayout`.
        blocks: Blocks after the links, in order.
    """

    blocks: tuple[Block, ...] = ()

    @staticmethod
    def from_terms(links: LinkLayout | int, terms: tuple[Term, ...] = ()) -> ParameterLayout:
        """Derive the layout from links, or their number, and terms; cached for equal terms."""
        links = LinkLayout(links) if isinstance(links, int) else links
        try:
            return _build_layout(links, terms)
        except TypeError:  # a term that cannot be hashed
            return _build_layout.__wrapped__(links, terms)

    @cached_property
    def _slices(self) -> dict[str, slice]:
        out, start = {}, self.links.stop
        for block in self.blocks:
            stop = start + self.joints * len(block.entries)
            out[block.name] = slice(start, stop)
            start = stop
        return out

    def block_slice(self, block: str) -> slice:
        """Slice of a block: "rotor", "drive" or "offset"; empty if the model has none."""
        return self._slices.get(block, slice(self.size, self.size))

    def has(self, block: str) -> bool:
        """Whether the model has such a block."""
        return block in self._slices

    @cached_property
    def drive(self) -> slice:
        """Slice of friction and all other terms of the joints, except rotor and offset."""
        if self.has(DRIVE):
            return self.block_slice(DRIVE)
        start = self.block_slice("rotor").stop if self.has("rotor") else self.links.stop
        return slice(start, start)

    def drive_of(self, joint: int) -> slice:
        """Drive parameters of one joint; negative numbers count from the tip."""
        width = len(self.drive_entries)
        start = self.drive.start + width * (joint % self.joints)
        return slice(start, start + width)

    @cached_property
    def drive_entries(self) -> tuple[LayoutEntry, ...]:
        """Drive entries of one joint."""
        return next((block.entries for block in self.blocks if block.name == DRIVE), ())

    @cached_property
    def drive_names(self) -> tuple[str, ...]:
        """Drive parameter names of one joint."""
        return tuple(entry.parameter.name for entry in self.drive_entries)

    @cached_property
    def after_links(self) -> slice:
        """Slice of all parameters after the links."""
        return slice(self.links.stop, self.size)

    @cached_property
    def size(self) -> int:
        """Number of parameters."""
        return PER_LINK * self.bodies + self.joints * sum(len(b.entries) for b in self.blocks)

    @cached_property
    def _entries(self) -> tuple[tuple[int, LayoutEntry], ...]:
        """Joint and entry of each parameter after the links."""
        return tuple(
            (joint, entry)
            for block in self.blocks
            for joint in range(self.joints)
            for entry in block.entries
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameter names: link_1.m, ..., joint_1.rotor, ..., joint_1.coulomb, joint_1.offset."""
        links = LinkLayout(self.joints, self.support).names
        return (*links, *(joint_parameter(j, entry.parameter.name) for j, entry in self._entries))

    @cached_property
    def parameters(self) -> tuple[Parameter | None, ...]:
        """Definition of each parameter; None for those of links."""
        return (*[None] * self.links.stop, *(entry.parameter for _, entry in self._entries))

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of each parameter; links are inertial."""
        return (*[INERTIAL] * self.links.stop, *(entry.kind for _, entry in self._entries))

    def of_kind(self, *kinds: Kind) -> Bool[Array, " p"]:
        """Mask of parameters of given kinds, without links."""
        out = np.array([kind in kinds for kind in self.kinds], bool)
        out[self.links] = False
        return out

    def of_group(self, *groups: Group) -> Bool[Array, " p"]:
        """Mask of parameters of given groups, without links."""
        return self.select(lambda parameter: parameter.group in groups)

    def select(self, condition: Callable[[Parameter], bool]) -> Bool[Array, " p"]:
        """Mask of parameters that satisfy a condition, without links."""
        return np.array(
            [parameter is not None and condition(parameter) for parameter in self.parameters], bool
        )

    def active(self, joint: int, coupling: Float[Array, "j j"] | None = None) -> Bool[Array, " p"]:
        """Mask of columns of W that can be nonzero in a joint's rows.

        A joint carries the links it moves; terms reach it from where they act (`Term.reach`), those
        at the motors through the coupling C (v_motor = C v).
        """
        out = np.zeros(self.size, bool)
        out[self.columns_of_joint(joint)] = True
        coupling = np.eye(self.joints) if coupling is None else np.asarray(coupling)
        start = self.links.stop
        for block in self.blocks:
            reach = [entry.term.reach(coupling)[:, joint] != 0.0 for entry in block.entries]
            stop = start + self.joints * len(reach)
            out[start:stop] = np.stack(reach, -1).ravel()
            start = stop
        return out

    def active_columns(
        self, joint: int, coupling: Float[Array, "j j"] | None = None
    ) -> Int[Array, " c"]:
        """Indices of `active` columns."""
        return np.flatnonzero(self.active(joint, coupling))

    def split(self, theta: Float[Array, " p"]) -> Parts:
        """Parameter vector by block, one row or entry per joint."""
        theta = np.asarray(theta)
        zeros = np.zeros(self.joints, theta.dtype)
        return Parts(
            theta[self.links].reshape(self.bodies, PER_LINK),
            theta[self.block_slice("rotor")] if self.has("rotor") else zeros,
            theta[self.drive].reshape(self.joints, len(self.drive_entries)),
            theta[self.block_slice("offset")] if self.has("offset") else zeros,
        )


@lru_cache(maxsize=512)
def _build_layout(links: LinkLayout, terms: tuple[Term, ...]) -> ParameterLayout:
    blocks: dict[str, list[LayoutEntry]] = {}
    for term in terms:
        block_entries = blocks.setdefault(term.block, [])
        for part in terms_in(term):
            block_entries += [
                LayoutEntry(parameter, kind, part)
                for parameter, kind in zip(part.parameters, part.kinds, strict=True)
            ]
    nonempty = {name: entries for name, entries in blocks.items() if entries}
    layout_blocks = tuple(Block(n, tuple(e)) for n, e in nonempty.items())
    return ParameterLayout(links.joints, links.support, links.tip, layout_blocks)
