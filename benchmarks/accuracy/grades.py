"""Floor beside the grade: torque that no model explains, against the best fit of the recording.

A model fitted to one recording is graded on another, of the same arm and another motion. The floor
that is stated there comes from the recording alone. It must not exceed the error beside which it
stands, and hardly ever what a fit to the judged recording itself leaves.

python -m benchmarks grades
python -m benchmarks.accuracy.grades FOLDER [SECONDS]   what FOLDER does not hold yet, for so many
                                                        CPU seconds
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.clean_runs import ARMS, SHARED, clean_runs
from taufit.recording import Recording
from taufit.robot import Robot

# Not 20 to 22, whose floors were looked at while the bound on repeats was written.
SEEDS = range(30, 33)
MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"
Pair = tuple[Robot, list[Recording], list[Recording]]


def cases() -> Iterator[tuple[str, Callable[[], Pair]]]:
    """Every case by name: robot, recordings to fit, recordings to grade on."""
    for seed in SEEDS:
        for arm in ARMS:
            yield f"simulated-{arm}-{seed}", lambda arm=arm, seed=seed: _simulated(arm, seed)
    if not SHARED.exists():
        return
    moved = sorted((SHARED / "ur10e" / "identification_data").glob("*.csv.gz"))
    # Long ones without a load, every one graded on the next two.
    moved = [path for path in moved if "harm" in path.name and "oad" not in path.name]
    for i, first in enumerate(moved):
        for step in (1, 2):
            second = moved[(i + step) % len(moved)]
            name = f"shared-ur10e-{first.name[3:-7]}-{second.name[3:-7]}"
            yield name, lambda a=first, b=second: _read("ur10e", a, b, "ur10e_csv")
    lwr4 = [SHARED / "kuka_lwr4" / f"lwr4_run{k}.csv.gz" for k in (1, 2)]
    urdf = SHARED / "kuka_lwr4" / "kuka_lwr4.urdf"
    for a, b in (lwr4, lwr4[::-1]):
        yield f"shared-{a.name[:-7]}", lambda a=a, b=b: _read(urdf, a, b, MAPS / "lwr4_csv.yaml")
    panda = SHARED / "panda" / "panda_exciting_traj1_part1.csv.gz"
    yield "shared-panda", lambda: _split("panda", panda, MAPS / "panda_csv.yaml")
    tx40, arm = SHARED / "staubli_tx40" / "tx40_run1.csv.gz", "tx40_mdh_modified.urdf"
    yield "shared-tx40", lambda: _split(tx40.parent / arm, tx40, MAPS / "tx40_csv.yaml")
    bag = SHARED / "ur10_bag" / "ur10_exciting_trajectory.db3"
    yield "shared-bag", lambda: _split("ur10", bag, None)


def _simulated(arm: str, seed: int) -> Pair:
    robot, (first, second) = clean_runs(arm, seed, 2)
    return robot, [first], [second]


def _read(robot: Any, first: Path, second: Path, columns: Any) -> Pair:
    from taufit.recording import read_recordings
    from taufit.robot import read_robot

    one, other = (read_recordings(path, column_map=columns) for path in (first, second))
    return read_robot(robot), one, other


def _split(robot: Any, path: Path, columns: Any) -> Pair:
    from taufit.recording import read_recordings, split
    from taufit.robot import read_robot

    effort = "torque" if columns is None else None
    parts = [
        split(one, 0.3) for one in read_recordings(path, column_map=columns, torque_kind=effort)
    ]
    return read_robot(robot), [a for a, _ in parts], [b for _, b in parts]


def judged(robot: Robot, first: Sequence[Recording], second: Sequence[Recording]) -> dict[str, Any]:
    """Grade, error and floor on the second recording, and error of a fit to it, by joint."""
    from taufit.core.errors import TaufitError
    from taufit.workflow import identify

    try:
        done = identify(robot, first, holdout={"second": second})
        best = identify(robot, second)
    except TaufitError as error:
        return {"grade": "refused", "text": str(error)}
    return {
        "grade": done.grades.overall,
        "nrmse": [grade.nrmse for grade in done.grades.joints],
        "floor": [grade.floor for grade in done.grades.joints],
        "best": best.training_score.nrmse.tolist(),
    }


def work(folder: Path, seconds: float = float("inf")) -> None:
    """Judge what has no result in the folder yet, until the CPU time is spent."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    for name, make in cases():
        path = folder / f"{re.sub(r'[^A-Za-z0-9-]+', '_', name)}.json"
        if path.exists():
            continue
        if time.process_time() - started > seconds:
            return
        path.write_text(json.dumps(judged(*make()), indent=1) + "\n")


def counts(folder: Path) -> Iterator[Row]:
    """The figures of a folder."""
    for kind in ("simulated", "shared"):
        results = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}-*.json"))]
        results = [result for result in results if result["grade"] != "refused"]
        if not results:
            continue
        error, floor, best = (
            np.concatenate([np.array(result[key], float) for result in results])
            for key in ("nrmse", "floor", "best")
        )
        stated = np.isfinite(floor)
        above = 100.0 * float(np.mean(floor[stated] > best[stated]))
        note = f"{stated.sum()} of {len(floor)} joints have a floor, {len(results)} recordings"
        yield Row(f"{kind}: floors above the best fit", above, "%", "<= 5", note)
        beyond = int(np.sum(floor[stated] > error[stated]))
        yield Row(f"{kind}: floors above the error beside them", beyond, "", "<= 0", note)


def rows() -> Iterator[Row]:
    """Floors of simulated and of shared recordings."""
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    work(place, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
    for row in counts(place):
        print(row.name, round(row.value, 1), row.note)
