"""`taufit live`: monitoring of a running robot or a recording with a fitted model."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taufit.cli.options import (
    Json,
    LoadedModel,
    Ports,
    Rate,
    RecordingOptions,
    usage_error,
)
from taufit.cli.options.page_server import PageOptions
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from taufit.live import Monitor
    from taufit.live.session import Session
    from taufit.model import FittedModel
    from taufit.recording import Recording
    from taufit.wire.source import Source
    from taufit.wire.source_address import SourceAddress
    from taufit.wire.ur import UrPorts


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """Monitoring: source, duration and outputs."""

    publish: Annotated[
        str | None,
        typer.Option(
            help="Output of every reading: `-` (JSON lines on stdout), a file of JSON lines, or "
            "`ros2`. The command then ends with its source.",
            metavar="-|FILE|ros2",
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(help="Recording to write, from the first sample.", metavar="FILE.parquet"),
    ] = None
    pace: Annotated[
        float,
        typer.Option(help="Playback speed of a recording; 1: real time, 0: unlimited.", min=0),
    ] = 1.0
    seconds: Annotated[
        float | None, typer.Option(help="Duration [s]; default until Ctrl-C.", min=0.1)
    ] = None
    rate_hz: Rate = None
    ports: Ports = ""
    estimate_payload: Annotated[
        bool, typer.Option("--estimate-payload/--no-payload", help="Estimate the payload.")
    ] = True
    contact: Annotated[bool, typer.Option(help="Detect contacts.")] = True
    force: Annotated[
        bool, typer.Option("--force", help="Continue if the controller reports another robot.")
    ] = False


def command(
    source: Annotated[
        str,
        typer.Argument(
            help="Host of a UR controller, ros2:/TOPIC, franka:HOST, egm:PORT, realtime:HOST, or "
            "recording.",
            metavar="SOURCE",
        ),
    ],
    arm: LoadedModel,
    reading: RecordingOptions,
    options: MonitorOptions,
    page: PageOptions,
    as_json: Json = False,
) -> None:
    """Monitor a running robot in the browser: payload, contacts, friction.

    A page on this computer shows the robot, measured and predicted torque with its interval, the
    payload estimate, external torque and contacts, temperature and friction. The page opens only
    with the printed address and does not contact other computers.

    Next: open the printed address; its record button writes a recording for `taufit fit`.
    """
    from taufit.live import Monitor
    from taufit.live.batch_hub import BatchHub
    from taufit.live.dashboard import dashboard
    from taufit.live.reading_publisher import open_publisher
    from taufit.live.server import run_server
    from taufit.live.session import Session, StreamRecorder
    from taufit.model.accuracy_statement import accuracy_statement, accuracy_to_dict

    if as_json and options.publish == "-":
        usage_error("--publish", "standard output is either --json's or --publish -'s.")
    if options.record is not None and options.record.suffix != ".parquet":
        usage_error("--record", "a recording is written as .parquet")
    fitted = arm.read()
    monitored, about = _open_monitored(source, reading, options, fitted)
    monitor = Monitor(fitted, payload=options.estimate_payload, contact=options.contact)
    server_socket, endpoint = page.listen()
    sink = (
        None
        if options.publish is None
        else open_publisher(options.publish, fitted.robot.joint_names)
    )
    session = Session(
        monitor,
        monitored,
        BatchHub(),
        recorder=StreamRecorder(options.record),
        sinks=() if sink is None else (sink,),
        detectable_steps=_detectable_steps(monitor),
        pace=options.pace,
        record_immediately=options.record is not None,
    )
    app = dashboard(session, fitted.robot, endpoint, about=about)
    stream = sys.stderr if options.publish == "-" else sys.stdout
    if not as_json:
        print(accuracy_statement(fitted), file=stream)
    start = {"robot": fitted.robot.name, "source": about, **accuracy_to_dict(fitted)}
    with run_server(app, server_socket, endpoint):
        page.announce(endpoint, start, as_json, stream)
        session.start()
        with suppress(KeyboardInterrupt):
            _wait_for_end(session, options)
        session.stop()
    if sink is not None:
        sink.close()
    for path in session.recorder.files:
        print(f"Written: {path}", file=sys.stderr)
    if monitor.sample_counts.samples:
        print(f"{monitor.sample_counts}.", file=sys.stderr)
    if session.end_reason:
        print(f"Ended: {session.end_reason}", file=sys.stderr)
        raise typer.Exit(1)


def _wait_for_end(session: Session, options: MonitorOptions) -> None:
    """Wait for Ctrl-C, for the given duration or, when publishing, for the end of the source."""
    session.is_finished.wait(options.seconds)
    if session.is_finished.is_set() and options.publish is None and options.seconds is None:
        if session.end_reason:
            return
        print("The source has ended; the page stays until Ctrl-C.", file=sys.stderr)
        session.stop_requested.wait()


def _open_monitored(
    name: str, reading: RecordingOptions, options: MonitorOptions, model: FittedModel
) -> tuple[Source | Recording, str]:
    """Source to monitor, and its description."""
    from taufit.core.endings import missing_file_text
    from taufit.core.errors import RecordingError
    from taufit.recording.read import READERS
    from taufit.wire.source_address import open_source, parse_address, parse_ports

    path = Path(name)
    if path.exists():
        if options.record is not None:
            usage_error("--record", f"{name} is a recording already: leave it out.")
        return reading.read_single(path), f"recording {path.name}"
    if path.suffix.lower() in READERS:
        raise RecordingError(missing_file_text(name))
    address, ports = parse_address(name), parse_ports(options.ports)

    def open_connection() -> Source:
        return open_source(
            address,
            ports=ports,
            rate_hz=options.rate_hz,
            torque_kind=reading.torque_kind,
            joints=model.robot.joint_names,
        )

    _require_same_robot(open_connection(), address, ports, model, options.force)
    return open_connection(), name


def _require_same_robot(
    source: Source,
    address: SourceAddress,
    ports: UrPorts,
    model: FittedModel,
    ignore_difference: bool,
) -> None:
    """Raise if the controller reports another robot than that of the model."""
    from taufit.clearance import compare_arms
    from taufit.core.errors import RobotError
    from taufit.wire.controller_report import query_controller
    from taufit.wire.source import newest_block

    description = source.connect()
    try:
        if description.joints != model.robot.joints:
            return
        report = query_controller(address, ports, description, newest_block(source))
    finally:
        source.close()
    comparison = compare_arms(model.robot, report)
    for text in comparison.notes:
        print(f"note: {text}", file=sys.stderr)
    if comparison.reasons and not ignore_difference:
        raise RobotError("; ".join(comparison.reasons) + ". --force goes on nevertheless.")
    for text in comparison.reasons:
        print(f"warning: {text}", file=sys.stderr)
    if not (comparison.is_identified or comparison.reasons):
        print(
            f"note: {report.controller} does not report which arm it moves; taken for a "
            f"{model.robot.name}",
            file=sys.stderr,
        )


def _detectable_steps(monitor: Monitor) -> Callable[[float], list[float] | None]:
    """Smallest detectable step of external torque per joint, as function of the threshold."""
    from math import isfinite

    from taufit.contact import detectable_torque_steps

    @lru_cache(16)
    def steps(threshold: float) -> list[float] | None:
        if not isfinite(threshold):
            return None
        return [
            float(x) for x in detectable_torque_steps(monitor.contact_detector.noise, threshold)
        ]

    return steps
