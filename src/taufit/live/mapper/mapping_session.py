"""State of the column mapper: file, robot, column map, check and fit."""

from __future__ import annotations

import threading
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, RobotError, TaufitError
from taufit.core.files import write_text
from taufit.core.process_cleanup import temporary_folder
from taufit.live.mapper.column_roles import Role, map_from_roles, roles_from_map, units_from_map
from taufit.live.mapper.gravity_check import GravityCheck, gravity_check
from taufit.recording import Recording, read_map, read_recordings
from taufit.recording.draft import Draft, draft_text
from taufit.recording.map.parser import UNKNOWN
from taufit.recording.quantity import QUANTITIES
from taufit.recording.read import read_table
from taufit.recording.table import Table
from taufit.robot import Robot, bundled_robots, read_robot
from taufit.workflow.draft import draft_files, draft_with_robot

if TYPE_CHECKING:
    from taufit.workflow import IdentificationResult

# Points of the preview of a column.
_PREVIEW_POINTS = 96
# Suffixes of accepted robot descriptions; xacro files would execute code.
ROBOT_SUFFIXES = (".urdf", ".xml", ".yaml", ".yml")


@dataclass(slots=True)
class FitProgress:
    """Progress of a fit.

    Attributes:
        state: "idle", "running", "done" or "failed".
        text: Result or error.
        steps: Number of progress calls.
        start_time, end_time: Monotonic times [s].
        model: Name of the model file.
        report: HTML report.
    """

    state: str = "idle"
    text: str = ""
    steps: int = 0
    start_time: float = 0.0
    end_time: float = 0.0
    model: str = ""
    report: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Progress for JSON, without the report."""
        end = time.monotonic() if self.state == "running" else self.end_time
        return {
            "state": self.state,
            "text": self.text,
            "steps": self.steps,
            "seconds": end - self.start_time,
            "model": self.model,
            "report": bool(self.report),
        }


@dataclass(slots=True)
class MappingSession:
    """One recording with the information given by the user.

    Args:
        path: Recording; the position file of a run in several files.
        output: Column map to write; existing files are never overwritten.
        model: Model file to write, likewise.
        topic: Topic of a bag.
        companions: Further files of the run.
    """

    path: Path
    output: Path
    model: Path
    topic: str | None = None
    companions: tuple[Path, ...] = ()
    table: Table | None = field(init=False)
    robot: Robot | None = field(init=False, default=None)
    draft: Draft | None = field(init=False, default=None)
    page: dict[str, Any] | None = field(init=False, default=None)
    problem: str = field(init=False, default="")
    recordings: list[Recording] = field(init=False, default_factory=list)
    check: GravityCheck | None = field(init=False, default=None)
    fit: FitProgress = field(init=False, default_factory=FitProgress)
    rate_hz: float | None = field(init=False, default=None)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.companions:
            files = draft_files((self.path, *self.companions), topic=self.topic)
            self.table, (self.path, *_) = files.table, files.paths
        else:
            self.table = read_table(self.path, topic=self.topic)
        self._make_draft()

    # ---- input of the user ---------------------------------------------------------------------

    def select_bundled_robot(self, name: str) -> None:
        """Select a bundled robot."""
        if name not in bundled_robots():
            raise RobotError(f"there is no bundled robot {name!r}.")
        self.set_robot(read_robot(name))

    def load_robot(self, name: str, text: str) -> None:
        """Load a robot from a description."""
        suffix = Path(name).suffix.lower()
        if suffix not in ROBOT_SUFFIXES:
            raise RobotError(f"{name[:80]!r} is no robot: give one of {', '.join(ROBOT_SUFFIXES)}.")
        with temporary_folder() as folder:
            path = Path(folder) / f"robot{suffix}"
            path.write_text(text, encoding="utf-8")
            try:
                robot = read_robot(path)
            except RobotError as error:
                raise RobotError(str(error).replace(str(path), Path(name).name)) from None
        self.set_robot(robot)

    def set_robot(self, robot: Robot) -> None:
        """Set the robot and draft the map again."""
        with self._lock:
            self.robot = robot
            self._make_draft()

    def set_columns(self, roles: dict[int, Role], units: dict[str, str]) -> None:
        """Set role and unit of the columns."""
        if self.table is None:
            raise RecordingError(f"{self.path.name} needs no map: its columns are recognised.")
        with self._lock:
            self.page = map_from_roles(roles, units, self.table, self.page or {})
            self._read()

    def set_rate(self, rate_hz: float) -> None:
        """Set the sampling rate [Hz] of a recording without time stamps."""
        if self.page is None or "rate_hz" not in self.page:
            raise RecordingError(f"{self.path.name} has time stamps: its rate is known.")
        with self._lock:
            self.rate_hz = rate_hz
            self.page = {**self.page, "rate_hz": rate_hz}
            self._read()

    # ---- map and check -------------------------------------------------------------------------

    def _make_draft(self) -> None:
        """Draft a map from names, numbers and the robot, and read the file with it."""
        self.draft, self.page, self.problem = None, None, ""
        if self.table is not None:
            try:
                self.draft = draft_with_robot(self.table, self.robot)
            except RecordingError as error:
                self.recordings, self.check, self.problem = [], None, str(error)
                return
            self.page = dict(self.draft.page)
            if self.rate_hz is not None and "rate_hz" in self.page:
                self.page["rate_hz"] = self.rate_hz
        self._read()

    def _read(self) -> None:
        """Read the file with the map as a command would; compare it with gravity."""
        self.recordings, self.check, self.problem = [], None, ""
        if self.page is not None and self.page.get("rate_hz") == UNKNOWN:
            advice = dict(self.draft.unknowns).get("rate_hz", "") if self.draft else ""
            self.problem = f"The file has no time stamps: enter its rate. {advice}".rstrip()
            return
        try:
            column_map = None if self.page is None else read_map(self.page)
            self.recordings = read_recordings(self.path, column_map=column_map, topic=self.topic)
        except TaufitError as error:
            self.problem = str(error)
            return
        if self.robot is not None:
            self.check = gravity_check(self.robot, self.recordings[0])

    def likely_robots(self) -> list[str]:
        """Bundled robots, those that agree best with the recording first."""
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
        """Column map as YAML."""
        if self.page is None:
            return ""
        reasons = () if self.draft is None or self.page != self.draft.page else self.draft.reasons
        open_questions = () if self.draft is None else self.draft.open_questions
        return draft_text(Draft(self.page, reasons, open_questions), self.path.name)

    def save(self) -> Path:
        """Write the map and return its path."""
        if self.page is None or not self.recordings:
            raise RecordingError("there is no working map to write yet.")
        path = next_free_path(self.output)
        write_text(path, self.text())
        return path

    # ---- the fit -------------------------------------------------------------------------------

    def start_fit(self) -> None:
        """Start a fit in its own thread; see `fit`."""
        with self._lock:
            if self.fit.state == "running":
                return
            if self.robot is None:
                raise RecordingError("choose the robot first.")
            if not self.recordings:
                raise RecordingError("there is no working map yet.")
            self.fit = FitProgress("running", start_time=time.monotonic())
            robot, recordings = self.robot, list(self.recordings)
        threading.Thread(target=self._fit, args=(robot, recordings, self.fit), daemon=True).start()

    def _fit(self, robot: Robot, recordings: list[Recording], fit: FitProgress) -> None:
        from taufit.model.model_file import write_model
        from taufit.report import fit_page
        from taufit.workflow import identify

        def count_step() -> None:
            fit.steps += 1

        try:
            result = identify(robot, recordings, holdout="30%", callback=count_step)
            path = next_free_path(self.model)
            write_model(result.model, path)
            fit.model, fit.report = str(path), fit_page(result)
            fit.text, state = _describe_result(result), "done"
        except TaufitError as error:
            fit.text, state = str(error), "failed"
        except MemoryError:
            fit.text, state = "this needs more memory than there is.", "failed"
        fit.end_time = time.monotonic()
        fit.state = state

    # ---- for the page --------------------------------------------------------------------------

    def columns(self) -> list[dict[str, Any]]:
        """Name, range and preview of every column."""
        if self.table is None:
            return []
        values, labels = self.table.values, self.table.labels
        return [_column_preview(label, values[:, i]) for i, label in enumerate(labels)]

    def state(self) -> dict[str, Any]:
        """All variable data for JSON."""
        with self._lock:
            page = self.page
            roles, units = {}, {}
            if page is not None and self.table is not None:
                try:
                    roles = {str(i): list(r) for i, r in roles_from_map(page, self.table).items()}
                    units = units_from_map(page)
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
                "needs_rate": page is not None and "rate_hz" in page,
                "rate_hz": self.rate_hz,
                "check": None if self.check is None else self.check.to_dict(),
                "read": None
                if first is None
                else {
                    "runs": len(self.recordings),
                    "samples": sum(len(recording) for recording in self.recordings),
                    "joints": first.joints,
                    "unit": first.signal_unit,
                    "findings": list(
                        dict.fromkeys(
                            str(f)
                            for recording in self.recordings
                            for f in recording.findings
                            if f.severity != "info"
                        )
                    )[:12],
                },
                "fit": self.fit.to_dict(),
            }


def _describe_result(result: IdentificationResult) -> str:
    """Result of a fit in one sentence."""
    score = result.holdout_scores[0] if result.holdout_scores else result.training_score
    data_label = (
        "on the last 30 %, which the fit has not seen"
        if result.holdout_scores
        else "on the training"
    )
    return f"residuals are {100 * score.mean_nrmse:.1f} % of the torque {data_label}."


def next_free_path(path: Path) -> Path:
    """The path, or the next one with a number if it exists."""
    for number in range(1, 10_000):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        if not name.exists():
            return name
    raise RecordingError(f"there are too many files called {path.stem}-N: remove some.")


def _column_preview(label: str, values: Any) -> dict[str, Any]:
    finite = values[np.isfinite(values)]
    finite = finite[np.abs(finite) < 1e30]
    if not len(finite):
        return {"label": label, "low": None, "high": None, "spark": []}
    edges = np.linspace(0, len(finite), min(_PREVIEW_POINTS, len(finite)) + 1).astype(int)
    low = np.minimum.reduceat(finite, edges[:-1])
    high = np.maximum.reduceat(finite, edges[:-1])
    # Limit single outliers, which would flatten the preview.
    bottom, top = np.percentile(finite, [0.5, 99.5])
    value_range = max(float(top - bottom), 1e-12)
    line = np.clip(np.ravel(np.column_stack([low, high])), bottom - value_range, top + value_range)
    return {
        "label": label,
        "low": float(finite.min()),
        "high": float(finite.max()),
        "spark": [round(float(x), 6) for x in line],
    }
