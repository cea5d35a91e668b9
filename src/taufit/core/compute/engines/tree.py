"""In which order sums are made: a tree whose shape is decided by the content of its leaves.

The same leaves give the same tree wherever and in whatever order they are found, so sums have the
same digits on every engine. A further leaf changes the sums above it and no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# Leaves under one node, and children of one.
FAN = 8
_BITS = 3


@dataclass(frozen=True, slots=True)
class Node:
    """Leaves that are summed one after the other, or nodes that are.

    Attributes:
        leaves: Their numbers, where there are few.
        children: Smaller nodes, where there are many.
    """

    leaves: tuple[int, ...] = ()
    children: tuple[Node, ...] = ()

    def all(self) -> Iterator[int]:
        """Every leaf, in order."""
        yield from self.leaves
        for child in self.children:
            yield from child.all()


def tree(keys: Sequence[Any], chosen: Sequence[int] | None = None) -> Node:
    """The tree over leaves with these keys, or over some of them.

    Args:
        keys: One per leaf, made from its content; `repr` tells them apart.
        chosen: Numbers of the leaves; by default all.
    """
    which = range(len(keys)) if chosen is None else chosen
    order = sorted(which, key=lambda k: (keys[k], k))
    return _node([(scattered(keys[k]), k) for k in order], 0)


def scattered(key: Any) -> int:
    """64 bits that say nothing but which key it is."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest())


def _node(leaves: list[tuple[int, int]], depth: int) -> Node:
    if len(leaves) <= FAN or depth * _BITS >= 60:
        return Node(tuple(k for _, k in leaves))
    groups: list[list[tuple[int, int]]] = [[] for _ in range(FAN)]
    for code, k in leaves:
        groups[code >> (depth * _BITS) & (FAN - 1)].append((code, k))
    return Node(children=tuple(_node(own, depth + 1) for own in groups if own))


def summed(node: Node, results: Iterator[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum over a node; results come in the order of its leaves."""
    total: Any = None
    for part in node.leaves:
        one = next(results)
        total = one if part == node.leaves[0] else add(total, one)
    for child in node.children:
        one = summed(child, results, add)
        total = one if child is node.children[0] else add(total, one)
    return total
