"""`taufit live`: a robot that is on, or a recording, seen through a fitted model."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taufit.cli.options import Json, Model, Ports, Rate, RecordingOptions, usage_error
from taufit.cli.options.serving import PageOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from taufit.live import Monitor
    from taufit.live.session import Session
    from taufit.model import FittedModel
    from taufit.recording import Recording
    from taufit.wire.open import Address
    from taufit.wire.source import Source
    from taufit.wire.ur import UrPorts


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How the source is followed, and where readings go besides the page."""

    publish: Annotated[
        str | None,
        typer.Option(
            help="Every reading for other programs: `-` (JSON lines on standard output), a file of "
            "them, or `ros2`. The command then ends with its source.",
            metavar="-|FILE|ros2",
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(help="Record the robot from the first sample on.", metavar="FILE.parquet"),
    ] = None
    pace: Annotated[
        float,
        typer.Option(help="Speed of a recording against its own; 0: as fast as it goes.", min=0),
    ] = 1.0
    seconds: Annotated[
        float | None, typer.Option(help="End after this long; else Ctrl-C ends it.", min=0.1)
    ] = None
    rate_hz: Rate = None
    ports: Ports = ""
    payload: Annotated[bool, typer.Option(help="Estimate what the arm carries.")] = True
    contact: Annotated[bool, typer.Option(help="Watch for contacts.")] = True
    force: Annotated[
        bool, typer.Option("--force", help="Go on though the controller reports another arm.")
    ] = False


def command(
    source: Annotated[
        str,
        typer.Argument(
            help="Host of a UR controller, ros2:/TOPIC, franka:HOST, egm:PORT, realtime:HOST, or a "
            "recording.",
            metavar="SOURCE",
        ),
    ],
    model: Model,
    reading: RecordingOptions,
    watch: WatchOptions,
    place: PageOptions,
    as_json: Json = False,
) -> None:
    """Show what a robot carries, feels and loses while it moves.

    A page on this computer shows the arm, measured against predicted torque with its interval, the
    payload as it settles, external torque and contacts, temperature and friction. Nobody without
    the printed address can open it, and it asks nothing of any other computer.

    Next: open the printed address; its record button writes a recording for `taufit fit`.
    """
    from taufit.live import Monitor
    from taufit.live.dashboard import dashboard
    from taufit.live.hub import Hub
    from taufit.live.publish import publisher
    from taufit.live.server import serving
    from taufit.live.session import Session, StreamRecorder
    from taufit.model.model_file import read_model

    if as_json and watch.publish == "-":
        usage_error("--publish", "standard output is either --json's or --publish -'s.")
    if watch.record is not None and watch.record.suffix != ".parquet":
        usage_error("--record", "a recording is written as .parquet")
    fitted = read_model(model)
    followed, about = _source(source, reading, watch, fitted)
    monitor = Monitor(fitted, payload=watch.payload, contact=watch.contact)
    line, where = place.listen()
    sink = None if watch.publish is None else publisher(watch.publish, fitted.robot.joint_names)
    session = Session(
        monitor,
        followed,
        Hub(),
        tape=StreamRecorder(watch.record),
        sinks=() if sink is None else (sink,),
        limits=_limits(monitor),
        pace=watch.pace,
        record_at_once=watch.record is not None,
    )
    app = dashboard(session, fitted.robot, where, about=about)
    stream = sys.stderr if watch.publish == "-" else sys.stdout
    with serving(app, line, where):
        place.announce(where, {"robot": fitted.robot.name, "source": about}, as_json, stream)
        session.start()
        with suppress(KeyboardInterrupt):
            _until_the_end(session, watch)
        session.stop()
    if sink is not None:
        sink.close()
    for path in session.tape.written:
        print(f"Written: {path}", file=sys.stderr)
    if monitor.account.samples:
        print(f"{monitor.account}.", file=sys.stderr)
    if session.ended:
        print(f"Ended: {session.ended}", file=sys.stderr)
        raise typer.Exit(1)


def _until_the_end(session: Session, watch: WatchOptions) -> None:
    """Wait for Ctrl-C, for the time that was asked for, or, where published, for the source."""
    session.done.wait(watch.seconds)
    if session.done.is_set() and watch.publish is None and watch.seconds is None:
        if session.ended:
            return
        print("The source has ended; the page stays until Ctrl-C.", file=sys.stderr)
        session.stopping.wait()


def _source(
    name: str, reading: RecordingOptions, watch: WatchOptions, model: FittedModel
) -> tuple[Source | Recording, str]:
    """What is followed, and what to call it."""
    from taufit.core.errors import RecordingError
    from taufit.recording.read import READERS
    from taufit.wire.open import open_source, parse, parse_ports

    path = Path(name)
    if path.exists():
        if watch.record is not None:
            usage_error("--record", f"{name} is a recording already")
        return reading.read_one(path), f"recording {path.name}"
    if path.suffix.lower() in READERS:
        raise RecordingError(f"there is no file {name}.")
    address, ports = parse(name), parse_ports(watch.ports)

    def opened() -> Source:
        return open_source(
            address,
            ports=ports,
            rate_hz=watch.rate_hz,
            effort=reading.effort,
            joints=model.robot.joint_names,
        )

    _compare(opened(), address, ports, model, watch.force)
    return opened(), name


def _compare(
    source: Source, address: Address, ports: UrPorts, model: FittedModel, force: bool
) -> None:
    """Refuse a model of another arm than the controller reports."""
    from taufit.clearance import compare_arms
    from taufit.core.errors import RobotError
    from taufit.wire.identity import ask_controller
    from taufit.wire.source import newest_block

    description = source.connect()
    try:
        if description.joints != model.robot.joints:
            return
        report = ask_controller(address, ports, description, newest_block(source))
    finally:
        source.close()
    found = compare_arms(model.robot, report)
    for text in found.notes:
        print(f"note: {text}", file=sys.stderr)
    if found.reasons and not force:
        raise RobotError("; ".join(found.reasons) + ". --force goes on nevertheless.")
    for text in found.reasons:
        print(f"warning: {text}", file=sys.stderr)
    if not (found.is_identified or found.reasons):
        print(
            f"note: {report.controller} does not report which arm it moves; taken for a "
            f"{model.robot.name}",
            file=sys.stderr,
        )


def _limits(monitor: Monitor) -> Callable[[float], list[float] | None]:
    """The step of external torque that is found at a threshold of evidence, joint by joint."""
    from math import isfinite

    from taufit.contact import detectable_torque_steps

    @lru_cache(16)
    def steps(threshold: float) -> list[float] | None:
        if not isfinite(threshold):
            return None
        return [float(x) for x in detectable_torque_steps(monitor.watch.noise, threshold)]

    return steps
