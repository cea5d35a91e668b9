"""`taufit health baseline` and `taufit health check`: wear detection over runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Model, RecordingOptions, Report, usage_error
from taufit.cli.parts.next_step import next_step
from taufit.core.statistics import NORMAL_95

if TYPE_CHECKING:
    from taufit.health import HealthReport, History
    from taufit.model.fitted_model import FittedModel
    from taufit.signals import Samples

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Detect wear of joints, compensated for temperature.\n\n"
    "Next: `taufit health baseline MODEL RECORDING... -o HISTORY` starts a history.",
)


@app.command()
def baseline(
    model: Model,
    recording: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings of the healthy robot: at least 8, better 30.", metavar="RECORDING"
        ),
    ],
    source: RecordingOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="History file to write.", metavar="HISTORY")
    ] = Path("health.json"),
    rate: Annotated[
        float, typer.Option(help="Accepted false alarms per healthy run, all joints together.")
    ] = 0.001,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Start a history from runs of a healthy robot.

    The runs should cover the temperatures, loads and speeds of daily work; one repeated motion is
    best. The model predicts friction; fit it to cold and warm recordings so that its friction
    depends on temperature.

    Next: `taufit health check HISTORY RECORDING` adds runs and tests for increased friction.
    """
    from taufit.health import assess_health, start_history, write_history
    from taufit.health.history import RECOMMENDED_RUNS
    from taufit.model.model_file import read_model
    from taufit.terms import needs

    if not 0.0 < rate <= 0.1:
        usage_error("--rate", f"must be above 0 and at most 0.1, got {rate:g}.")
    fitted = read_model(model)
    runs, hashes, notes = _read_runs(fitted, recording, source, "learning what is normal")
    history = start_history(fitted, runs, rate=rate, sha256=hashes)
    if len(runs) < RECOMMENDED_RUNS:
        notes.append(
            f"{len(runs)} healthy runs make for a high threshold; {RECOMMENDED_RUNS} find wear "
            f"sooner."
        )
    if not needs(fitted.term_sum, "temperature"):
        notes.append(
            "friction in this model does not follow temperature: a warm day will look like less "
            "friction. Fit cold and warm recordings together (taufit fit --temperature linear)."
        )
    write_history(history, output)
    health = assess_health(history)
    if report is not None:
        _report(history, report)
    if as_json:
        print_json(
            {
                "history": str(output),
                "runs": len(history.runs),
                "healthy": history.healthy,
                "threshold": health.threshold,
                "false_alarm_rate": rate,
                "friction": history.level.tolist(),
                "scatter_percent": _baseline_scatter(history, health),
                "warnings": notes,
            }
        )
        return
    _print(f"{len(runs)} healthy runs of {fitted.robot.name}.")
    from rich.table import Table

    from taufit.cli.common import plain_console

    table = Table(title="what is normal")
    for name in ("joint", "friction [N m]", "scatter [%]"):
        table.add_column(name, justify="right")
    for j, (level, scatter) in enumerate(
        zip(history.level, _baseline_scatter(history, health), strict=True)
    ):
        table.add_row(str(j + 1), f"{level:.3g}", f"{scatter:.2f}")
    plain_console().print(table)
    for note in notes:
        _print(f"warning: {note}")
    _print(
        f"Written: {output}\n"
        + next_step("health", "check", output, purpose="shows it; add further recordings to test.")
    )


@app.command()
def check(
    history: Annotated[
        Path, typer.Argument(help="History file of `taufit health baseline`.", metavar="HISTORY")
    ],
    source: RecordingOptions,
    recording: Annotated[
        list[Path] | None,
        typer.Argument(
            help="New recordings in order; none: assess the history as it is.", metavar="RECORDING"
        ),
    ] = None,
    report: Report = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Assess without changing the history file.")
    ] = False,
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help="Exit with 1 if a joint is worn.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add runs and test for increased friction.

    The model compensates temperature and load. A lasting increase accumulates in a CUSUM, whose
    threshold keeps false alarms below the rate of the baseline.

    Next: `taufit health check HISTORY --report health.html` shows every joint over time.
    """
    from taufit.core.errors import InfeasibleError
    from taufit.health import add_runs, assess_health, read_history

    runs_history = read_history(history)
    notes: list[str] = []
    added = 0
    if recording:
        runs, hashes, notes = _read_runs(runs_history.model, recording, source, "adding runs")
        added = len(runs)
        if dry_run:
            for (name, samples), digest in zip(runs, hashes, strict=True):
                runs_history = runs_history.with_run(name, samples, sha256=digest)
        else:
            runs_history = add_runs(history, runs, sha256=hashes, expected=runs_history)
    health = assess_health(runs_history)
    if report is not None:
        _report(runs_history, report)
    if as_json:
        print_json(
            {
                "history": str(history),
                "runs": len(runs_history.runs),
                "healthy_runs": runs_history.healthy,
                "added": added,
                **health.to_dict(),
                "warnings": notes,
            }
        )
    else:
        _show(runs_history, health, added, notes, history)
    if fail_on_alarm and not health.healthy:
        raise InfeasibleError(health.headline + ".")


def _read_runs(
    model: FittedModel, files: list[Path], source: RecordingOptions, description: str
) -> tuple[list[tuple[str, Samples]], list[str], list[str]]:
    """Read every run of every file, conditioned like the model's training data."""
    from taufit.core.compute.cache.content import content_hash
    from taufit.temperature.temperature_slopes import repair_temperature
    from taufit.validation import range_findings
    from taufit.workflow import condition_for_model

    runs: list[tuple[str, Any]] = []
    hashes: list[str] = []
    notes: list[str] = []
    with progress("health") as bar:
        task = bar.add_task(description, total=len(files))
        for path in files:
            digest = content_hash(path) if path.exists() else ""
            recordings = source.read(path)
            for number, recording in enumerate(recordings):
                name = path.name if len(recordings) == 1 else f"{path.name}#{number}"
                samples = condition_for_model(model, [recording], name=str(path))
                if samples.temperature is not None and model.training.thermal is None:
                    temperature, messages = repair_temperature(samples)
                    samples = samples.with_channels(temperature=temperature)
                    notes += messages
                notes += [f"{name}: {text}" for text in range_findings(model, samples)]
                notes += [f"{name}: {f}" for f in samples.findings if f.kind == "temperature"]
                runs.append((name, samples))
                hashes.append(digest)
            bar.advance(task)
    return runs, hashes, list(dict.fromkeys(notes))


def _baseline_scatter(history: History, health: HealthReport) -> list[float]:
    """Standard deviation of the index of healthy runs, in percent of the friction."""
    return health.percent[: history.healthy].std(axis=0, ddof=1).tolist()


def _with_interval(value: float, std: float, digits: int) -> str:
    """Value with half its 95 % interval; "not known" if it is not finite."""
    from math import isfinite

    if not isfinite(value):
        return "not known"
    if not isfinite(std):
        return f"{value:+.{digits}f}"
    return f"{value:+.{digits}f} ± {NORMAL_95 * std:.{digits}f}"


def _show(history: History, health: HealthReport, added: int, notes: list[str], path: Path) -> None:
    from rich.table import Table

    from taufit.cli.common import headline, plain_console

    console = plain_console()
    word = "HEALTHY" if health.healthy else "WORN"
    console.print(headline(word, "  "), end="")
    _print(health.headline)
    table = Table(
        title=f"{history.model.robot.name}: {len(history.runs)} runs, {history.healthy} of them "
        f"the baseline, {added} new"
    )
    for name in ("joint", "change [%]", "trend [% per run]", "CUSUM", "alarm"):
        table.add_column(name, justify="right")
    for joint in health.joints:
        table.add_row(
            str(joint.joint),
            _with_interval(joint.change, joint.change_std, 1),
            _with_interval(joint.trend, joint.trend_std, 3),
            f"{joint.cusum:.1f} of {health.threshold:.1f}",
            joint.alarm_run or "",
        )
    console.print(table)
    for note in notes[:12]:
        _print(f"warning: {note}")
    if len(notes) > 12:
        _print(f"warning: and {len(notes) - 12} more")
    _print(
        f"Changes are against the healthy runs, at the temperature and load of each run, with 95 % "
        f"intervals; false alarms: below {health.rate:g} per healthy run.\n"
        + next_step(
            "health",
            "check",
            path,
            "--report",
            "health.html",
            purpose="shows every joint over time.",
        )
    )


def _report(history: History, path: Path) -> None:
    from taufit.core.files import write_text
    from taufit.report.health_page import health_page

    write_text(path, health_page(history))


def _print(text: str) -> None:
    from taufit.cli.common import plain_console

    plain_console().print(text)
