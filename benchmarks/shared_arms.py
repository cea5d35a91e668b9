"""Shared recordings of real arms, as pairs: recordings to fit, and others to judge the fit by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.clean_runs import SHARED
from benchmarks.open.arms import airbot, gen3, med7
from benchmarks.open.tables import read_table
from taufit.recording import Recording, read_recordings, split
from taufit.robot import Robot, read_robot

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@dataclass(frozen=True, slots=True, eq=False)
class RecordedArm:
    """Robot, recordings to fit, recordings to judge the fit by, and cut-off of the low-pass."""

    robot: Robot
    training: list[Recording]
    holdout: list[Recording]
    cutoff_hz: float

    def change(self, function: Callable[[Recording], Recording]) -> RecordedArm:
        """The same with every recording changed."""
        parts = ([function(run) for run in part] for part in (self.training, self.holdout))
        return replace(self, training=next(parts), holdout=next(parts))


def recorded_arm(name: str) -> RecordedArm:
    """Recordings of one arm of `ARMS`."""
    return ARMS[name]()


def _mapped(path: str, columns: str) -> list[Recording]:
    return read_recordings(SHARED / path, column_map=EXAMPLES / "columns" / f"{columns}.yaml")


def _with_tail(robot: str | Path, recordings: Sequence[Recording], cutoff_hz: float) -> RecordedArm:
    """The last 30 % of every recording judges."""
    parts = [split(recording, 0.3) for recording in recordings]
    return RecordedArm(read_robot(robot), [a for a, _ in parts], [b for _, b in parts], cutoff_hz)


def _ur10e(first: str, second: str) -> RecordedArm:
    training, holdout = (
        _mapped(f"ur10e/identification_data/ur-{name}.csv.gz", "ur10e_csv")
        for name in (first, second)
    )
    return RecordedArm(read_robot(SHARED / "ur10e" / "ur10e.urdf"), training, holdout, 5.0)


def _kr300() -> RecordedArm:
    first, second = (_mapped(f"kuka_kr300/kr300_run{x}.csv.gz", "kr300_csv") for x in "AB")
    return RecordedArm(read_robot(EXAMPLES / "arms" / "kr300.yaml"), first, second, 10.0)


def _lwr4() -> RecordedArm:
    first, second = (_mapped(f"kuka_lwr4/lwr4_run{k}.csv.gz", "lwr4_csv") for k in (1, 2))
    robot = read_robot(SHARED / "kuka_lwr4" / "kuka_lwr4.urdf")
    return RecordedArm(robot, first, second, 8.0)


def _ur10_bag() -> RecordedArm:
    bag = SHARED / "ur10_bag" / "ur10_exciting_trajectory.db3"
    return _with_tail("ur10", read_recordings(bag, torque_kind="torque"), 10.0)


def _airbot() -> RecordedArm:
    recording = airbot.read(*(SHARED / file for file in airbot.EMPTY.split("+")))
    return _with_tail(SHARED / "airbot_play" / "airbot_play.urdf", [recording], 10.0)


def med7_recording(sign: float = 1.0) -> Recording:
    """The Med 7 as recorded, with every torque reversed, or turned with -1; no repeated rows."""
    recording: Recording = med7.read(*(SHARED / file for file in med7.LOG.split("+")), sign)
    return recording


def _med7() -> RecordedArm:
    return _with_tail(SHARED / "kuka_med7" / "med7dock.urdf", [med7_recording(-1.0)], 10.0)


def _kinova() -> RecordedArm:
    training = [gen3.ARM.read(SHARED / f) for f in (gen3.SECOND_JOINT, gen3.LAST_JOINT, gen3.WARM)]
    robot = read_robot(SHARED / "kinova_gen3" / "gen3.urdf")
    return RecordedArm(robot, training, [gen3.ARM.read(SHARED / gen3.LONG)], 10.0)


def so101_recording(name: str) -> Recording:
    """One motion of the SO-101, its unsigned current taken for torque."""
    header, table = read_table(SHARED / "so101" / f"{name}.csv.gz")
    position, velocity, current = (
        table[:, [header.index(f"{block}{j}") for j in range(1, 6)]] for block in ("q", "dq", "cur")
    )
    return Recording(table[:, 0], position, current, velocity, meta={"name": name})


def _so101() -> RecordedArm:
    training = [so101_recording(name) for name in ("multisine", "friction_gravity")]
    robot = read_robot(SHARED / "so101" / "so101.urdf")
    return RecordedArm(robot, training, [so101_recording("large_amplitude")], 5.0)


ARMS: dict[str, Callable[[], RecordedArm]] = {
    "ur10e": lambda: _ur10e("20_02_10-30sec_12harm", "20_02_12-40sec_12harm"),
    "panda": lambda: _with_tail(
        "panda", _mapped("panda/panda_exciting_traj1_part1.csv.gz", "panda_csv"), 5.0
    ),
    "kr300": _kr300,
    "tx40": lambda: _with_tail(
        SHARED / "staubli_tx40" / "tx40_mdh_modified.urdf",
        _mapped("staubli_tx40/tx40_run1.csv.gz", "tx40_csv"),
        10.0,
    ),
    "med7": _med7,
    "ur10e_second": lambda: _ur10e("20_01_31-unload", "20_02_19_14harm50sec"),
    "lwr4": _lwr4,
    "ur10_bag": _ur10_bag,
    "xmate": lambda: _with_tail(
        SHARED / "xmate7p" / "XM7p.urdf",
        _mapped("xmate7p/xmate7p_traj1.csv.gz", "xmate7p_csv"),
        10.0,
    ),
    "airbot": _airbot,
    "kinova": _kinova,
    "so101": _so101,
}
