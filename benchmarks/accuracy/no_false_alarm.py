"""Recordings with nothing wrong: how many are refused, or blamed for something?

python -m benchmarks no_false_alarm                          everything
python -m benchmarks.accuracy.no_false_alarm panda,crane 5   some arms, five runs each, one by one
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import Row
from benchmarks.clean_runs import ARMS, SHARED, clean_run
from taufit.recording import Recording
from taufit.robot import Robot

RUNS = 30
CUTOFFS = (5.0, 10.0)
MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"
# What is true of a recording, whatever the arm: gaps, odd rates, gains that are not in it.
TRUE = (
    "gaps", "gap", "stale_rows", "effort_unit", "drive_gain", "gain_unknown", "one_way",
    "standing_joint", "rounding", "jitter",
)  # fmt: skip


def alarms(robot: Robot, recordings: Sequence[Recording], cutoff_hz: float = 10.0) -> list[str]:
    """Whatever is said against recordings before they are fitted."""
    from taufit.diagnosis import CHANNEL_KINDS, Cause, sample_causes
    from taufit.errors import TaufitError
    from taufit.workflow.training_data import training_data

    try:
        data = training_data(robot, recordings, cutoff_hz=cutoff_hz)
    except TaufitError as error:
        return [f"refused: {error}"]
    own = [f for r in data.recordings for f in r.findings if f.severity != "info"]
    known = [Cause(f) for f in own if f.kind in CHANNEL_KINDS]
    causes = sample_causes(data.robot, data.recordings, data.source.excerpt, known)
    found = [*own, *(cause.finding for cause in causes), *data.findings]
    return [f"{f.kind} ({f.severity}): {f.message}" for f in found if f.kind not in TRUE]


def shared() -> Iterator[tuple[str, Robot, list[Recording]]]:
    """Every shared recording in which nothing is wrong, and all of a kind together."""
    from taufit.recording import read_recordings
    from taufit.robot import read_robot

    def read(pattern: str, columns: str | Path | None, **how: str) -> list[list[Recording]]:
        paths = sorted(SHARED.glob(pattern))
        return [read_recordings(path, map=columns, **how) for path in paths]

    ur10e = read_robot("ur10e")
    # One file is corrupt at its source, one has no target currents, from which gains come.
    moved = [
        one
        for one in read("ur10e/identification_data/*.csv.gz", "ur10e_csv")
        if "11_32_02" not in one[0].name and "11_28_22" not in one[0].name
    ]
    single = read("ur10e/jointwise_motion/*.csv.gz", "ur10e_csv")
    for one in [*moved, *single]:
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
    for one in read("ur10_bag/*.db3", None, effort="torque"):
        yield one[0].name, read_robot("ur10"), one


def rows() -> Iterator[Row]:
    """False alarms per set."""
    if SHARED.exists():
        count = said = 0
        for _, robot, recordings in shared():
            for cutoff_hz in CUTOFFS:
                count += 1
                said += bool(alarms(robot, recordings, cutoff_hz))
        yield Row(f"shared recordings: false alarms of {count}", said, "", "== 0", "5 and 10 Hz")
    for name in ARMS:
        bad = sum(bool(alarms(*_one(name, seed))) for seed in range(RUNS))
        yield Row(f"{name}: false alarms of {RUNS} clean runs", bad, "", "== 0")


def _one(name: str, seed: int) -> tuple[Robot, list[Recording]]:
    robot, recording = clean_run(name, seed)
    return robot, [recording]


if __name__ == "__main__":
    if sys.argv[1] == "shared":
        for label, robot, recordings in shared():
            for cutoff_hz in CUTOFFS:
                print(label, cutoff_hz, alarms(robot, recordings, cutoff_hz), flush=True)
    else:
        names = ARMS if sys.argv[1] == "all" else sys.argv[1].split(",")
        first, last = (int(x) for x in [*sys.argv[2].split("-"), "0"][:2])
        for seed in range(first, last) if last else range(first):
            for name in names:
                said = alarms(*_one(name, seed))
                if said:
                    print(name, seed, said, flush=True)
            print("seed", seed, "done", flush=True)
