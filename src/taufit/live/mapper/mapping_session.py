"""The file on the desk: its columns, the robot, the map so far, what it gives, the fit."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.errors import RecordingError, RobotError, TaufitError
from taufit.core.files import write_text
from taufit.core.process_cleanup import temporary_folder
from taufit.dynamics import gravity_torque
from taufit.live.mapper.gravity_check import GravityCheck, gravity_check
from taufit.live.mapper.roles import Role, page_of, roles_of, units_of
from taufit.recording import Recording, read_map, read_recordings
from taufit.recording.draft import Draft, draft_map, draft_text
from taufit.recording.quantity import QUANTITIES
from taufit.recording.read import read_table
from taufit.recording.table import Table
from taufit.robot import Robot, bundled_robots, read_robot

if TYPE_CHECKING:
    from taufit.workflow import IdentificationResult

# Points of a column's little picture.
_SPARK = 96
# Endings of robot descriptions that may be handed over; xacro files run what is in them.
DESCRIPTIONS = (".urdf", ".xml", ".yaml", ".yml")


@dataclass(slots=True)
class FitProgress:
    """A fit that runs or has run.

    Attributes:
        state: "idle", "running", "done" or "failed".
        text: The result or what went wrong.
        steps: How often it has told that it goes on.
        began, ended: By this computer's clock [s].
        model: Name of the file it was written to.
        report: The page about it.
    """

    state: str = "idle"
    text: str = ""
    steps: int = 0
    began: float = 0.0
    ended: float = 0.0
    model: str = ""
    report: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without the page."""
        until = time.monotonic() if self.state == "running" else self.ended
        return {
            "state": self.state,
            "text": self.text,
            "steps": self.steps,
            "seconds": until - self.began,
            "model": self.model,
            "report": bool(self.report),
        }


@dataclass(slots=True)
class MappingSession:
    """One recording and what its owner has said about it so far.

    Args:
        path: Of the recording.
        output: Where the map goes; an existing file is never written over.
        model: Where a fitted model goes, likewise.
        topic: Of a bag.
    """

    path: Path
    output: Path
    model: Path
    topic: str | None = None
    table: Table | None = field(init=False)
    robot: Robot | None = field(init=False, default=None)
    draft: Draft | None = field(init=False, default=None)
    page: dict[str, Any] | None = field(init=False, default=None)
    problem: str = field(init=False, default="")
    recordings: list[Recording] = field(init=False, default_factory=list)
    check: GravityCheck | None = field(init=False, default=None)
    fit: FitProgress = field(init=False, default_factory=FitProgress)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.table = read_table(self.path, topic=self.topic)
        self._drafted()

    # ---- what the owner says -------------------------------------------------------------------

    def choose_robot(self, name: str) -> None:
        """Take a bundled robot."""
        if name not in bundled_robots():
            raise RobotError(f"there is no bundled robot {name!r}.")
        self.take_robot(read_robot(name))

    def drop_robot(self, name: str, text: str) -> None:
        """Take the robot that a description says."""
        suffix = Path(name).suffix.lower()
        if suffix not in DESCRIPTIONS:
            raise RobotError(f"{name[:80]!r} is no robot: give one of {', '.join(DESCRIPTIONS)}.")
        with temporary_folder() as folder:
            path = Path(folder) / f"robot{suffix}"
            path.write_text(text, encoding="utf-8")
            try:
                robot = read_robot(path)
            except RobotError as error:
                raise RobotError(str(error).replace(str(path), Path(name).name)) from None
        self.take_robot(robot)

    def take_robot(self, robot: Robot) -> None:
        """Compare with this robot from now on."""
        with self._lock:
            self.robot = robot
            self._drafted()

    def say(self, roles: dict[int, Role], units: dict[str, str]) -> None:
        """Take the columns for what the owner says they are."""
        if self.table is None:
            raise RecordingError(f"{self.path.name} says itself what its columns are.")
        with self._lock:
            self.page = page_of(roles, units, self.table, self.page or {})
            self._read()

    # ---- what follows --------------------------------------------------------------------------

    def _drafted(self) -> None:
        """A first map from names, numbers and the robot; then what it gives."""
        self.draft, self.page, self.problem = None, None, ""
        if self.table is not None:
            robot = self.robot
            known: dict[str, Any] = {}
            if robot is not None:
                known = {"joints": robot.joints, "joint_names": robot.joint_names}
                if robot.parameters.any():
                    known["gravity"] = lambda q: gravity_torque(robot, q)
            try:
                self.draft = draft_map(self.table, **known)
            except RecordingError as error:
                self.recordings, self.check, self.problem = [], None, str(error)
                return
            self.page = dict(self.draft.page)
        self._read()

    def _read(self) -> None:
        """Read the file with the map as a command would; check it against gravity."""
        self.recordings, self.check, self.problem = [], None, ""
        try:
            how = None if self.page is None else read_map(self.page)
            self.recordings = read_recordings(self.path, column_map=how, topic=self.topic)
        except TaufitError as error:
            self.problem = str(error)
            return
        if self.robot is not None:
            self.check = gravity_check(self.robot, self.recordings[0])

    def likely_robots(self) -> list[str]:
        """Bundled robots, those that explain the recording best first."""
        names = list(bundled_robots())
        if not self.recordings:
            return names
        order = {"yes": 0, "open": 1, "no": 2}
        first = self.recordings[0]

        def rank(name: str) -> tuple[int, float, str]:
            check = gravity_check(read_robot(name), first)
            shares = [j.explained for j in check.joints if j.slope is not None]
            return order[check.verdict], -float(np.median(shares)) if shares else 0.0, name

        return sorted(names, key=rank)

    def text(self) -> str:
        """The map as YAML."""
        if self.page is None:
            return ""
        reasons = () if self.draft is None or self.page != self.draft.page else self.draft.reasons
        still_open = () if self.draft is None else self.draft.open_questions
        return draft_text(Draft(self.page, reasons, still_open), self.path.name)

    def save(self) -> Path:
        """Write the map, and give its name."""
        if self.page is None or not self.recordings:
            raise RecordingError("there is no working map to write yet.")
        path = free(self.output)
        write_text(path, self.text())
        return path

    # ---- the fit -------------------------------------------------------------------------------

    def start_fit(self) -> None:
        """Fit in a thread of its own; `fit` says how it goes."""
        with self._lock:
            if self.fit.state == "running":
                return
            if self.robot is None:
                raise RecordingError("choose the robot first.")
            if not self.recordings:
                raise RecordingError("there is no working map yet.")
            self.fit = FitProgress("running", began=time.monotonic())
            robot, recordings = self.robot, list(self.recordings)
        threading.Thread(target=self._fit, args=(robot, recordings, self.fit), daemon=True).start()

    def _fit(self, robot: Robot, recordings: list[Recording], fit: FitProgress) -> None:
        from taufit.model.model_file import write_model
        from taufit.report import fit_page
        from taufit.workflow import identify

        def goes_on() -> None:
            fit.steps += 1

        try:
            done = identify(robot, recordings, holdout="30%", callback=goes_on)
            path = free(self.model)
            write_model(done.model, path)
            fit.model, fit.report = str(path), fit_page(done)
            fit.text, state = _result(done), "done"
        except TaufitError as error:
            fit.text, state = str(error), "failed"
        except MemoryError:
            fit.text, state = "this needs more memory than there is.", "failed"
        fit.ended = time.monotonic()
        fit.state = state

    # ---- for the page --------------------------------------------------------------------------

    def columns(self) -> list[dict[str, Any]]:
        """Name, range and a little picture of every column."""
        if self.table is None:
            return []
        values, labels = self.table.values, self.table.labels
        return [_picture(label, values[:, i]) for i, label in enumerate(labels)]

    def state(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        with self._lock:
            page = self.page
            roles, units = {}, {}
            if page is not None and self.table is not None:
                try:
                    roles = {str(i): list(r) for i, r in roles_of(page, self.table).items()}
                    units = units_of(page)
                except TaufitError as error:
                    self.problem = self.problem or str(error)
            first = self.recordings[0] if self.recordings else None
            return {
                "robot": None if self.robot is None else self.robot.name,
                "robot_joints": None if self.robot is None else self.robot.joints,
                "roles": roles,
                "units": units,
                "choices": {name: list(QUANTITIES[name].units) for name in units},
                "map": self.text(),
                "reasons": [] if self.draft is None else list(self.draft.reasons),
                "open": [] if self.draft is None else list(self.draft.open_questions),
                "problem": self.problem,
                "check": None if self.check is None else self.check.to_dict(),
                "read": None
                if first is None
                else {
                    "runs": len(self.recordings),
                    "samples": sum(len(one) for one in self.recordings),
                    "joints": first.joints,
                    "unit": first.signal_unit,
                    "findings": list(
                        dict.fromkeys(
                            str(f)
                            for one in self.recordings
                            for f in one.findings
                            if f.severity != "info"
                        )
                    )[:12],
                },
                "fit": self.fit.to_dict(),
            }


def _result(done: IdentificationResult) -> str:
    """A fit in one sentence."""
    score = done.holdout_scores[0] if done.holdout_scores else done.training_score
    where = (
        "on the last 30 %, which the fit has not seen" if done.holdout_scores else "on the training"
    )
    return f"residuals are {100 * score.mean_nrmse:.1f} % of the torque {where}."


def free(path: Path) -> Path:
    """The path, or the next one with a number where it exists already."""
    for number in range(1, 10_000):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        if not name.exists():
            return name
    raise RecordingError(f"there are too many files called {path.stem}-N: remove some.")


def _picture(label: str, values: Any) -> dict[str, Any]:
    fine = values[np.isfinite(values)]
    fine = fine[np.abs(fine) < 1e30]
    if not len(fine):
        return {"label": label, "low": None, "high": None, "spark": []}
    edges = np.linspace(0, len(fine), min(_SPARK, len(fine)) + 1).astype(int)
    low = np.minimum.reduceat(fine, edges[:-1])
    high = np.maximum.reduceat(fine, edges[:-1])
    # Without the odd number that would flatten everything else.
    bottom, top = np.percentile(fine, [0.5, 99.5])
    spread = max(float(top - bottom), 1e-12)
    line = np.clip(np.ravel(np.column_stack([low, high])), bottom - spread, top + spread)
    return {
        "label": label,
        "low": float(fine.min()),
        "high": float(fine.max()),
        "spark": [round(float(x), 6) for x in line],
    }
