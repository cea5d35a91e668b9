"""Engine on a Dask cluster of `dask scheduler` and `dask worker`.

A Dask task costs several milliseconds, so it should be about a second of work. Lost workers are
reported and their tasks repeated elsewhere; a task that killed several workers is given up.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from taufit.core.compute.engines.engine import ReductionNode, WorkerLostError, tree
from taufit.core.errors import TaufitError
from taufit.core.extras import missing_extra
from taufit.core.threads import single_blas_thread

# Waiting time for a scheduler and its first worker [s].
_PATIENCE_S = 20.0
# Repetitions of a task whose worker was lost.
_RETRIES = 2
# Submitted tasks per thread of the cluster: pending results need memory.
_TASKS_PER_THREAD = 3
# Interval of checks for lost workers [s].
_CHECK_INTERVAL_S = 1.0


class DaskCluster:
    """Engine on a Dask cluster.

    Args:
        address: Address of the scheduler, such as tcp://HOST:8786.

    Attributes:
        count: Number of threads of the cluster when it was opened.
        incidents: Messages about lost workers.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise missing_extra("fleet", "a Dask cluster") from None
        try:
            client: Any = Client
            self._client: Any = client(address, timeout=_PATIENCE_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise TaufitError(
                f"there is no Dask scheduler at {address} ({error}). Start one with "
                "`dask scheduler`, and workers with `dask worker ADDRESS`."
            ) from None
        self.address = address
        self.incidents: list[str] = []
        self._workers_seen: dict[str, int] = {}
        self._last_check = 0.0
        self._wait_for_workers()
        self.count = max(1, sum(self._workers_seen.values()))

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not self._workers():
            if time.monotonic() > end:
                self.close()
                raise TaufitError(
                    f"the Dask scheduler at {self.address} has no workers. Start some with "
                    f"`dask worker {self.address}`."
                )
            time.sleep(0.1)
        self._workers_seen = self._workers()
        import taufit

        try:
            versions = self._client.run(_version)
        except Exception as error:
            self.close()
            raise TaufitError(
                f"workers of {self.address} cannot import taufit ({error}). Install it there too."
            ) from None
        mismatched = {
            name: version for name, version in versions.items() if version != taufit.__version__
        }
        if mismatched:
            name, version = next(iter(mismatched.items()))
            self.close()
            raise TaufitError(
                f"worker {name} has taufit {version}, this is {taufit.__version__}. Install one "
                "version everywhere."
            )

    def _workers(self) -> dict[str, int]:
        info = self._client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(worker["nthreads"]) for address, worker in info.items()}

    def _check_workers(self, *, force: bool = False) -> None:
        """Record lost workers."""
        if not force and time.monotonic() - self._last_check < _CHECK_INTERVAL_S:
            return
        self._last_check = time.monotonic()
        present = self._workers()
        self.incidents += [
            f"worker {address} was lost; what it was doing was done by others"
            for address in self._workers_seen
            if address not in present
        ]
        self._workers_seen = present

    def map(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Results of function(*argument), in order; `WorkerLostError` where no worker survived."""
        pending: deque[Any] = deque()
        for argument in arguments:
            pending.append(self._submit(function, *argument))
            if len(pending) > _TASKS_PER_THREAD * self.count:
                yield self._result(pending.popleft())
        while pending:
            yield self._result(pending.popleft())
        self._check_workers(force=True)

    def reduce(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        add: Callable[[Any, Any], Any],
        keys: Sequence[Any],
    ) -> Any:
        """Sum of function(*argument), added on the cluster along the tree of the keys."""

        def future(node: ReductionNode) -> Any:
            parts = [self._submit(function, *arguments[k]) for k in node.leaves]
            parts += [future(child) for child in node.children]
            return self._submit(_add_parts, add, *parts)

        total = self._result(future(tree(keys)))
        self._check_workers(force=True)
        if isinstance(total, WorkerLostError):
            raise TaufitError(f"the sum could not be made: {total.reason}")
        return total

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(
            _run_single_threaded, function, *arguments, pure=False, retries=_RETRIES
        )

    def _result(self, future: Any) -> Any:
        from distributed import KilledWorker

        while not future.done():
            self._check_workers()
            time.sleep(0.005)
        try:
            return future.result()
        except KilledWorker as error:
            self._check_workers(force=True)
            return WorkerLostError(f"every worker that tried it was lost ({error.task})")

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running."""
        self._client.close()

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_single_threaded(function: Callable[..., Any], *arguments: Any) -> Any:
    with single_blas_thread():
        return function(*arguments)


def _add_parts(add: Callable[[Any, Any], Any], *parts: Any) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    return total


def _version() -> str:
    import taufit

    return taufit.__version__
