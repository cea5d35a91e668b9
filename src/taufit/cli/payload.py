"""`taufit payload`: payload estimation from a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    Drift,
    Json,
    LoadedModel,
    RecordingOptions,
    Report,
    parse_numbers,
    require_choice,
    usage_error,
)
from taufit.cli.parts.hand_guiding import GuidingOptions, show_force
from taufit.cli.parts.next_step import next_step
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from taufit.model import FittedModel
    from taufit.payload import PayloadRun, PayloadSettings
    from taufit.robot import Robot


# Width of the interval of a first moment that the motion does not show [kg m].
_UNSEEN_MOMENT = 1.0


@dataclass(frozen=True, slots=True)
class SettingOptions:
    """Method, prior knowledge of payload and drives, and required accuracy."""

    method: Annotated[
        str,
        typer.Option(
            help="Method: filter, direct, difference, printed, khalil or static.", metavar="NAME"
        ),
    ] = "filter"
    box: Annotated[
        str | None, typer.Option(help="Outer size of the payload [m].", metavar="X,Y,Z")
    ] = None
    density: Annotated[
        float | None, typer.Option(help="Density of the payload [kg/m^3].", metavar="RHO")
    ] = None
    accuracy: Annotated[
        str,
        typer.Option(
            help="Required standard deviation of mass [%] and centre of mass [mm].", metavar="%,MM"
        ),
    ] = "1,5"
    gain_std: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the drive gains [%].", metavar="PERCENT"),
    ] = None
    torque_signs: Annotated[
        str,
        typer.Option(
            help="Torque signs: recorded, or unknown if only magnitudes are recorded; they are "
            "then recovered with one payload throughout.",
            metavar="WORD",
        ),
    ] = "recorded"
    at: Annotated[
        str | None,
        typer.Option(help="Tip, or link of a tree, that carries the payload.", metavar="TIP"),
    ] = None
    place: Annotated[
        str | None,
        typer.Option(
            help="Centre of mass in the link's frame, and its standard deviation [m].",
            metavar="X,Y,Z,STD",
        ),
    ] = None
    template: Annotated[
        list[Path] | None,
        typer.Option(
            help="Recording of the same motion without payload, repeatable; model errors cancel. "
            "Several are averaged and give the noise.",
            metavar="FILE",
        ),
    ] = None

    drift: Drift = None

    def settings(self) -> PayloadSettings:
        """Convert to payload settings."""
        from taufit.payload import PayloadSettings

        mass, centre = _positive_numbers(self.accuracy, 2, "--accuracy")
        payload_settings = PayloadSettings(
            mass_accuracy=mass / 100.0,
            com_accuracy=centre / 1000.0,
            density=self.density,
            box=None if self.box is None else _box(self.box),
        )
        if self.place is not None:
            x, y, z, std = parse_numbers(self.place, "--place", 4)
            if not std > 0.0:
                usage_error("--place", f"the standard deviation must be positive, got {std:g} m.")
            payload_settings = replace(payload_settings, place=(x, y, z), com_std=std)
        return (
            payload_settings
            if self.gain_std is None
            else replace(payload_settings, gain_std=self.gain_std / 100.0)
        )


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Playback of the recording."""

    replay: Annotated[
        bool, typer.Option("--replay", help="Play at the recorded rate, with a live display.")
    ] = False
    speed: Annotated[float, typer.Option(help="Speed of the replay; 1: real time.")] = 1.0


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Files to write."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Payload file to write, for --payload of other commands.",
            metavar="FILE.json",
        ),
    ] = None
    report: Report = None


def command(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model of the robot without payload, from `taufit fit`.", metavar="MODEL"
        ),
    ],
    recording: Annotated[
        Path,
        typer.Argument(help="Recording of the moving robot with payload.", metavar="RECORDING"),
    ],
    source: RecordingOptions,
    settings: SettingOptions,
    pace: ReplayOptions,
    hand: GuidingOptions,
    files: OutputOptions,
    as_json: Json = False,
) -> None:
    """Estimate mass, centre of mass and inertia of the payload, with 95 % intervals.

    The model is that of the robot without payload (a permanent tool included). Any motion is
    suitable in which the loaded joints move in both directions; the result states the time from
    which it is ready. Uncertainty of drive gains and model and changes of friction widen the
    interval; the error budget gives their shares.

    Next: enter the printed line into the controller, or plan a better motion with
    `taufit design ROBOT --kind payload`.
    """
    from time import process_time

    from taufit.cli.parts.servo_verbs import payload_servo
    from taufit.model.accuracy_statement import accuracy_to_dict
    from taufit.payload import METHODS, identify_payload
    from taufit.servo.model import is_servo_file

    started = process_time()
    if is_servo_file(model):
        payload_servo(model, recording, source, as_json)
        return
    method = require_choice(settings.method, METHODS, "--method")
    if not pace.speed > 0.0:
        usage_error("--speed", f"must be positive, got {pace.speed:g}.")
    payload_settings = settings.settings()
    hand.names  # noqa: B018 - wrong usage comes first
    fitted = LoadedModel(model, drift=settings.drift).read()
    if settings.at is not None:
        fitted = fitted.with_tip(settings.at)
    loaded_recording = source.read_single(recording)
    if (
        require_choice(settings.torque_signs, ("recorded", "unknown"), "--torque-signs")
        == "unknown"
    ):
        from taufit.signs.samples import without_signs

        loaded_recording = without_signs(loaded_recording)
    template_options = replace(source, run=None)
    templates = [template_options.read_single(path) for path in settings.template or ()] or None
    if pace.replay:
        with _LiveDisplay(pace.speed, as_json) as callback:
            result = identify_payload(
                fitted,
                loaded_recording,
                method=method,
                settings=payload_settings,
                template=templates,
                callback=callback,
            )
    else:
        with progress("payload") as bar:
            task = bar.add_task("estimating", total=float(len(loaded_recording.time)))
            result = identify_payload(
                fitted,
                loaded_recording,
                method=method,
                settings=payload_settings,
                template=templates,
                callback=lambda live, _: bar.update(task, completed=live.samples),
            )
    if files.report is not None:
        from taufit.core.files import write_text
        from taufit.report.payload_page import payload_page

        write_text(files.report, payload_page(result, fitted, Path(recording).name))
    if files.output is not None and not result.refusal:
        from taufit.model.payload import write_payload

        write_payload(result.estimate.to_payload(), files.output)
    hand_force = hand.force(source, recording, fitted, result.estimate)
    if as_json:
        print_json(
            {
                "model": str(model),
                "recording": str(recording),
                "robot": fitted.robot.name,
                **accuracy_to_dict(fitted),
                **result.to_dict(),
                **({} if hand_force is None else {"guiding": hand_force.to_dict()}),
                "cpu_seconds": process_time() - started,
            }
        )
    else:
        _show(result, fitted, files)
        if hand_force is not None:
            show_force(hand_force)
    if result.refusal:
        from taufit.core.errors import InfeasibleError

        raise InfeasibleError(f"this is no result to use: {result.refusal}")


def _positive_numbers(text: str, count: int, option: str) -> tuple[float, ...]:
    values = parse_numbers(text, option, count)
    if not all(0.0 < x < 1e6 for x in values):
        usage_error(option, f"expected {count} positive numbers, got {text!r}.")
    return values


def _box(text: str) -> tuple[float, float, float]:
    x, y, z = _positive_numbers(text, 3, "--box")
    return x, y, z


class _LiveDisplay:
    """Live panel on stderr: mass and interval over time, at the speed of the recording."""

    def __init__(self, speed: float, quiet: bool) -> None:
        from taufit.cli.common import plain_console

        self.speed = speed
        self.console = plain_console(stderr=True)
        self.history: list[tuple[float, float, float, float, bool]] = []
        self.live: Any = None

    def __enter__(self) -> Any:
        from time import monotonic

        from rich.live import Live

        self.start_time = monotonic()
        self.live = Live(console=self.console, refresh_per_second=10, transient=True)
        self.live.__enter__()
        return self.show

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)

    def show(self, payload_filter: Any, estimate: Any) -> None:
        from time import monotonic, sleep

        delay = estimate.time / self.speed - (monotonic() - self.start_time)
        if delay > 0.0:
            sleep(delay)
        self.history.append((estimate.time, estimate.mass, *estimate.mass_interval, estimate.ready))
        self.live.update(_panel(self.history, estimate, payload_filter))


def _panel(
    history: list[tuple[float, float, float, float, bool]], estimate: Any, payload_filter: Any
) -> Any:
    from rich.panel import Panel
    from rich.text import Text

    width, height = 60, 12
    ready_history = [p for p in history if p[4]] or history[-width:]
    top = max(1.3 * max(p[1] for p in ready_history), 0.2)
    text = Text()
    stride = max(1, -(-len(history) // width))
    columns = history[::stride][-width:]
    for level in range(height, -1, -1):
        value = top * level / height
        text.append(f"{value:6.2f} kg ", style="dim")
        for _, mass, low, high, is_ready in columns:
            half = 0.5 * top / height
            if abs(mass - value) <= half:
                text.append("●", style="bold green" if is_ready else "yellow")
            elif low - half <= value <= high + half:
                text.append("│", style="green" if is_ready else "dim yellow")
            else:
                text.append(" ")
        text.append("\n")
    state = (
        "accurate enough" if estimate.accurate else "ready" if estimate.ready else "not ready yet"
    )
    low, high = estimate.mass_interval
    text.append(
        f"{estimate.time:7.1f} s   {estimate.mass:.3f} kg  [{low:.3f}, {high:.3f}]   {state}\n",
        style="bold",
    )
    for event in payload_filter.events[-3:]:
        text.append(f"{event.time:7.1f} s   {event.text}\n")
    return Panel(text, title="payload", width=width + 16)


def _heading(result: PayloadRun, robot: str) -> list[Text]:
    """Result line: payload, or why there is none."""
    from taufit.cli.common import headline

    estimate = result.estimate
    if result.refusal:
        word = "not ready" if estimate.has_intervals and not estimate.ready else "no result"
        return [headline(word, f"  {robot}: what it carries is not known.", "bold yellow")]
    low, high = estimate.mass_interval
    if not estimate.has_intervals:
        return [
            headline(f"{robot} carries {estimate.mass:.3f} kg", "  by a method without interval")
        ]
    if estimate.empty:
        return [headline(f"{robot} carries nothing", f" that shows: below {high:.3f} kg (95 %).")]
    return [
        headline(f"{robot} carries {estimate.mass:.3f} kg", f"  [{low:.3f}, {high:.3f}] (95 %)")
    ]


def _show(result: PayloadRun, fitted: FittedModel, files: OutputOptions) -> None:
    from taufit.cli.common import plain_console
    from taufit.model.accuracy_statement import accuracy_statement

    console, robot = plain_console(), fitted.robot.name
    console.print(accuracy_statement(fitted))
    estimate = result.estimate
    for line in _heading(result, robot) + _moment_lines(result, fitted):
        console.print(line)
    if not estimate.empty and not result.refusal:
        console.print(_table(result))
        if estimate.from_prior:
            console.print(
                "The inertia is mostly the prior's: hardly identifiable from this motion."
            )
    if result.ready_at is not None and result.ready_means and estimate.mass < 1.0:
        console.print(f"ready means: {result.ready_means}")
    for label, time in (("ready", result.ready_at), ("accurate enough", result.stopped_at)):
        if time is not None:
            console.print(f"{label} after {time:.1f} s")
    for event in result.events:
        console.print(f"{event.time:.2f} s: {event.text}")
    if result.budget:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in result.budget.items())
        console.print(f"Error budget of the mass: {shares}. {result.advice}")
    for text in result.warnings:
        console.print(f"warning: {text}")
    written = [files.output if not result.refusal else None, files.report]
    if any(written):
        console.print(f"Written: {', '.join(str(path) for path in written if path)}")
    if not result.refusal:
        _show_commands(result, fitted.robot)


def _moment_lines(result: PayloadRun, fitted: FittedModel) -> list[Text]:
    """First moment of mass on a tree with intervals, "not seen" where no motion shows it."""
    from rich.text import Text

    moment = result.details.get("first_moment")
    if moment is None or not fitted.robot.is_tree:
        return []
    text = ", ".join(
        f"{axis} {x:.2g} [{a:.2g}, {b:.2g}]" if b - a < _UNSEEN_MOMENT else f"{axis} not seen"
        for axis, x, a, b in zip(
            "xyz", *(moment[key] for key in ("value", "low", "high")), strict=True
        )
    )
    return [Text(f"Mass x centre in the link's frame: {text} kg m")]


def _show_commands(result: PayloadRun, robot: Robot) -> None:
    """Print the payload command of the robot's controller; of all if unknown."""
    from taufit.cli.common import plain_console
    from taufit.payload.controller_commands import manufacturer

    console, commands = plain_console(), result.set_payload()
    assert commands is not None
    centre = ", ".join(f"{1e3 * x:.1f}" for x in commands["cog"])
    console.print(f"For the controller, frame {commands['frame']}: centre {centre} mm")
    for maker, line in commands["lines"].items():
        if manufacturer(robot.name) in (None, maker):
            console.print(f"  {maker:<7}{line}", soft_wrap=True)
    if robot.is_tree:
        console.print("Give the controller that line.")
        return
    console.print(
        "Give the controller that line, or plan a better motion. "
        + next_step("design", robot.name, "--kind", "payload", "-o", "motion.json"),
        soft_wrap=True,
    )


def _table(result: PayloadRun) -> Table:
    """Table of centre of mass and inertia with their intervals."""
    from rich.table import Table

    table = Table(title=f"{result.method}, frame of the last link")
    for name in ("quantity", "value", "low", "high"):
        table.add_column(name, justify="left" if name == "quantity" else "right")
    data = result.estimate.to_dict()
    com, inertia = data["com"], data["inertia"]
    missing = [None] * 6
    lows, highs = com["low"] or missing[:3], com["high"] or missing[:3]
    for axis, *values in zip("xyz", com["value"], lows, highs, strict=True):
        table.add_row(f"com {axis}, mm", *(_format_value(1e3, x, 1) for x in values))
    lows, highs = inertia["low"] or missing, inertia["high"] or missing
    for name, *values in zip(inertia["entries"], inertia["value"], lows, highs, strict=True):
        table.add_row(f"{name}, kg m^2", *(_format_value(1.0, x, 5) for x in values))
    return table


def _format_value(factor: float, value: float | None, digits: int) -> str:
    return "-" if value is None else f"{factor * value:.{digits}f}"
