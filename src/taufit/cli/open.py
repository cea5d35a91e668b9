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
    recording: Annotated[
        list[Path],
        typer.Argument(help="Recording with joint positions and torque, or all files of a run."),
    ],
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
    from taufit.live.server import require_server, run_server
    from taufit.recording.files import find_recordings
    from taufit.robot import read_robot

    require_server()
    if output is not None and output.suffix not in (".yaml", ".yml"):
        usage_error("--output", "a map is written as .yaml")
    paths = list(recording)
    if len(paths) > 1 or not paths[0].exists() or paths[0].is_dir():
        paths = list(find_recordings(paths, allow_repeats=True).paths)
    stem = paths[0].name.split(".")[0] or "recording"
    session = MappingSession(
        paths[0],
        output or Path(f"{stem}.yaml"),
        Path(f"{stem}.model.json"),
        topic=topic,
        companions=tuple(paths[1:]),
    )
    if robot is not None:
        session.set_robot(read_robot(robot))
    server_socket, endpoint = page.listen()
    with run_server(mapper(session, endpoint), server_socket, endpoint, LIMITS):
        about = {"file": str(session.path), "map": str(session.output)}
        page.announce(endpoint, about, as_json, sys.stdout)
        with suppress(KeyboardInterrupt):
            threading.Event().wait(seconds)
