"""Parallel simulation of many runs in threads; the inner loop releases the GIL."""

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
    """Simulate one run per seed with `twin.run`, in order.

    Args:
        twin: Simulated robot.
        motion: Motion of all runs, or a function from seed to motion.
        seeds: Seeds, one per run.
        payload: Payload, see `Twin.run`.
        workers: Number of threads; None: all cores.
        settings: Further arguments of `Twin.run`.
    """

    def run_seed(seed: int) -> SimulatedRun:
        seed_motion = motion(seed) if callable(motion) else motion
        return twin.run(seed_motion, seed=seed, payload=payload, **settings)

    def run_in_context(context: Context, seed: int) -> SimulatedRun:
        return context.run(run_seed, seed)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        # Every thread uses NumPy's error handling of the caller.
        yield from pool.map(run_in_context, (copy_context() for _ in seeds), seeds)
