"""`taufit open`: what the columns of a recording are, said in the browser."""

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
    recording: Annotated[Path, typer.Argument(help="Any log with joint positions and torque.")],
    page: PageOptions,
    robot: Annotated[
        str | None, typer.Option(help="The arm, where it is known: a name or a file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Map to write; by default FILE.yaml here."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Joint states to read from a bag.", metavar="NAME")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="End after this long; else Ctrl-C ends it.", min=0.1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what the columns of a recording are, on a page of this computer.

    The page shows every column with a guess, checks it against gravity on the robot you choose or
    drop there, writes the column map, fits and opens the report. Existing files are never written
    over, and nothing is sent to any other computer.

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
