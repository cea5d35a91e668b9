"""The same search in several processes, each from other starts; the best motion wins."""

from __future__ import annotations

from typing import Any

from taufit.excitation.design import Design, design
from taufit.robot import Robot


def design_in_parallel(
    robot: Robot, *, workers: int = 1, seed: int = 0, progress: Any = None, **settings: Any
) -> Design:
    """`design` with `workers` processes; cpu_seconds and starts are those of all together."""
    if workers <= 1:
        return design(robot, seed=seed, progress=progress, **settings)
    from concurrent.futures import ProcessPoolExecutor
    from dataclasses import replace

    with ProcessPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(design, robot, seed=seed + 1009 * k, **settings) for k in range(1, workers)
        ]
        results = [design(robot, seed=seed, progress=progress, **settings)]
        results += [job.result() for job in jobs]
    best = min(results, key=lambda result: result.history[-1][1])
    return replace(
        best,
        cpu_seconds=sum(result.cpu_seconds for result in results),
        starts=sum(result.starts for result in results),
    )
