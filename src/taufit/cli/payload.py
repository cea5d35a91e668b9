"""`taufit payload`: what the arm carries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, RecordingOptions, Report, numbers, require_choice, usage_error
from taufit.cli.parts.guided import GuidingOptions, show_force

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from taufit.payload import PayloadRun, PayloadSettings


@dataclass(frozen=True, slots=True)
class SettingOptions:
    """The method, what is known about payload and drives, and how accurate it must be."""

    method: Annotated[
        str,
        typer.Option(help="filter, direct, difference, printed, khalil or static.", metavar="NAME"),
    ] = "filter"
    box: Annotated[
        str | None, typer.Option(help="Outer size of the payload in metres.", metavar="X,Y,Z")
    ] = None
    density: Annotated[
        float | None, typer.Option(help="Of the payload in kg/m^3.", metavar="RHO")
    ] = None
    accuracy: Annotated[
        str,
        typer.Option(
            help="Stop at this standard deviation of mass [%] and centre [mm].", metavar="%,MM"
        ),
    ] = "1,5"
    gain_std: Annotated[
        float | None,
        typer.Option(help="How well drive gains are known, in percent.", metavar="PERCENT"),
    ] = None
    torque_signs: Annotated[
        str,
        typer.Option(
            help="recorded, or unknown where only magnitudes were recorded: the model and one "
            "payload carried throughout then tell the signs.",
            metavar="WORD",
        ),
    ] = "recorded"
    template: Annotated[
        list[Path] | None,
        typer.Option(
            help="The same motion recorded empty; model errors cancel. Give several: they are "
            "averaged, and their scatter says how large the noise is.",
            metavar="FILE",
        ),
    ] = None

    def settings(self) -> PayloadSettings:
        """As the library takes them."""
        from taufit.payload import PayloadSettings

        mass, centre = _positive(self.accuracy, 2, "--accuracy")
        chosen = PayloadSettings(
            mass_accuracy=mass / 100.0,
            com_accuracy=centre / 1000.0,
            density=self.density,
            box=None if self.box is None else _box(self.box),
        )
        return chosen if self.gain_std is None else replace(chosen, gain_std=self.gain_std / 100.0)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How fast the recording is gone through."""

    replay: Annotated[
        bool, typer.Option("--replay", help="At the recording's own rate, with a live display.")
    ] = False
    speed: Annotated[float, typer.Option(help="Of the replay, 1 is real time.")] = 1.0


def command(
    model: Annotated[
        Path, typer.Argument(help="Of the empty arm, from `taufit fit`.", metavar="MODEL")
    ],
    recording: Annotated[
        Path, typer.Argument(help="The arm with its payload, moving.", metavar="RECORDING")
    ],
    source: RecordingOptions,
    settings: SettingOptions,
    pace: ReplayOptions,
    hand: GuidingOptions,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Find mass, centre of mass and inertia of what an arm carries, with 95 % intervals.

    The model is that of the empty arm (or with the tool that stays on it). Any motion will do in
    which the joints that carry the payload move both ways; the result says from when on it is
    worth reading. Drive gains, the model's own uncertainty and friction that has changed all widen
    the interval, and the budget says which dominates.

    Next: give the controller the line of its make, or plan a better motion with
    `taufit design ROBOT --kind payload`.
    """
    from time import process_time

    from taufit.model.model_file import read_model
    from taufit.payload import METHODS, identify_payload

    started = process_time()
    method = require_choice(settings.method, METHODS, "--method")
    if not pace.speed > 0.0:
        usage_error("--speed", f"must be positive, got {pace.speed:g}.")
    chosen = settings.settings()
    hand.names  # noqa: B018 - wrong usage comes first
    fitted = read_model(model)
    carried = source.read_one(recording)
    if (
        require_choice(settings.torque_signs, ("recorded", "unknown"), "--torque-signs")
        == "unknown"
    ):
        from taufit.signs.samples import without_signs

        carried = without_signs(carried)
    of_template = replace(source, run=None)
    empty = [of_template.read_one(path) for path in settings.template or ()] or None
    if pace.replay:
        with _display(pace.speed, as_json) as watch:
            done = identify_payload(
                fitted, carried, method=method, settings=chosen, template=empty, callback=watch
            )
    else:
        with progress("payload") as bar:
            task = bar.add_task("estimating", total=float(len(carried.time)))
            done = identify_payload(
                fitted,
                carried,
                method=method,
                settings=chosen,
                template=empty,
                callback=lambda live, _: bar.update(task, completed=live.samples),
            )
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.payload_page import payload_page

        write_text(report, payload_page(done, fitted, str(recording)))
    guided = hand.force(source, recording, fitted, done.estimate)
    if as_json:
        print_json(
            {
                "model": str(model),
                "recording": str(recording),
                "robot": fitted.robot.name,
                **done.to_dict(),
                **({} if guided is None else {"guiding": guided.to_dict()}),
                "cpu_seconds": process_time() - started,
            }
        )
    else:
        _show(done, fitted.robot.name, report)
        if guided is not None:
            show_force(guided)
    if done.refusal:
        from taufit.core.errors import InfeasibleError

        raise InfeasibleError(f"this is no result to use: {done.refusal}")


def _positive(text: str, count: int, option: str) -> tuple[float, ...]:
    values = numbers(text, option, count)
    if not all(0.0 < x < 1e6 for x in values):
        usage_error(option, f"expected {count} positive numbers, got {text!r}.")
    return values


def _box(text: str) -> tuple[float, float, float]:
    x, y, z = _positive(text, 3, "--box")
    return x, y, z


class _display:
    """A live panel on stderr: mass and interval, drawn against time, at the recording's pace."""

    def __init__(self, speed: float, quiet: bool) -> None:
        from taufit.cli.common import plain_console

        self.speed = speed
        self.console = plain_console(stderr=True)
        self.past: list[tuple[float, float, float, float, bool]] = []
        self.live: Any = None

    def __enter__(self) -> Any:
        from time import monotonic

        from rich.live import Live

        self.begun = monotonic()
        self.live = Live(console=self.console, refresh_per_second=10, transient=True)
        self.live.__enter__()
        return self.watch

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)

    def watch(self, live: Any, found: Any) -> None:
        from time import monotonic, sleep

        behind = found.time / self.speed - (monotonic() - self.begun)
        if behind > 0.0:
            sleep(behind)
        self.past.append((found.time, found.mass, *found.mass_interval, found.ready))
        self.live.update(_panel(self.past, found, live))


def _panel(past: list[tuple[float, float, float, float, bool]], found: Any, live: Any) -> Any:
    from rich.panel import Panel
    from rich.text import Text

    width, height = 60, 12
    shown = [p for p in past if p[4]] or past[-width:]
    top = max(1.3 * max(p[1] for p in shown), 0.2)
    text = Text()
    stride = max(1, -(-len(past) // width))
    columns = past[::stride][-width:]
    for level in range(height, -1, -1):
        value = top * level / height
        text.append(f"{value:6.2f} kg ", style="dim")
        for _, mass, low, high, ready in columns:
            half = 0.5 * top / height
            if abs(mass - value) <= half:
                text.append("●", style="bold green" if ready else "yellow")
            elif low - half <= value <= high + half:
                text.append("│", style="green" if ready else "dim yellow")
            else:
                text.append(" ")
        text.append("\n")
    state = "accurate enough" if found.accurate else "ready" if found.ready else "not ready yet"
    low, high = found.mass_interval
    text.append(
        f"{found.time:7.1f} s   {found.mass:.3f} kg  [{low:.3f}, {high:.3f}]   {state}\n",
        style="bold",
    )
    for event in live.events[-3:]:
        text.append(f"{event.time:7.1f} s   {event.text}\n")
    return Panel(text, title="payload", width=width + 16)


def _heading(done: PayloadRun, robot: str) -> list[Text]:
    """What is carried, and whether to use it."""
    from taufit.cli.common import headline

    found = done.estimate
    if done.refusal:
        word = "not ready" if found.has_intervals and not found.ready else "no result"
        return [headline(word, f"  {robot}: what it carries is not known.", "bold yellow")]
    low, high = found.mass_interval
    if not found.has_intervals:
        return [headline(f"{robot} carries {found.mass:.3f} kg", "  by a method without interval")]
    if found.empty:
        return [headline(f"{robot} carries nothing", f" that shows: below {high:.3f} kg (95 %).")]
    return [headline(f"{robot} carries {found.mass:.3f} kg", f"  [{low:.3f}, {high:.3f}] (95 %)")]


def _show(done: PayloadRun, robot: str, report: Path | None) -> None:
    from taufit.cli.common import plain_console

    console = plain_console()
    found = done.estimate
    for line in _heading(done, robot):
        console.print(line)
    if not found.empty and not done.refusal:
        console.print(_table(done))
        if found.from_prior:
            console.print(
                "The inertia is mostly the prior's: hardly identifiable from this motion."
            )
    if done.ready_at is not None and done.ready_means and found.mass < 1.0:
        console.print(f"ready means: {done.ready_means}")
    for label, when in (("ready", done.ready_at), ("accurate enough", done.stopped_at)):
        if when is not None:
            console.print(f"{label} after {when:.1f} s")
    for event in done.events:
        console.print(f"{event.time:.2f} s: {event.text}")
    if done.budget:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in done.budget.items())
        console.print(f"Error budget of the mass: {shares}. {done.advice}")
    for text in done.warnings:
        console.print(f"warning: {text}")
    if report is not None:
        console.print(f"Written: {report}")
    if not done.refusal:
        _show_lines(done, robot)


def _show_lines(done: PayloadRun, robot: str) -> None:
    """What the arm's controller is told: the line of its make, all where that is not known."""
    from taufit.cli.common import plain_console
    from taufit.payload.controller_commands import manufacturer

    console, told = plain_console(), done.set_payload()
    assert told is not None
    centre = ", ".join(f"{1e3 * x:.1f}" for x in told["cog"])
    console.print(f"For the controller, frame {told['frame']}: centre {centre} mm")
    for make, line in told["lines"].items():
        if manufacturer(robot) in (None, make):
            console.print(f"  {make:<7}{line}", soft_wrap=True)
    console.print(
        "Next: give the controller that line, or plan a better motion with `taufit design ROBOT "
        "--kind payload`."
    )


def _table(done: PayloadRun) -> Table:
    """Centre of mass and inertia with their intervals."""
    from rich.table import Table

    table = Table(title=f"{done.method}, frame of the last link")
    for name in ("quantity", "value", "low", "high"):
        table.add_column(name, justify="left" if name == "quantity" else "right")
    data = done.estimate.to_dict()
    com, inertia = data["com"], data["inertia"]
    none = [None] * 6
    lows, highs = com["low"] or none[:3], com["high"] or none[:3]
    for axis, *values in zip("xyz", com["value"], lows, highs, strict=True):
        table.add_row(f"com {axis}, mm", *(_shown(1e3, x, 1) for x in values))
    lows, highs = inertia["low"] or none, inertia["high"] or none
    for name, *values in zip(inertia["entries"], inertia["value"], lows, highs, strict=True):
        table.add_row(f"{name}, kg m^2", *(_shown(1.0, x, 5) for x in values))
    return table


def _shown(factor: float, value: float | None, digits: int) -> str:
    return "-" if value is None else f"{factor * value:.{digits}f}"
