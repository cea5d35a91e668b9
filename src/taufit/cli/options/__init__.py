"""Options that verbs share, in groups: what each is called, what it means, what it becomes.

A group is a frozen dataclass whose fields are typer options; a verb takes it as one parameter and
`cli/parts/spread.py` puts its fields on the command line. Values that are not what an option takes
are wrong usage (exit code 2), and so is everything raised through `wrong` here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from taufit.cli.common import reading

if TYPE_CHECKING:
    from taufit.recording import Recording
    from taufit.robot import Robot
    from taufit.validation import AcceptanceLimits

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Report = Annotated[
    Path | None, typer.Option("--report", help="One HTML page about it.", metavar="FILE.html")
]
Rate = Annotated[
    float | None, typer.Option(help="Samples per second; the controller's own.", min=1)
]
Ports = Annotated[
    str, typer.Option(help="Of a virtual controller: rtde=N,secondary=N,dashboard=N.")
]
RobotName = Annotated[
    str, typer.Argument(help="A bundled name, .urdf, .xacro or .yaml.", metavar="ROBOT")
]
Model = Annotated[Path, typer.Argument(help="What `taufit fit` wrote.", metavar="MODEL")]
AllowRepeats = Annotated[
    bool,
    typer.Option("--allow-repeats", help="Count files with equal contents as often as they come."),
]
# For verbs that judge a fitted model: None conditions as the training data were.
Cutoff = Annotated[
    float | None,
    typer.Option(
        "--cutoff-hz", help="Low-pass; by default that of the training data.", metavar="HZ"
    ),
]


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """How recordings are read."""

    map: Annotated[
        Path | None, typer.Option("--map", help="YAML that says what the columns are.")
    ] = None
    run: Annotated[
        int | None, typer.Option(help="One run of files that hold several.", metavar="K")
    ] = None
    topic: Annotated[
        str | None, typer.Option(help="Joint states to read from a bag.", metavar="NAME")
    ] = None
    effort: Annotated[
        str | None,
        typer.Option(
            help="What the torque channel is: torque (N m), current (A), torque_without_gravity or "
            "raw. Bags need it.",
            metavar="KIND",
        ),
    ] = None
    start: Annotated[
        float | None, typer.Option("--from", help="Only what was recorded after this.", metavar="S")
    ] = None
    end: Annotated[
        float | None, typer.Option("--to", help="Only what was recorded before this.", metavar="S")
    ] = None

    def read(self, path: Path) -> list[Recording]:
        """Every run of a file, or the one that was asked for, each with the file's name."""
        from dataclasses import replace

        # Refusals and warnings name the file even where it does not name itself.
        return [replace(one, meta={"file": path.name, **one.meta}) for one in self.runs(path)]

    __call__ = read

    def runs(self, path: Path, payload: float | None = None) -> list[Recording]:
        """Every run of a file, or the one that was asked for, as the file says."""
        from taufit.recording import read_recording, read_recordings

        if self.effort is not None:
            from taufit.recording.readers.from_bag import EFFORTS

            require_choice(self.effort, EFFORTS, "--effort")
        how: dict[str, Any] = {
            "column_map": self.map,
            "topic": self.topic,
            "torque_kind": self.effort,
        }
        how |= {"payload": payload, "start": self.start, "end": self.end}
        with reading(path):
            if self.run is not None:
                return [read_recording(path, run=self.run, **how)]
            return read_recordings(path, **how)

    def rows(self, path: Path, first: int, last: int) -> list[Recording]:
        """Some rows of a Parquet file, for one that is too long to be read at once."""
        from taufit.recording import read_recordings

        return read_recordings(
            path, column_map=self.map, torque_kind=self.effort, rows=(first, last)
        )

    @property
    def settings(self) -> tuple[Any, ...]:
        """What decides, beside its content, what is read from a file."""
        from taufit.recording.column_map import read_map

        how = None if self.map is None else read_map(self.map)
        return how, self.run, self.topic, self.effort, self.start, self.end

    @property
    def reads_whole_files(self) -> bool:
        """Whether files are read as they are, no time or run of them chosen."""
        return self.start is None and self.end is None and self.run is None

    def read_one(self, path: Path) -> Recording:
        """The only run of a file; a file of several needs --run."""
        from taufit.core.errors import RecordingError

        found = self.read(path)
        if len(found) != 1:
            raise RecordingError(
                f"{path} holds {len(found)} runs; choose one with --run K (0 is the first)."
            )
        return found[0]


@dataclass(frozen=True, slots=True)
class RobotOptions:
    """Which part of a description is the arm, and how it is mounted."""

    mounting: Annotated[
        str | None, typer.Option(help="ground, ceiling, wall or ROLL,PITCH,YAW in degrees.")
    ] = None
    base: Annotated[str | None, typer.Option(help="Link of a URDF to start the chain at.")] = None
    tip: Annotated[str | None, typer.Option(help="Link of a URDF to end the chain at.")] = None

    def read(self, name: str, recorded_mounting: str | Sequence[float] | None = None) -> Robot:
        """The arm; without --mounting as the recording says, or else its description."""
        from taufit.robot import read_robot

        mounting = recorded_mounting
        if self.mounting is not None:
            mounting = mounting_given(self.mounting)
        return read_robot(name, base=self.base, tip=self.tip, mounting=mounting)


@dataclass(frozen=True, slots=True)
class AcceptanceOptions:
    """What a model must reach; the exit code is 1 where it does not."""

    max_mean_nrmse: Annotated[
        float | None, typer.Option(help="FAIL above this mean nrmse (default 0.25).")
    ] = None
    max_nrmse: Annotated[
        float | None, typer.Option(help="FAIL with any joint's nrmse above this.")
    ] = None
    max_rmse: Annotated[
        str | None, typer.Option(help="FAIL above this RMSE [N m]; one, or one per joint: A,B,..")
    ] = None
    min_correlation: Annotated[
        float | None, typer.Option(help="FAIL with any joint's correlation below this.")
    ] = None

    def limits(self) -> AcceptanceLimits:
        """As the library takes them."""
        from taufit.core.errors import TaufitError
        from taufit.validation import AcceptanceLimits

        rmse = None if self.max_rmse is None else numbers(self.max_rmse, "--max-rmse")
        try:
            return AcceptanceLimits(self.max_mean_nrmse, self.max_nrmse, rmse, self.min_correlation)
        except TaufitError as error:
            usage_error("--max-... and --min-...", str(error))


def usage_error(option: str, message: str) -> NoReturn:
    """Refuse the value of an option: wrong usage, exit code 2."""
    raise typer.BadParameter(message, param_hint=option)


def require_choice(value: str, known: Iterable[str], option: str) -> str:
    """`value`, which must be among the known names."""
    known = list(known)
    if value not in known:
        import difflib

        close = difflib.get_close_matches(value, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        usage_error(option, f"{value!r} is not known; use {', '.join(known)}.{hint}")
    return value


def numbers(text: str, option: str, count: int | None = None) -> tuple[float, ...]:
    """Finite numbers with commas between, as many as `count` says."""
    from math import isfinite

    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(map(isfinite, values)) or count not in (None, len(values)):
        expected = "comma-separated numbers" if count is None else f"{count} numbers, as A,B,.."
        usage_error(option, f"expected {expected}, got {text!r}.")
    return values


def cutoff_given(value: float | None) -> float | None:
    """A cut-off frequency [Hz], or None for that of the training data."""
    if value is not None and not 0.0 < value < 1e6:
        usage_error("--cutoff-hz", f"must be a positive frequency in Hz, got {value:g}.")
    return value


def mounting_given(text: str) -> str:
    """A mounting by name or by angles."""
    from taufit.core.errors import RobotError
    from taufit.robot.mounting import parse_mounting

    try:
        parse_mounting(text)
    except RobotError as error:
        usage_error("--mounting", str(error))
    return text
