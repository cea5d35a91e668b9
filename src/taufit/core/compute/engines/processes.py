"""Engine in this process or in several processes of this computer."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from taufit.core.compute.engines.engine import reduce_by_map
from taufit.core.threads import VARIABLES, keep_freed_memory


class Processes:
    """Processes that apply a function to arguments, one at a time.

    Functions, arguments and results are pickled; results come in the order of the arguments, so
    they do not depend on the number of processes. A single process is this one.

    Args:
        count: Number of processes; None for one per processor.
    """

    def __init__(self, count: int | None = 1) -> None:
        # Upper limit of processes.
        self.count = min(max(1, count if count is not None else _processors()), 1024)
        self._pool: Any = None

    def map(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Results of function(*argument), in order."""
        if self.count == 1:
            for argument in arguments:
                yield function(*argument)
            return
        pool = self._start_pool()
        pending: deque[Any] = deque()
        try:
            for argument in arguments:
                pending.append(pool.submit(function, *argument))
                # Pending results need memory: limit them to about two per process.
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
        """Sum of function(*argument), added in this process as results arrive."""
        return reduce_by_map(self, function, arguments, add, keys)

    def start_early(self, function: Callable[..., Any]) -> None:
        """Start the processes now, each with the function's module imported."""
        if self.count > 1:
            for _ in range(self.count):
                self._start_pool().submit(_import_module_of, function)

    def _start_pool(self) -> Any:
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            # One thread per process, since each process uses one processor.
            for name in VARIABLES:
                os.environ.setdefault(name, "1")
            # No fork: threads of this process may hold locks.
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
    """Import the module of a function, by receiving it."""


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
