"""Engine of any system that maps a function over a list: Ray, Spark, a pool, a job array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from taufit.core.compute.engines.engine import Function, reduce_by_map
from taufit.core.dataclasses import dataclass

# Tasks handed over at once, per worker: pending results need memory.
_TASKS_PER_WORKER = 8


@dataclass(frozen=True, slots=True)
class _TaskFunction:
    """Function of one argument, the tuple of another function's; picklable if that one is."""

    function: Function

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        return self.function(*arguments)


class MapEngine:
    """Engine that hands its work to a mapping of your own.

    Args:
        mapping: Called with a picklable function of one argument and a list of arguments; returns
            the results in the order of the list.
        count: Number of workers behind it.

    Attributes:
        count: Number of workers.

    Example:
        >>> from taufit.core.compute.engines.map_engine import MapEngine
        >>> with MapEngine(lambda function, tasks: list(map(function, tasks))) as engine:
        ...     list(engine.map(max, [(1, 2), (4, 3)]))
        [2, 4]
    """

    def __init__(
        self,
        mapping: Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]],
        count: int = 1,
    ) -> None:
        self._mapping = mapping
        self.count = count

    def map(self, function: Function, arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Results of function(*argument), in order; a few tasks at a time."""
        tasks = list(arguments)
        size = _TASKS_PER_WORKER * max(self.count, 1)
        for start in range(0, len(tasks), size):
            yield from self._mapping(_TaskFunction(function), tasks[start : start + size])

    def reduce(
        self,
        function: Function,
        arguments: Sequence[tuple[Any, ...]],
        add: Callable[[Any, Any], Any],
        keys: Sequence[Any],
    ) -> Any:
        """Sum of function(*argument) along the tree of the keys, added up in this process."""
        return reduce_by_map(self, function, arguments, add, keys)

    def close(self) -> None:
        """Release nothing: the mapping belongs to the caller."""

    def __enter__(self) -> MapEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
