"""Do safe designs cost information or time? The same searches as release 0.1 made them.

11 arms x 5 seeds with that release's defaults: ln det of W'W/N of the motion, and CPU time until a
search for the condition number is below 50 (no scene). Release 0.1 is measured by this file too,
with its own interpreter, from the top of this checkout:

    OLD/bin/python -m benchmarks.accuracy.design_information benchmarks/design_0_1.json

The figures of release 0.1 count where it succeeded: column-scaled condition number below 30.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row

BEFORE = Path(__file__).parents[1] / "design_0_1.json"
ARMS = ("ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "panda", "fr3", "iiwa7", "iiwa14", "kr5")
SEEDS = range(1000, 1005)
GOAL, LONGEST_S = 50.0, 10.0


def searched(arm: str, seed: int) -> dict[str, Any]:
    """Both searches of one arm and seed; calls that releases from 0.1 on have."""
    from taufit.excitation import design, mounting_plane, scene_for
    from taufit.robot import read_robot

    robot = read_robot(arm)
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02)
    began = time.process_time()
    found = design(robot, scene=scene, seed=seed)
    took = time.process_time() - began
    began = time.process_time()
    quick = design(robot, criterion="cond", seconds=LONGEST_S, seed=seed, target=GOAL)
    return {
        "arm": arm,
        "seed": seed,
        "log_det": float(found.log_det),
        "scaled": float(found.condition_number_scaled),
        "cpu_s": took,
        "quick_cpu_s": time.process_time() - began,
        "quick_cond": float(quick.condition_number),
    }


def measure(path: Path) -> list[dict[str, Any]]:
    """All runs, kept in a file line by line so that an interrupted measurement goes on."""
    lines = path.with_suffix(".jsonl")
    done = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    have = {(one["arm"], one["seed"]) for one in done}
    for seed in SEEDS:
        for arm in ARMS:
            if (arm, seed) not in have:
                done.append(searched(arm, seed))
                with lines.open("a") as file:
                    file.write(json.dumps(done[-1]) + "\n")
    path.write_text(json.dumps(done, indent=1) + "\n")
    lines.unlink()
    return done


def compare(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[Row]:
    """Rows of two measurements, run by run."""
    now = {(one["arm"], one["seed"]): one for one in after}
    good = [one for one in before if one["scaled"] < 30.0]
    gain = [now[one["arm"], one["seed"]]["log_det"] - one["log_det"] for one in good]
    note = f"{len(good)} of {len(before)} runs in which 0.1 succeeded"
    yield Row("ln det, ours minus 0.1, median", float(np.median(gain)), "", ">= 0", note)
    medians = [np.median([one["log_det"] for one in good])]
    medians += [np.median([now[one["arm"], one["seed"]]["log_det"] for one in good])]
    yield Row("ln det of 0.1, median", float(medians[0]), "", "", note)
    yield Row("ln det, median", float(medians[1]), "", f">= {medians[0]:.3f}", note)
    worst = max(one["scaled"] for one in after)
    yield Row("worst column-scaled condition number, all runs", worst, "", "< 30")
    worst = max(one["scaled"] for one in before)
    yield Row("worst column-scaled condition number of 0.1", worst)
    both = [
        (one["quick_cpu_s"], now[one["arm"], one["seed"]]["quick_cpu_s"])
        for one in before
        if one["quick_cond"] < GOAL
    ]
    reached = sum(now[one["arm"], one["seed"]]["quick_cond"] < GOAL for one in before)
    theirs, ours = (np.array(x) for x in zip(*both, strict=True))
    note = f"{len(both)} runs; 0.1 {theirs.sum():.1f} CPU s in all, now {ours.sum():.1f}"
    yield Row("time to cond < 50, now / 0.1", float(ours.sum() / theirs.sum()), "x", "<= 1.2", note)
    yield Row("the same, median of runs", float(np.median(ours / theirs)), "x", "<= 1.2", note)
    yield Row("runs that reach cond < 50", reached, "", f">= {len(both)}", f"of {len(before)}")


def rows() -> Iterator[Row]:
    if not BEFORE.exists():
        return
    after = [searched(arm, seed) for seed in SEEDS for arm in ARMS]
    yield from compare(json.loads(BEFORE.read_text()), after)


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
