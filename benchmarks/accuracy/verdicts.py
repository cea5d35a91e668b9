"""Verdicts on wrong structures: shared recordings with one thing wrong must not pass as if right.

A wrong structure that passes is "worse" if its error on the hold-out exceeds 1.25 times that of the
right structure (plus 0.005). Limits of the verdict were chosen on the first half of the arms; the
second half tests them.

python -m benchmarks verdicts
python -m benchmarks.accuracy.verdicts FOLDER [SECONDS] [ARM ...]   what FOLDER does not hold yet
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.clean_runs import SHARED
from taufit.recording import Recording, read_recordings, split
from taufit.robot import Robot, read_robot

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHOSEN = ("ur10e", "panda", "kr300", "tx40")
TESTED = ("lwr4", "ur10_bag", "xmate")
_RATIO, _MARGIN = 1.25, 0.005
Pair = tuple[Robot, list[Recording], list[Recording], float]
Change = Callable[[Recording], Recording]


def pair(arm: str) -> Pair:
    """Robot, recordings to fit, recordings to judge, cut-off of one arm."""

    def runs(name: str, columns: str) -> list[Recording]:
        return read_recordings(SHARED / name, column_map=EXAMPLES / "columns" / f"{columns}.yaml")

    def tail(robot: Any, recordings: list[Recording], cutoff_hz: float) -> Pair:
        parts = [split(recording, 0.3) for recording in recordings]
        return read_robot(robot), [a for a, _ in parts], [b for _, b in parts], cutoff_hz

    if arm == "ur10e":
        names = ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm")
        first, second = (
            runs(f"ur10e/identification_data/ur-{name}.csv.gz", "ur10e_csv") for name in names
        )
        return read_robot(SHARED / "ur10e" / "ur10e.urdf"), first, second, 5.0
    if arm == "panda":
        return tail("panda", runs("panda/panda_exciting_traj1_part1.csv.gz", "panda_csv"), 5.0)
    if arm == "kr300":
        first, second = (runs(f"kuka_kr300/kr300_run{x}.csv.gz", "kr300_csv") for x in "AB")
        return read_robot(EXAMPLES / "arms" / "kr300.yaml"), first, second, 10.0
    if arm == "tx40":
        folder = SHARED / "staubli_tx40"
        recordings = runs("staubli_tx40/tx40_run1.csv.gz", "tx40_csv")
        return tail(folder / "tx40_mdh_modified.urdf", recordings, 10.0)
    if arm == "lwr4":
        first, second = (runs(f"kuka_lwr4/lwr4_run{k}.csv.gz", "lwr4_csv") for k in (1, 2))
        return read_robot(SHARED / "kuka_lwr4" / "kuka_lwr4.urdf"), first, second, 8.0
    if arm == "ur10_bag":
        bag = SHARED / "ur10_bag" / "ur10_exciting_trajectory.db3"
        return tail("ur10", read_recordings(bag, torque_kind="torque"), 10.0)
    recordings = runs("xmate7p/xmate7p_traj1.csv.gz", "xmate7p_csv")
    return tail(SHARED / "xmate7p" / "XM7p.urdf", recordings, 10.0)


def faults(joints: int) -> Iterator[tuple[str, Change]]:
    """Every single fault by name; the first is none."""

    def torque(change: Callable[[np.ndarray], np.ndarray]) -> Change:
        return lambda recording: replace(recording, signal=change(recording.signal))

    def zero(angle: float) -> Change:
        offset = np.eye(joints)[1] * np.radians(angle)
        return lambda recording: replace(recording, position=recording.position + offset)

    yield "none", lambda recording: recording
    yield "signs_all", torque(lambda x: -x)
    for j in (0, 1, 2, joints - 2):
        yield f"sign_{j + 1}", torque(lambda x, j=j: x * (1.0 - 2.0 * np.eye(joints)[j]))
    for i, k in ((0, 1), (1, 2), (joints - 2, joints - 1)):
        order = np.arange(joints)
        order[[i, k]] = k, i
        yield f"swapped_torque_{i + 1}{k + 1}", torque(lambda x, order=order: x[:, order])
    for factor in (1000.0, 0.001, 0.1, 8.85):
        yield f"unit_{factor:g}", torque(lambda x, factor=factor: factor * x)
    rng = np.random.default_rng(1)
    yield "shuffled", torque(lambda x: x[rng.permutation(len(x))])
    yield "rolled", torque(lambda x: np.roll(x, len(x) // 2, axis=0))
    for angle in (90.0, 30.0):
        yield f"zero2_{angle:g}", zero(angle)


def judge(robot: Robot, first: list[Recording], second: list[Recording], cutoff_hz: float) -> dict:
    """Verdict of a fit, with its figure on the hold-out; "REFUSED" with the reason."""
    from taufit.core.errors import TaufitError
    from taufit.workflow import identify

    try:
        done = identify(robot, first, holdout={"second": second}, cutoff_hz=cutoff_hz)
    except TaufitError as error:
        return {"verdict": "REFUSED", "text": str(error)[:200]}
    verdict = "FAIL" if done.grades.overall == "poor" else "PASS"
    grades = done.grades
    return {"verdict": verdict, "unexplained": grades.unexplained, "reasons": list(grades.reasons)}


def work(folder: Path, seconds: float = float("inf"), arms: tuple[str, ...] = ()) -> None:
    """Judge what has no result in the folder yet, until the CPU time is spent."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    for arm in arms or (*CHOSEN, *TESTED):
        robot, first, second, cutoff_hz = pair(arm)
        for name, change in faults(robot.joints):
            path = folder / f"{arm}-{name}.json"
            if path.exists():
                continue
            if time.process_time() - started > seconds:
                return
            changed = [change(run) for run in first], [change(run) for run in second]
            path.write_text(json.dumps(judge(robot, *changed, cutoff_hz), indent=1) + "\n")


def counts(folder: Path) -> Iterator[Row]:
    """The figures of a folder."""
    for label, arms in (("chosen", CHOSEN), ("tested", TESTED)):
        clean, passed, worse, total = 0, 0, list[str](), 0
        for arm in arms:
            right = folder / f"{arm}-none.json"
            if not right.exists():
                continue
            reference = json.loads(right.read_text())
            clean += reference["verdict"] == "PASS"
            limit = _RATIO * reference.get("unexplained", np.inf) + _MARGIN
            for path in sorted(folder.glob(f"{arm}-*.json")):
                if path == right:
                    continue
                found = json.loads(path.read_text())
                total += 1
                if found["verdict"] == "PASS":
                    passed += 1
                    worse += [path.stem] if found["unexplained"] > limit else []
        if total:
            note = (
                f"of {total} wrong structures, {passed} pass; worse: {', '.join(worse) or 'none'}"
            )
            yield Row(
                f"{label} arms: wrong structures that pass worse", len(worse), "", "<= 1", note
            )
            yield Row(f"{label} arms: right structures that pass", clean, "", "", ", ".join(arms))


def rows() -> Iterator[Row]:
    """Verdicts on wrong and right structures of shared recordings."""
    if not SHARED.exists():
        return
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    work(place, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"), tuple(sys.argv[3:]))
    for row in counts(place):
        print(row.name, row.value, row.note)
