"""Calibration of the grade: how near to the best possible is a model that is called good?

A model fitted to one recording is graded on another, of the same arm and another motion. What the
best model of that other recording leaves there, fitted to it with everything that `identify` has,
is the floor it is held against; the grade itself uses a quicker floor and has not seen this one.

python -m benchmarks grades
python -m benchmarks.accuracy.grades FOLDER [SECONDS]   what FOLDER does not hold yet, for so many
                                                        CPU seconds
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import Row
from benchmarks.clean_runs import ARMS, SHARED, clean_runs
from taufit.recording import Recording
from taufit.robot import Robot

SEEDS = range(20, 31)
MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"
NEAR = 1.5
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
    """The grade, the error on the second recording and the least error there."""
    from taufit.core.errors import TaufitError
    from taufit.workflow import identify

    try:
        done = identify(robot, first, holdout={"second": second})
        best = identify(robot, second)
    except TaufitError as error:
        return {"grade": "refused", "text": str(error)}
    return {
        "grade": done.grades.overall,
        "nrmse": done.mean_holdout_nrmse,
        "floor": done.grades.floor,
        "best": best.training_score.mean_nrmse,
        "reasons": list(done.grades.reasons),
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
        found = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}-*.json"))]
        if not found:
            continue
        words = Counter(one["grade"] for one in found)
        good = [one for one in found if one["grade"] == "good"]
        near = sum(one["nrmse"] < NEAR * one["best"] for one in good)
        share = 100.0 * near / max(len(good), 1)
        note = f"{near} of {len(good)} good; of {len(found)}: {dict(words)}"
        yield Row(f"{kind}: good models within 1.5 of the floor", share, "%", ">= 95", note)
        worse = [one for one in found if one["grade"] in ("usable", "poor")]
        far = sum(one["nrmse"] >= NEAR * one["best"] for one in worse)
        yield Row(f"{kind}: models not called good beyond it", far, "", "", f"of {len(worse)}")


def rows() -> Iterator[Row]:
    """Calibration on simulated and on shared recordings."""
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    work(place, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
    for file in sorted(place.glob("*.json")):
        one = json.loads(file.read_text())
        if one["grade"] == "refused":
            print(file.stem, one)
        elif one["grade"] == "good" and one["nrmse"] >= NEAR * one["best"]:
            print(file.stem, {k: one[k] for k in ("nrmse", "floor", "best")})
    for row in counts(place):
        print(row.name, round(row.value, 1), row.note)
