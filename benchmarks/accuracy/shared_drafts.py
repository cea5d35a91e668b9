"""First try on every shared recording set: draft of a map, then the fit that the draft prints.

Files are the source's own, copied to an empty folder. A draft is right when its position and its
torque or current are the columns that the data's README names (checked as written in the map), or
when the first rival is. Marked lines are those with `???`; a person then fills in what the README
says, and nothing else is edited. KR300, Schunk and the patient-side arm come without a description:
there the draft alone is judged, and its next step asks for the robot.

python -m benchmarks accuracy.shared_drafts
python -m benchmarks.accuracy.shared_drafts [PART OF A NAME]           a line per set
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from benchmarks import Row
from benchmarks.accuracy.printed_commands import run
from benchmarks.clean_runs import SHARED

_MARK = "???"
_MOST_MARKS = 2


@dataclass(frozen=True)
class SharedSet:
    """Files of one run and the columns that are right.

    Attributes:
        files: Below the shared folder; the first folder is the set's name.
        robot: A bundled name or a URDF of the same folder; "" where there is none.
        position, torque: Columns as a map names them; torque may be a current.
        rate_hz: What a person knows of the logger.
        says_robot: Whether `--robot` is given with the draft.
    """

    files: tuple[str, ...]
    robot: str
    position: str
    torque: str
    rate_hz: float | None = None
    says_robot: bool = True

    @property
    def name(self) -> str:
        end = "" if self.says_robot or not self.robot else ", robot not said"
        return f"{Path(self.files[0]).parent}/{Path(self.files[0]).name.split('.')[0]}{end}"


def shared_sets() -> Iterator[SharedSet]:
    """Every set, with each file whose layout or motion differs from the others'."""
    numbered = ("q{joint}", "tau{joint}")
    yield SharedSet(
        ("airbot_play/chirp_q_real.csv.gz", "airbot_play/chirp_tau_real.csv.gz"),
        "airbot_play.urdf", "q{joint0}", "tau{joint}", 100.0,
    )  # fmt: skip
    yield SharedSet(
        ("airbot_play/chirp_q_real_loaded.csv.gz", "airbot_play/chirp_tau_real_loaded.csv.gz"),
        "airbot_play.urdf", "q{joint0}", "tau{joint}", 100.0,
    )  # fmt: skip
    kinds = ("positions", "velocities", "efforts")
    yield SharedSet(
        tuple(f"kuka_med7/joint_states_{kind}.csv.gz" for kind in kinds),
        "med7dock.urdf", "lbr_joint_{joint0}", "lbr_joint_{joint0}",
    )  # fmt: skip
    for name, torque in (
        ("opti_traj_testing1", "TorqueSm"),
        ("RecordTrajectory_quadratic", "TorqueCur"),
        ("Trajectory1", "TorqueCur"),
        ("joint_2_trapez", "TorqueCur"),
        ("joint_7_trapez", "TorqueCur"),
    ):
        file = f"kinova_gen3/{name}.csv.gz"
        yield SharedSet((file,), "gen3.urdf", "Position{joint}", torque + "{joint}")
    # Magnitudes of current beside commands: the printed command is `taufit servo`.
    for path in sorted((SHARED / "so101").glob("*.csv.gz")):
        yield SharedSet(
            (f"so101/{path.name}",), "so101.urdf", str([f"q{j}" for j in range(1, 6)]),
            str([f"cur{j}" for j in range(1, 6)]),
        )  # fmt: skip
    yield SharedSet(
        ("am_d02/real_uart_capture_collect_joint_1.npz",), "AM-D02.urdf", "q_{joint}",
        "tau_measured_{joint}",
    )  # fmt: skip
    yield SharedSet(("panda/panda_exciting_traj1_part1.csv.gz",), "panda", *numbered)
    for number in (1, 2):
        yield SharedSet((f"kuka_lwr4/lwr4_run{number}.csv.gz",), "kuka_lwr4.urdf", *numbered)
    for letter in "AB":
        yield SharedSet((f"kuka_kr300/kr300_run{letter}.csv.gz",), "", "q_mot{joint}", numbered[1])
    yield SharedSet(
        ("staubli_tx40/tx40_run1.csv.gz",), "tx40_mdh_modified.urdf", "q_deg{joint}", "cur{joint}"
    )
    yield SharedSet(
        ("ur10_bag/ur10_exciting_trajectory.db3",), "ur10", "position_{joint}", "effort_{joint}"
    )
    yield SharedSet(("xmate7p/xmate7p_traj1.csv.gz",), "XM7p.urdf", "1-7", "22-28")
    yield SharedSet(("schunk_6dof/schunk_runs_001_070.csv.gz",), "", *numbered)
    for name in ("one_results", "one_no_weight_results", "one_105_grams_parallel_results"):
        yield SharedSet((f"dvrk_psm/{name}.csv.gz",), "", "1-7", "15-21", 200.0)
    for path in sorted((SHARED / "ur10e").glob("*/*.csv.gz")):
        for says_robot in (True, False):
            file = str(path.relative_to(SHARED))
            yield SharedSet((file,), "ur10e", "2-7", "14-19", says_robot=says_robot)


@dataclass(frozen=True)
class Outcome:
    """What a first try came to.

    Attributes:
        channels: "right", "rival" (the first rival is right), "wrong", "asks" (no draft without the
            robot, and said so), or "none" without a draft.
        marks: Lines marked for a person.
        code: Exit code of the printed fit; None where there is no description to fit with.
        text: The verdict or the refusal.
    """

    channels: str
    marks: int
    code: int | None
    text: str

    @property
    def is_good(self) -> bool:
        """Whether a person who fills in the marks reaches a verdict, or is asked for the robot."""
        is_drafted = self.channels in ("right", "rival") and self.marks <= _MOST_MARKS
        return self.channels == "asks" or (is_drafted and self.code in (None, 0, 1))

    @property
    def is_refused(self) -> bool:
        """Whether the fit refuses the recording for a reason."""
        return self.channels in ("right", "rival") and self.code == 3

    @property
    def is_silently_wrong(self) -> bool:
        return self.channels == "wrong"


def outcome(one: SharedSet, has_fit: bool = True) -> Outcome:
    """Draft a map of a set and run the fit that is printed."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        files = [folder / Path(file).name for file in one.files]
        for source, file in zip(one.files, files, strict=True):
            shutil.copyfile(SHARED / source, file)
        if one.robot.endswith(".urdf"):
            shutil.copyfile(SHARED / one.files[0].split("/")[0] / one.robot, folder / one.robot)
        robot = f"--robot {one.robot}" if one.robot and one.says_robot else ""
        names = " ".join(file.name for file in files)
        code, text = run(folder, f"taufit convert {names} --draft map.yaml {robot}")
        if code:
            asks = code == 3 and not robot and "`--robot ROBOT`" in text
            return Outcome("asks" if asks else "none", 0, code, text.strip())
        page = (folder / "map.yaml").read_text()
        marks = sum(_MARK in line for line in page.splitlines() if not line.startswith("#"))
        channels = judge_channels(one, page, text)
        (folder / "map.yaml").write_text(page.replace(_MARK, str(one.rate_hz)))
        command = re.search(r"taufit (fit|servo) [^`\n]+", text)
        if not one.robot or not has_fit or command is None:
            return Outcome(channels, marks, None, text.strip().splitlines()[-1])
        code, text = run(folder, command.group().replace(" ROBOT ", f" {one.robot} "))
        verdict = re.findall(r"(?:PASS|FAIL) \(.*|\w+Error.*", text)
        return Outcome(channels, marks, code, verdict[-1] if verdict else text.strip())


def judge_channels(one: SharedSet, page: str, text: str) -> str:
    """Whether position and torque of a map are the right columns."""
    columns = yaml.safe_load(page.replace(_MARK, "null"))["columns"]
    position = column_names(columns["position"])
    torque = column_names(columns.get("torque", columns.get("current")))
    if position != one.position:
        return "wrong"
    if torque == one.torque:
        return "right"
    rival = re.search(r"rival: (\S+) to", text)
    return "rival" if rival and rival.group(1) == one.torque.format(joint=1) else "wrong"


def column_names(entry: object) -> str:
    """Columns of a map's entry as text."""
    return str(entry["columns"] if isinstance(entry, dict) else entry)


def has_fit(one: SharedSet) -> bool:
    """Whether the fit is run too: not of static poses, nor again where the robot is not said."""
    return one.says_robot and "validation_data" not in one.files[0]


def rows() -> Iterator[Row]:
    """Numbers of first tries that end in a verdict, and of drafts that are silently wrong."""
    if not SHARED.exists():
        return
    tries = {one.name: outcome(one, has_fit(one)) for one in shared_sets()}
    count = len(tries)
    refused = [name for name, one in tries.items() if one.is_refused]
    bad = [name for name, one in tries.items() if not one.is_good and not one.is_refused]
    wrong = sum(one.is_silently_wrong for one in tries.values())
    yield Row("first tries on shared files", count, "")
    yield Row("first tries that end in a verdict or ask at most two things",
              count - len(bad) - len(refused), "")  # fmt: skip
    yield Row("first tries whose fit is refused for a reason", len(refused), "", "",
              ", ".join(refused))  # fmt: skip
    yield Row("first tries that end in nothing", len(bad), "", "== 0", ", ".join(bad))
    yield Row("drafts of shared files silently wrong", wrong, "", "== 0")


if __name__ == "__main__":
    for one in shared_sets():
        if "".join(sys.argv[1:2]) in one.name:
            end = outcome(one, has_fit(one))
            mark = "ok " if end.is_good else "ref" if end.is_refused else "BAD"
            print(f"{mark} {one.name:<60} {end.channels:<6} {end.marks} {end.code} "
                  f"{' '.join(end.text.split())[:160]}", flush=True)  # fmt: skip
