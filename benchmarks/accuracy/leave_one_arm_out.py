"""Recordings of ten real arms, each split into training and test parts: defaults against linear.

A case is one training part and the tests of the same arm. The value of an arm is the mean nrmse of
its cases. Settings are chosen on some arms and scored on the others. Parts of one recording are
half a second apart. Reads the recordings beside the project (../shared/data).

`python -m benchmarks.accuracy.leave_one_arm_out [--linear] [ARM ...]` prints single cases.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.large_arms import ARMS
from benchmarks.accuracy.real_robots import DATA, MAPS, NINE
from taufit.core.arrays import Array, Float
from taufit.recording import Recording, crop, read_recording
from taufit.robot import Robot, read_robot
from taufit.workflow import identify

KINOVA_TIME = {"columns": "Time", "unit": "ms"}
AIRBOT = {
    "rate_hz": 100,
    "torque_side": "motor",
    "columns": {"position": "q{joint0}", "torque": "tau{joint}"},
}
MED7 = {
    "torque_side": "link",
    "columns": {
        "time": "time",
        "position": "p{joint}",
        "velocity": "v{joint}",
        "torque": {"columns": "e{joint}", "sign": -1},
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Training and test recordings of one arm.

    Attributes:
        name: Arm and part, e.g. "panda:70" for the first 70 %, "panda:-70" for the last.
        robot: Nominal robot.
        training, tests: Recordings.
        cutoff_hz: Cut-off of the low-pass [Hz].
    """

    name: str
    robot: Robot
    training: Recording
    tests: tuple[Recording, ...]
    cutoff_hz: float = 10.0


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    for arm in ARM_CASES:
        values = {
            friction: np.mean([nrmse(case, friction).mean() for case in ARM_CASES[arm]()])
            for friction in ("auto", "linear")
        }
        note = f"mean over splits; linear friction {values['linear']:.4f}"
        yield Row(f"{arm}, nrmse of test parts", float(values["auto"]), "", "", note)


def nrmse(case: Case, friction: str = "auto", **choices: Any) -> Float[Array, " j"]:
    """Mean nrmse of each joint over the tests of a case."""
    done = identify(
        case.robot,
        [case.training],
        holdout={str(k): [test] for k, test in enumerate(case.tests)},
        friction=friction,
        cutoff_hz=case.cutoff_hz,
        ignore_contradictions=True,
        **choices,
    )
    values: Float[Array, " j"] = np.mean([score.nrmse for score in done.holdout_scores], axis=0)
    return values


def parts(recording: Recording, *borders: float) -> list[Recording]:
    """Parts of a recording between fractions of its duration, half a second apart."""
    duration = float(recording.time[-1] - recording.time[0])
    gap = min(0.25, 0.02 * duration)
    return [
        crop(
            recording,
            a * duration + (gap if a else 0.0),
            b * duration - (gap if b < 1 else 0.0),
        )
        for a, b in pairwise(borders)
    ]


def splits(
    arm: str, robot: Robot, recording: Recording, percents: Sequence[int], cutoff_hz: float = 10.0
) -> Iterator[Case]:
    """First (70) or last (-70) per cent of a recording for training, the rest for testing."""
    for percent in percents:
        border = percent / 100.0 if percent > 0 else 1.0 + percent / 100.0
        first, last = parts(recording, 0.0, border, 1.0)
        training, test = (first, last) if percent > 0 else (last, first)
        yield Case(f"{arm}:{percent}", robot, training, (test,), cutoff_hz)


def ur10e_runs() -> dict[str, Recording]:
    """Nine unloaded runs, in order of date."""
    folder = DATA / "ur10e" / "identification_data"
    return {
        name: read_recording(folder / f"{name}.csv.gz", column_map=MAPS / "ur10e_csv.yaml")
        for name in sorted(NINE)
    }


def _ur10e() -> Iterator[Case]:
    robot, runs = read_robot(DATA / "ur10e" / "ur10e.urdf"), ur10e_runs()
    for name in ("20_02_10-30sec_12harm", "20_02_05-20sec_8harm", "20_02_19_14harm50sec"):
        tests = tuple(run for key, run in runs.items() if key != f"ur-{name}")
        yield Case(f"ur10e:{name[3:8]}", robot, runs[f"ur-{name}"], tests, 5.0)


def _ur10() -> Iterator[Case]:
    file = DATA / "ur10_bag" / "ur10_exciting_trajectory.db3"
    recording = read_recording(file, torque_kind="torque")
    yield from splits("ur10", read_robot("ur10"), recording, (70, -70))


def _panda() -> Iterator[Case]:
    recording = _read("panda", "panda_exciting_traj1_part1")
    yield from splits("panda", read_robot("panda"), recording, (70, -70, 50), 5.0)


def _lwr4() -> Iterator[Case]:
    robot = read_robot(DATA / "kuka_lwr4" / "kuka_lwr4.urdf")
    first, second = (
        read_recording(
            DATA / "kuka_lwr4" / f"lwr4_run{k}.csv.gz", column_map=MAPS / "lwr4_csv.yaml"
        )
        for k in (1, 2)
    )
    yield Case("lwr4:1", robot, first, (second,), 8.0)
    yield Case("lwr4:2", robot, second, (first,), 8.0)
    yield from splits("lwr4", robot, first, (30,), 8.0)


def _xmate() -> Iterator[Case]:
    robot = read_robot(DATA / "xmate7p" / "XM7p.urdf")
    recording = _read("xmate7p", "xmate7p_traj1")
    yield from splits("xmate", robot, recording, (60, -60, 75, -75))


def _tx40() -> Iterator[Case]:
    robot = read_robot(DATA / "staubli_tx40" / "tx40_mdh_modified.urdf")
    recording = read_recording(
        DATA / "staubli_tx40" / "tx40_run1.csv.gz", column_map=MAPS / "tx40_csv.yaml"
    )
    yield from splits("tx40", robot, recording, (70, -70))


def _airbot() -> Iterator[Case]:
    folder = DATA / "airbot_play"
    table = {f"q{k}": _column(folder / "chirp_q_real.csv.gz", f"q{k}") for k in range(6)}
    for k in range(1, 7):
        table[f"tau{k}"] = _column(folder / "chirp_tau_real.csv.gz", f"tau{k}")
    recording = _from_table(table, AIRBOT)
    yield from splits("airbot", read_robot(folder / "airbot_play.urdf"), recording, (70, -70))


def _med7() -> Iterator[Case]:
    folder = DATA / "kuka_med7"
    table = {"time": _column(folder / "joint_states_positions.csv.gz", "time")}
    for letter, quantity in (("p", "positions"), ("v", "velocities"), ("e", "efforts")):
        file = folder / f"joint_states_{quantity}.csv.gz"
        table |= {f"{letter}{k + 1}": _column(file, f"lbr_joint_{k}") for k in range(7)}
    recording = _from_table(table, MED7)
    # The arm stands in the first 30 %: nothing to test there.
    yield from splits("med7", read_robot(folder / "med7dock.urdf"), recording, (70,))


def _kinova() -> Iterator[Case]:
    robot = read_robot(DATA / "kinova_gen3" / "gen3.urdf")
    first, second = (
        _kinova_run(name, "TorqueCur", "motor")
        for name in ("RecordTrajectory_quadratic", "Trajectory1")
    )
    yield Case("kinova:q", robot, first, (second,))
    yield Case("kinova:t", robot, second, (first,))
    sensor = _kinova_run("opti_traj_testing1", "TorqueSm", "link")
    yield from splits("kinova_sensor", robot, sensor, (60, 75, -60))


def _kinova_run(name: str, torque: str, side: str) -> Recording:
    columns = {
        "time": KINOVA_TIME,
        "position": "Position{joint}",
        "velocity": "Velocity{joint}",
        "torque": torque + "{joint}",
    }
    file = DATA / "kinova_gen3" / f"{name}.csv.gz"
    return read_recording(file, column_map={"columns": columns, "torque_side": side})


def _kr300() -> Iterator[Case]:
    robot = read_robot(ARMS / "kr300.yaml")
    first, second = (
        read_recording(
            DATA / "kuka_kr300" / f"kr300_run{x}.csv.gz", column_map=MAPS / "kr300_csv.yaml"
        )
        for x in "AB"
    )
    yield Case("kr300:A", robot, first, (second,))
    yield Case("kr300:B", robot, second, (first,))


ARM_CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "UR10e": _ur10e,
    "UR10": _ur10,
    "Panda": _panda,
    "LWR4": _lwr4,
    "xMate": _xmate,
    "TX40": _tx40,
    "Airbot": _airbot,
    "Kinova": _kinova,
    "Med 7": _med7,
    "KR300": _kr300,
}


def _read(folder: str, name: str) -> Recording:
    file, column_map = DATA / folder / f"{name}.csv.gz", MAPS / f"{folder}_csv.yaml"
    return read_recording(file, column_map=column_map)


def _column(file: Path, name: str) -> Float[Array, " n"]:
    with gzip.open(file, "rt") as stream:
        return np.array([float(row[name]) for row in csv.DictReader(stream)])


def _from_table(table: dict[str, Float[Array, " n"]], column_map: dict[str, Any]) -> Recording:
    import pandas

    return read_recording(pandas.DataFrame(table), column_map=column_map)


def main(words: list[str]) -> None:
    friction = "linear" if "--linear" in words else "auto"
    arms = [word for word in words if not word.startswith("--")]
    for arm, cases in ARM_CASES.items():
        if arms and arm not in arms:
            continue
        for case in cases():
            started = time.process_time()
            values = nrmse(case, friction)
            joints = " ".join(f"{value:.3f}" for value in values)
            cpu = time.process_time() - started
            print(f"{case.name:16} {values.mean():.4f}  {joints}  {cpu:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
