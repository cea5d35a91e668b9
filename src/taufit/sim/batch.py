"""Many runs at once: the inner loop lets go of Python, so threads fill the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any

from taufit.excitation import Motion
from taufit.sim.payload import CarriedPayload
from taufit.sim.twin import SimulatedRun, Twin


def run_many(
    twin: Twin,
    motion: Motion | Callable[[int], Motion],
    seeds: Iterable[int],
    *,
    payload: CarriedPayload | tuple[CarriedPayload, ...] = (),
    workers: int | None = None,
    **settings: Any,
) -> Iterator[SimulatedRun]:
    """`twin.run` for every seed, in order.

    Args:
        twin: The arm.
        motion: For all runs, or a function from seed to motion.
        seeds: One run each.
        payload: As for `Twin.run`.
        workers: Threads; all cores where None.
        settings: Further arguments of `Twin.run`.
    """

    def one(seed: int) -> SimulatedRun:
        chosen = motion(seed) if callable(motion) else motion
        return twin.run(chosen, seed=seed, payload=payload, **settings)

    def as_here(context: Context, seed: int) -> SimulatedRun:
        return context.run(one, seed)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        # NumPy's handling of odd numbers is the caller's in every thread.
        yield from pool.map(as_here, (copy_context() for _ in seeds), seeds)
