"""The contract of an engine: map, reduce along a tree, close."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from taufit.core.compute.engines.tree import summed, tree

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Lost:
    """A result that could not be had: its worker went, and so did those that tried again."""

    why: str


@runtime_checkable
class Engine(Protocol):
    """Applies functions to things. Results never depend on where or by how many."""

    count: int

    def map(self, function: Function, things: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """function(*thing) of every thing, in order; a few at a time, so memory stays flat."""

    def reduce(
        self,
        function: Function,
        things: Sequence[tuple[Any, ...]],
        add: Callable[[Any, Any], Any],
        keys: Sequence[Any],
    ) -> Any:
        """The sum of function(*thing) along the tree that the keys of the things make."""

    def close(self) -> None:
        """Let go of workers."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...


def reduced_by_map(
    engine: Engine,
    function: Function,
    things: Sequence[tuple[Any, ...]],
    add: Callable[[Any, Any], Any],
    keys: Sequence[Any],
) -> Any:
    """`Engine.reduce` where sums are made here: results of `map`, in the order of the tree."""
    node = tree(keys)
    return summed(node, engine.map(function, (things[k] for k in node.all())), add)


def open_engine(processes: int | None = 1, scheduler: str | None = None) -> Engine:
    """An engine on this computer, or on a Dask cluster.

    Args:
        processes: Here; None for one per processor, 1 for this one.
        scheduler: Address of a Dask scheduler such as tcp://HOST:8786, or None.
    """
    if scheduler is not None:
        from taufit.core.compute.engines.dask_cluster import DaskCluster

        return DaskCluster(scheduler)
    from taufit.core.compute.engines.processes import Processes

    return Processes(processes)
