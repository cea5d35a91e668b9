"""`taufit report`: HTML page about a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    HTML_ENDINGS,
    HTML_REMEDY,
    Cutoff,
    Json,
    Model,
    RecordingOptions,
    require_cutoff,
    require_ending,
)


def command(
    model: Model,
    source: RecordingOptions,
    recording: Annotated[
        list[Path] | None,
        typer.Argument(help="Recordings to show; the first in detail.", metavar="RECORDING"),
    ] = None,
    cutoff_hz: Cutoff = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="HTML page to write.", metavar="FILE.html")
    ] = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Write a self-contained HTML page about a fitted model.

    The page shows the verdict, measured and predicted torque, residuals, friction, parameters with
    intervals, identifiability, and provenance. It needs no network.

    Next: open the page in a browser.
    """
    from taufit.cli.parts.report_commands import model_commands
    from taufit.cli.parts.training_files import is_training_file
    from taufit.core.files import write_text
    from taufit.model.model_file import read_model
    from taufit.report import ReportRun, model_page

    require_cutoff(cutoff_hz)
    require_ending(output, HTML_ENDINGS, "--output", HTML_REMEDY)
    fitted = read_model(model)
    runs = []
    with progress("report") as bar:
        task = bar.add_task("reading", total=len(recording or []) + 1)
        for path in recording or []:
            from taufit.validation import score
            from taufit.validation.score_breakdown import score_breakdown
            from taufit.workflow import condition_for_model

            recordings = source.read(path)
            samples = condition_for_model(fitted, recordings, cutoff_hz=cutoff_hz, name=str(path))
            breakdown = score_breakdown(fitted, samples, score(fitted, samples, file=str(path)))
            runs.append(ReportRun(path.name, samples, breakdown, is_training_file(fitted, path)))
            bar.advance(task)
        commands = model_commands(model, recording or [], source)
        text = model_page(fitted, runs, commands=commands, model_file=str(model))
        write_text(output, text)
        bar.advance(task)
    if as_json:
        print_json({"output": str(output), "bytes": len(text.encode()), "recordings": len(runs)})
    else:
        print(f"Written: {output}\nNext: open it in a browser.")
