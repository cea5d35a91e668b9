"""Recordings with nothing wrong: how many are refused, or blamed for something?

Every one is fitted as a user would, simulated ones with their last 30 % kept out; all that is said
counts, but for what is true of the motion, or of what the arm carries.

python -m benchmarks no_false_alarm                                    everything, 20 CPU min
python -m benchmarks.accuracy.no_false_alarm FOLDER [SECONDS [ARMS]]   what FOLDER does not hold
                                                                       yet, for so many CPU seconds
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import Row
from benchmarks.clean_runs import ARMS, LOADED, LOADS, RANDOM, SHARED, clean_run, loaded_run
from taufit.recording import Recording
from taufit.robot import Robot

RUNS, LOADED_RUNS = 30, 4
MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"
# What is true of a recording, whatever the arm: gaps, odd rates, gains that are not in it.
TRUE = (
    "gaps", "gap", "stale_rows", "effort_unit", "drive_gain", "gain_unknown", "one_way_joint",
    "standing_joint", "rounding", "jitter", "unchecked", "outlier",
)  # fmt: skip
# Sentences that describe the motion or the model and blame nothing.
DESCRIBES = re.compile(
    r"base parameters of the links are not identifiable from this motion|the arm carried"
    r"|the nominal robot has no usable values"
    r"|leave the range of training|friction .* from run to run|stand still: nrmse"
)


def fitted(
    robot: Robot, recordings: Sequence[Recording], holdout: str | None = "30%"
) -> dict[str, Any]:
    """What is said when recordings are fitted, and how good the model is."""
    from taufit.core.errors import TaufitError
    from taufit.workflow import identify

    try:
        done = identify(robot, recordings, holdout=holdout)
    except TaufitError as error:
        return {"refused": str(error), "findings": [], "warnings": []}
    said = [f for f in done.findings if f.severity != "info"]
    return {
        "refused": "; ".join(done.grades.reasons) if done.grades.overall == "poor" else "",
        "findings": [f"{f.kind} ({f.severity}): {f.message}" for f in said],
        "warnings": [
            text
            for text in done.warnings
            if not any(str(f) == text or f.message == text for f in said)
        ],
        "grade": done.grades.overall,
        "nrmse": done.training_score.mean_nrmse,
        "holdout": done.mean_holdout_nrmse,
        "floor": done.grades.floor,
    }


def alarms(name: str, result: dict[str, Any]) -> list[str]:
    """What of a case's result is wrong: nothing should be."""
    out = [f"refused: {result['refused']}"] if result["refused"] else []
    true = (*TRUE, "undescribed_load") if carries(name) else TRUE
    out += [text for text in result["findings"] if text.split()[0] not in true]
    return out + [text for text in result["warnings"] if not DESCRIBES.search(text)]


def carries(name: str) -> bool:
    """Whether the arm of a case carries something that its description does not have."""
    arm, *rest = name.split("-")
    if arm in ("shared", "loaded"):
        return arm == "loaded" or "oad_" in f"{rest[0].replace('unload', '')}_"
    return arm not in RANDOM and int(rest[0]) % 3 == 0


def shared() -> Iterator[tuple[str, Robot, list[Recording]]]:
    """Every shared recording in which nothing is wrong, and all of a kind together."""
    from taufit.recording import read_recordings
    from taufit.robot import read_robot

    def read(pattern: str, columns: str | Path | None, **how: str) -> list[list[Recording]]:
        paths = sorted(SHARED.glob(pattern))
        return [read_recordings(path, column_map=columns, **how) for path in paths]

    ur10e = read_robot("ur10e")
    # One file is corrupt at its source, one has no target currents, from which gains come.
    moved = [
        one
        for one in read("ur10e/identification_data/*.csv.gz", "ur10e_csv")
        if "11_32_02" not in one[0].name and "11_28_22" not in one[0].name
    ]
    single = read("ur10e/jointwise_motion/*.csv.gz", "ur10e_csv")
    for one in moved:
        yield one[0].name, ur10e, one
    yield "joint by joint", ur10e, [r for one in single for r in one]
    yield "unloaded", ur10e, [r for one in moved if "oad" not in one[0].name for r in one]
    lwr4 = read("kuka_lwr4/lwr4_run*.csv.gz", MAPS / "lwr4_csv.yaml")
    for one in lwr4:
        yield one[0].name, read_robot(SHARED / "kuka_lwr4/kuka_lwr4.urdf"), one
    for one in read("panda/*.csv.gz", MAPS / "panda_csv.yaml"):
        yield one[0].name, read_robot("panda"), one
    for one in read("staubli_tx40/*.csv.gz", MAPS / "tx40_csv.yaml"):
        yield one[0].name, read_robot(SHARED / "staubli_tx40/tx40_mdh_modified.urdf"), one
    for one in read("ur10_bag/*.db3", None, torque_kind="torque"):
        yield one[0].name, read_robot("ur10"), one


def loaded() -> Iterator[tuple[str, Robot, list[Recording]]]:
    """Shared recordings with a payload, as users describe the arm."""
    from benchmarks.accuracy.wrong_arm import nameless
    from taufit.recording import read_recordings
    from taufit.robot import read_robot

    described = {"user": SHARED / "ur10e" / "ur10e.urdf", "ur10": "ur10"}
    for path in sorted((SHARED / "ur10e" / "identification_data").glob("*oad*.csv.gz")):
        for word, arm in described.items() if "unload" not in path.name else ():
            runs = [nameless(one) for one in read_recordings(path, column_map="ur10e_csv")]
            yield f"{path.name} as {word}", read_robot(arm), runs


def cases(arms: Sequence[str] = ARMS) -> Iterator[tuple[str, Callable[[], tuple[Any, ...]]]]:
    """Every case by name, with what makes it; seed after seed, so that a part says something."""
    for seed in range(RUNS):
        for name in arms:
            yield f"{name}-{seed:02d}", partial(clean_run, name, seed)
    for seed in range(LOADED_RUNS if set(arms) == set(ARMS) else 0):
        for name in LOADED:
            for mass in LOADS:
                yield f"loaded-{name}-{mass:g}-{seed:02d}", partial(loaded_run, name, seed, mass)


def work(folder: Path, seconds: float = float("inf"), arms: Sequence[str] = ARMS) -> None:
    """Fit what has no result in the folder yet, until the CPU time is spent."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    for name, made in cases(arms):
        path = folder / f"{name}.json"
        if path.exists():
            continue
        if time.process_time() - started > seconds:
            return
        robot, recording, *_ = made()
        _keep(path, fitted(robot, [recording]))
    if set(arms) != set(ARMS) or not SHARED.exists():
        return
    for name, robot, recordings in chain(shared(), loaded()):
        path = folder / f"shared-{re.sub(r'[^A-Za-z0-9]+', '_', name)}.json"
        if path.exists():
            continue
        if time.process_time() - started > seconds:
            return
        _keep(path, fitted(robot, recordings, None))


def _keep(path: Path, result: dict[str, Any]) -> None:
    path.write_text(json.dumps(result, indent=1) + "\n")


def results(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """By arm and case, what the folder holds."""
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        arm = path.stem.split("-")[0]
        out.setdefault(arm, {})[path.stem] = json.loads(path.read_text())
    return out


def rows() -> Iterator[Row]:
    """False alarms per set."""
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))


def counts(folder: Path) -> Iterator[Row]:
    """The figures of a folder."""
    total = Counter[str]()
    for arm, found in results(folder).items():
        refused = sum(bool(one["refused"]) for one in found.values())
        wrong = sum(bool(alarms(*one)) for one in found.items())
        total.update(runs=len(found), refused=refused, wrong=wrong)
        note = (
            f"{refused} refused; grades {dict(Counter(one.get('grade') for one in found.values()))}"
        )
        yield Row(f"{arm}: false alarms of {len(found)} clean runs", wrong, "", "== 0", note)
    yield Row(f"all: refused of {total['runs']}", total["refused"], "", "== 0")
    yield Row(f"all: blamed of {total['runs']}", total["wrong"], "", "== 0")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    work(
        place,
        float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"),
        sys.argv[3].split(",") if len(sys.argv) > 3 else ARMS,
    )
    for arm in results(place).values():
        for name, one in arm.items():
            for text in alarms(name, one):
                print(name, text)
    for row in counts(place):
        print(row.name, row.value, row.note)
