"""Options shared by commands, in groups: name, meaning and conversion.

A group is a frozen dataclass whose fields are typer options; a command takes it as one parameter
and `cli/options/option_groups.py` puts its fields on the command line. Invalid values are wrong
usage (exit code 2), as is everything raised through `usage_error`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from taufit.cli.common import show_reading
from taufit.cli.options.option_groups import FormerName
from taufit.core.dataclasses import dataclass
from taufit.core.endings import RECORDING_ENDINGS, ROBOT_ENDINGS, ending

if TYPE_CHECKING:
    from taufit.model import FittedModel
    from taufit.recording import Recording
    from taufit.robot import Robot
    from taufit.validation import AcceptanceLimits

# Endings of files that taufit or its users' tools know; others may be anything.
_KNOWN_ENDINGS = (
    *RECORDING_ENDINGS, *ROBOT_ENDINGS, ".json", ".c", ".h", ".fmu", ".html", ".htm", ".pdf",
    ".docx", ".png", ".svg", ".md", ".sdf",
)  # fmt: skip

HTML_ENDINGS = (".html", ".htm")
HTML_REMEDY = "Print the page to a PDF file in the browser if you need one."

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object only.")]
Report = Annotated[
    Path | None, typer.Option("--report", help="HTML report to write.", metavar="FILE.html")
]
Rate = Annotated[
    float | None, typer.Option(help="Sampling rate [Hz]; default that of the controller.", min=1)
]
Ports = Annotated[
    str, typer.Option(help="Ports of a virtual controller: rtde=N,secondary=N,dashboard=N.")
]
RobotName = Annotated[
    str, typer.Argument(help="Bundled name, .urdf, .xacro, .xml (MJCF) or .yaml.", metavar="ROBOT")
]
Model = Annotated[Path, typer.Argument(help="Model file of `taufit fit`.", metavar="MODEL")]
KnownPayload = Annotated[
    str | None,
    typer.Option(
        "--payload",
        help="Known payload [kg, m in the last link's frame], or file of `payload -o`.",
        metavar="M,CX,CY,CZ|FILE",
    ),
]
Drift = Annotated[
    Path | None,
    typer.Option(
        "--drift",
        help="Friction tracked last, kept beside the model by `check --track`.",
        metavar="FILE",
    ),
]
AllowRepeats = Annotated[
    bool,
    typer.Option("--allow-repeats", help="Use files with equal contents more than once."),
]
# For commands that test a fitted model: None means the conditioning of the training data.
Cutoff = Annotated[
    float | None,
    typer.Option(
        "--cutoff-hz",
        help="Cut-off of the zero-phase low-pass [Hz]; default that of the training data.",
        metavar="HZ",
    ),
]


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """Recording: how files are read."""

    map: Annotated[
        Path | None, typer.Option("--map", help="Column map (YAML).", metavar="FILE")
    ] = None
    run: Annotated[
        int | None, typer.Option(help="Run K of files with several runs, from 0.", metavar="K")
    ] = None
    topic: Annotated[
        str | None, typer.Option(help="Joint state topic of a bag.", metavar="NAME")
    ] = None
    torque_kind: Annotated[
        str | None,
        typer.Option(
            help="Torque channel: torque [N m], current [A], torque_without_gravity or raw. "
            "Required for bags.",
            metavar="KIND",
        ),
        FormerName("--effort"),
    ] = None
    start: Annotated[
        float | None,
        typer.Option("--from", help="Start of the time interval used [s].", metavar="S"),
    ] = None
    end: Annotated[
        float | None, typer.Option("--to", help="End of the time interval used [s].", metavar="S")
    ] = None

    def read(self, path: Path) -> list[Recording]:
        """Read every run of a file, or the requested one, with the file's name as metadata."""
        from dataclasses import replace

        # Errors and warnings name the file even if it does not contain its name.
        return [
            replace(recording, meta={"file": path.name, **recording.meta})
            for recording in self.runs(path)
        ]

    __call__ = read

    def runs(self, path: Path, payload: float | None = None) -> list[Recording]:
        """Read every run of a file, or the requested one."""
        from taufit.recording import read_recording, read_recordings

        if self.torque_kind is not None:
            from taufit.recording.readers.from_bag import TORQUE_KINDS

            require_choice(self.torque_kind, TORQUE_KINDS, "--torque-kind")
        read_options: dict[str, Any] = {
            "column_map": self.map,
            "topic": self.topic,
            "torque_kind": self.torque_kind,
        }
        read_options |= {"payload": payload, "start": self.start, "end": self.end}
        with show_reading(path):
            if self.run is not None:
                return [read_recording(path, run=self.run, **read_options)]
            return read_recordings(path, **read_options)

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Read some rows of a Parquet file, for files too long to be read at once."""
        from taufit.recording import read_recordings

        return read_recordings(
            path, column_map=self.map, torque_kind=self.torque_kind, rows=(first, last)
        )

    @property
    def settings(self) -> tuple[Any, ...]:
        """Settings that determine, with the file's content, the result of reading it."""
        from taufit.recording.column_map import read_map

        column_map = None if self.map is None else read_map(self.map)
        return column_map, self.run, self.topic, self.torque_kind, self.start, self.end

    @property
    def reads_whole_files(self) -> bool:
        """Whether files are read completely, without time interval or run."""
        return self.start is None and self.end is None and self.run is None

    def read_single(self, path: Path) -> Recording:
        """Read the only run of a file; a file with several runs needs --run."""
        from taufit.core.errors import RecordingError

        recordings = self.read(path)
        if len(recordings) != 1:
            raise RecordingError(
                f"{path} holds {len(recordings)} runs; choose one with --run K (0 is the first)."
            )
        return recordings[0]


@dataclass(frozen=True, slots=True)
class RobotOptions:
    """Robot: kinematic chain of a description, and mounting."""

    mounting: Annotated[
        str | None, typer.Option(help="Mounting: ground, ceiling, wall or ROLL,PITCH,YAW [deg].")
    ] = None
    base: Annotated[str | None, typer.Option(help="First link of the URDF chain.")] = None
    tip: Annotated[str | None, typer.Option(help="Last link of the URDF chain.")] = None
    hold: Annotated[
        str | None,
        typer.Option(help="Joints that stand still [rad or m].", metavar="NAME=POSITION,.."),
    ] = None

    joints: Annotated[
        str | None,
        typer.Option(help="Recorded joints of a whole robot's URDF.", metavar="NAME,.."),
    ] = None

    def select_part(
        self, name: str, paths: Sequence[Path], topic: str | None = None
    ) -> RobotOptions:
        """Options for the part of a whole robot's URDF that recordings name, if none is given."""
        if self.base or self.tip or self.hold or self.joints:
            return self
        if Path(name).suffix.lower() not in (".urdf", ".xacro") or not Path(name).is_file():
            return self
        from taufit.cli.parts.robot_part import options_of_part

        return replace(self, **options_of_part(name, paths, topic))

    def read(self, name: str, recorded_mounting: str | Sequence[float] | None = None) -> Robot:
        """Read the robot; without --mounting, that of the recording or of the description."""
        from taufit.robot import read_robot

        mounting = recorded_mounting
        if self.mounting is not None:
            mounting = require_mounting(self.mounting)
        held = None
        if self.hold is not None:
            from taufit.robot.held_joints import parse_held

            held = parse_held(self.hold)
        joints = () if self.joints is None else tuple(self.joints.split(","))
        return read_robot(
            name, base=self.base, tip=self.tip, mounting=mounting, hold=held, joints=joints
        )


@dataclass(frozen=True, slots=True)
class AcceptanceOptions:
    """Acceptance limits; the exit code is 1 if the model does not meet them."""

    max_mean_nrmse: Annotated[
        float | None, typer.Option(help="FAIL if the mean nrmse is above this (default 0.25).")
    ] = None
    max_nrmse: Annotated[
        float | None, typer.Option(help="FAIL if any joint's nrmse is above this.")
    ] = None
    max_rmse: Annotated[
        str | None,
        typer.Option(help="FAIL if the RMSE is above this [N m]; one value, or A,B,.. per joint."),
    ] = None
    min_correlation: Annotated[
        float | None, typer.Option(help="FAIL if any joint's correlation is below this.")
    ] = None

    def limits(self) -> AcceptanceLimits:
        """Convert to acceptance limits."""
        from taufit.core.errors import TaufitError
        from taufit.validation import AcceptanceLimits

        rmse = None if self.max_rmse is None else parse_numbers(self.max_rmse, "--max-rmse")
        try:
            return AcceptanceLimits(self.max_mean_nrmse, self.max_nrmse, rmse, self.min_correlation)
        except TaufitError as error:
            usage_error("--max-... and --min-...", str(error))


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Model of the robot, with the payload it carries."""

    model: Model
    payload: KnownPayload = None
    drift: Drift = None

    def read(self, *, with_drift: bool = True) -> FittedModel:
        """Model of the file, with the friction tracked last and the known payload."""
        from taufit.model.model_file import read_model
        from taufit.model.payload import parse_payload

        model = read_model(self.model)
        if self.drift is not None and with_drift:
            from taufit.health.drift import apply_drift, read_drift

            model = apply_drift(model, read_drift(self.drift)[0])
        return model if self.payload is None else model.with_payload(parse_payload(self.payload))


def usage_error(option: str, message: str) -> NoReturn:
    """Raise wrong usage for an option's value (exit code 2)."""
    raise typer.BadParameter(message, param_hint=option)


def require_ending(path: Path | None, endings: Sequence[str], option: str, remedy: str) -> None:
    """Wrong usage if a file to write has the ending of another format; none at all is accepted."""
    if path is not None and ending(path) in _KNOWN_ENDINGS and ending(path) not in endings:
        usage_error(option, f"{path}: the file ends in {' or '.join(endings)}. {remedy}")


def require_choice(value: str, choices: Iterable[str], option: str) -> str:
    """Return `value`; wrong usage if it is not among the choices."""
    choices = list(choices)
    if value not in choices:
        import difflib

        similar = difflib.get_close_matches(value.lower(), choices, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        usage_error(option, f"{value!r} is not known; use {', '.join(choices)}.{hint}")
    return value


def parse_numbers(text: str, option: str, count: int | None = None) -> tuple[float, ...]:
    """Parse finite comma-separated numbers, `count` of them if given."""
    from math import isfinite

    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(map(isfinite, values)) or count not in (None, len(values)):
        expected = "comma-separated numbers" if count is None else f"{count} numbers, as A,B,.."
        usage_error(option, f"expected {expected}, got {text!r}.")
    return values


def require_cutoff(value: float | None) -> float | None:
    """Return a cut-off frequency [Hz] or None; wrong usage if invalid."""
    if value is not None and not 0.0 < value < 1e6:
        usage_error("--cutoff-hz", f"must be a positive frequency in Hz, got {value:g}.")
    return value


def require_mounting(text: str) -> str:
    """Return a mounting by name or angles; wrong usage if invalid."""
    from taufit.core.errors import RobotError
    from taufit.robot.mounting import parse_mounting

    try:
        parse_mounting(text)
    except RobotError as error:
        usage_error("--mounting", str(error))
    return text
