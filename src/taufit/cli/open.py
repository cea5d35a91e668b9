"""`taufit open`: column map of a recording, in the browser."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from taufit.cli.options import Json, usage_error
from taufit.cli.options.page_server import PageOptions


def command(
    recording: Annotated[Path, typer.Argument(help="Recording with joint positions and torque.")],
    page: PageOptions,
    robot: Annotated[
        str | None, typer.Option(help="Robot, if known: bundled name or file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Column map to write; default NAME.yaml here."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Joint state topic of a bag.", metavar="NAME")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Duration [s]; default until Ctrl-C.", min=0.1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe the columns of a recording in the browser, then fit a model.

    The page shows every column with a proposal, checks it against gravity of the selected robot,
    writes the column map, fits a model and opens the report. Existing files are never overwritten,
    and nothing is sent to other computers.

    Next: `taufit fit ROBOT FILE --map MAP --holdout 30%` does the same from the command line.
    """
    from taufit.live.mapper.app import LIMITS, mapper
    from taufit.live.mapper.mapping_session import MappingSession
    from taufit.live.server import require_server, serving
    from taufit.robot import read_robot

    require_server()
    if output is not None and output.suffix not in (".yaml", ".yml"):
        usage_error("--output", "a map is written as .yaml")
    stem = recording.name.split(".")[0] or "recording"
    session = MappingSession(
        recording,
        output or Path(f"{stem}.yaml"),
        Path(f"{stem}.model.json"),
        topic=topic,
    )
    if robot is not None:
        session.take_robot(read_robot(robot))
    server_socket, endpoint = page.listen()
    with serving(mapper(session, endpoint), server_socket, endpoint, LIMITS):
        about = {"file": str(recording), "map": str(session.output)}
        page.announce(endpoint, about, as_json, sys.stdout)
        with suppress(KeyboardInterrupt):
            threading.Event().wait(seconds)
