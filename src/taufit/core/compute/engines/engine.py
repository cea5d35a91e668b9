"""Interface of an engine: map, reduce along a tree, close."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from taufit.core.dataclasses import dataclass

# Largest number of leaves or children of a node.
FAN = 8
_BITS = 3


@dataclass(frozen=True, slots=True)
class ReductionNode:
    """Node of a reduction tree: leaves or smaller nodes, summed in order.

    Attributes:
        leaves: Indices of the leaves, if they are few.
        children: Smaller nodes, if leaves are many.
    """

    leaves: tuple[int, ...] = ()
    children: tuple[ReductionNode, ...] = ()

    def all_leaves(self) -> Iterator[int]:
        """All leaves, in order."""
        yield from self.leaves
        for child in self.children:
            yield from child.all_leaves()


def tree(keys: Sequence[Any], selected: Sequence[int] | None = None) -> ReductionNode:
    """Reduction tree over leaves with given keys, or over some of them.

    Args:
        keys: Key of each leaf, made from its content; distinguished by `repr`.
        selected: Indices of the leaves; all by default.
    """
    indices = range(len(keys)) if selected is None else selected
    order = sorted(indices, key=lambda k: (keys[k], k))
    return _node([(hash_key(keys[k]), k) for k in order], 0)


def hash_key(key: Any) -> int:
    """64-bit hash of a key."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest())


def _node(leaves: list[tuple[int, int]], depth: int) -> ReductionNode:
    if len(leaves) <= FAN or depth * _BITS >= 60:
        return ReductionNode(tuple(k for _, k in leaves))
    groups: list[list[tuple[int, int]]] = [[] for _ in range(FAN)]
    for code, k in leaves:
        groups[code >> (depth * _BITS) & (FAN - 1)].append((code, k))
    return ReductionNode(children=tuple(_node(group, depth + 1) for group in groups if group))


def sum_along_tree(
    node: ReductionNode, results: Iterator[Any], add: Callable[[Any, Any], Any]
) -> Any:
    """Sum over a node; results come in the order of its leaves."""
    total: Any = None
    for part in node.leaves:
        value = next(results)
        total = value if part == node.leaves[0] else add(total, value)
    for child in node.children:
        value = sum_along_tree(child, results, add)
        total = value if child is node.children[0] else add(total, value)
    return total


Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class WorkerLostError:
    """Missing result: its worker and those that repeated it were lost."""

    reason: str


@runtime_checkable
class Engine(Protocol):
    """Executes functions. Results never depend on place or number of workers."""

    count: int

    def map(self, function: Function, arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Results of function(*argument), in order; a few at a time to limit memory."""

    def reduce(
        self,
        function: Function,
        arguments: Sequence[tuple[Any, ...]],
        add: Callable[[Any, Any], Any],
        keys: Sequence[Any],
    ) -> Any:
        """Sum of function(*argument) along the tree of the keys."""

    def close(self) -> None:
        """Release the workers."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...


def reduce_by_map(
    engine: Engine,
    function: Function,
    arguments: Sequence[tuple[Any, ...]],
    add: Callable[[Any, Any], Any],
    keys: Sequence[Any],
) -> Any:
    """`Engine.reduce` with sums in this process: results of `map`, in the order of the tree."""
    node = tree(keys)
    return sum_along_tree(
        node, engine.map(function, (arguments[k] for k in node.all_leaves())), add
    )


def open_engine(processes: int | None = 1, scheduler: str | None = None) -> Engine:
    """Open an engine on this computer, or on a Dask cluster.

    Args:
        processes: Number of processes on this computer; None for one per processor, 1 for this
            process.
        scheduler: Address of a Dask scheduler such as tcp://HOST:8786, or None.
    """
    if scheduler is not None:
        from taufit.core.compute.engines.dask_cluster import DaskCluster

        return DaskCluster(scheduler)
    from taufit.core.compute.engines.processes import Processes

    return Processes(processes)
