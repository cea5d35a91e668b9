"""Work in this process or shared among several of this computer."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from taufit.core.compute.engines.engine import reduce_by_map
from taufit.core.threads import VARIABLES, keep_freed_memory


class Processes:
    """Processes that apply functions to things, one thing at a time.

    Functions, things and results are pickled; what comes back comes in the order of the things, so
    nothing depends on how many processes there are. One process is this one.

    Args:
        count: How many processes; None for one per processor.
    """

    def __init__(self, count: int | None = 1) -> None:
        # More would not start on any computer.
        self.count = min(max(1, count if count is not None else _processors()), 1024)
        self._pool: Any = None

    def map(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """function(*thing) of every thing, in order."""
        if self.count == 1:
            for argument in arguments:
                yield function(*argument)
            return
        pool = self._start_pool()
        pending: deque[Any] = deque()
        try:
            for argument in arguments:
                pending.append(pool.submit(function, *argument))
                # Results that wait take memory: never many more than there are processes.
                if len(pending) > 2 * self.count:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

    def reduce(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        add: Callable[[Any, Any], Any],
        keys: Sequence[Any],
    ) -> Any:
        """The sum of function(*thing), added up here as results arrive."""
        return reduce_by_map(self, function, arguments, add, keys)

    def start_early(self, function: Callable[..., Any]) -> None:
        """Start the processes now, each with the function's module read in: work comes soon."""
        if self.count > 1:
            for _ in range(self.count):
                self._start_pool().submit(_import_module_of, function)

    def _start_pool(self) -> Any:
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            # Each process has a processor to itself; threads inside it would only get in the way.
            for name in VARIABLES:
                os.environ.setdefault(name, "1")
            # Never a fork of this process: it may have threads, and locks they hold.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self.count, mp_context=context, initializer=keep_freed_memory
            )
        return self._pool

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _import_module_of(function: Callable[..., Any]) -> None:
    """Nothing more: to receive a function is to read in its module."""


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
