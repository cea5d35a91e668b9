"""`taufit record`: a robot that is on, recorded, with or without a motion played on it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Ports, Rate, wrong
from taufit.cli.parts.play import (
    Planned,
    PlayOptions,
    length_of,
    player_for,
    read_planned,
    show_reach,
)

if TYPE_CHECKING:
    from taufit.wire.open import Address
    from taufit.wire.recorder import Recorded
    from taufit.wire.source import Block, Description, Source
    from taufit.wire.ur import UrPorts


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where the samples come from and what they are."""

    robot: Annotated[
        str | None, typer.Option(help="The arm, for its limits; by default the motion's.")
    ] = None
    effort: Annotated[
        str | None,
        typer.Option(help="Torque channel of ros2: torque, current, torque_without_gravity, raw."),
    ] = None
    rate_hz: Rate = None
    ports: Ports = ""
    payload: Annotated[
        float | None, typer.Option(help="Mass on the flange [kg], for the recording.", min=0)
    ] = None


def command(
    source: Annotated[
        str,
        typer.Argument(
            help="Host of a UR controller, ros2:/TOPIC, franka:HOST, egm:PORT, realtime:HOST.",
            metavar="SOURCE",
        ),
    ],
    play: PlayOptions,
    settings: SourceOptions,
    motion: Annotated[
        Path | None, typer.Argument(help="What `taufit design` wrote; none: only listen.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording to write.")] = Path(
        "recording.parquet"
    ),
    seconds: Annotated[
        float | None, typer.Option(help="End after this long; else Ctrl-C ends it.", min=0.1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Record a robot that is on, and play a motion on it if one is given.

    With a motion: connect, check, show what will move and ask, play one slow period, then record
    the motion. Ctrl-C stops the robot. Every sample is on disk within a second; a recording cut
    short by a crash is read with `taufit convert`.

    Next: `taufit convert RECORDING --report` says how good it is, `taufit fit` fits a model.
    """
    from taufit.wire.open import open_source, parse, parse_ports
    from taufit.wire.recorder import BY_HAND

    address = parse(source)
    ports = parse_ports(settings.ports)
    if output.suffix != ".parquet":
        wrong("-o", "a recording is written as .parquet")
    planned = None if motion is None else read_planned(motion, address, play, settings.robot)
    if play.dry_run:
        if planned is None:
            wrong("--dry-run", "there is nothing to send without a motion")
        show_reach(planned, None)
        print(planned.sent(address))
        return
    line = open_source(
        address,
        ports=ports,
        rate_hz=settings.rate_hz,
        effort=settings.effort,
        joints=None if planned is None else planned.robot.joint_names,
    )
    done = _run(line, planned, address, ports, output, seconds, play, settings)
    _report(done, planned, as_json)
    if done.ended and not (done.ended == BY_HAND and planned is None):
        raise typer.Exit(1)


def _run(
    line: Source,
    planned: Planned | None,
    address: Address,
    ports: UrPorts,
    output: Path,
    seconds: float | None,
    play: PlayOptions,
    settings: SourceOptions,
) -> Recorded:
    """Connect, check, ask, play and record."""
    from taufit.wire.recorder import record

    description = line.connect()
    try:
        first = _first(line)
        meta = _about(address, ports, first)
        player = None
        if planned is not None:
            meta["robot"] = planned.robot.name
            _check(first, meta)
            _ask(planned, first, play.yes)
            player = player_for(planned, address, ports, first, description)
    except BaseException:
        line.close()
        raise
    length = seconds if planned is None else length_of(planned)
    with progress("recording") as bar:
        task = bar.add_task("recording", total=length)
        done = record(
            line,
            output,
            seconds=seconds,
            player=player,
            description=description,
            tick=lambda now: bar.update(task, completed=now),
            meta=meta,
            about=_known(planned, first, description, settings),
        )
    for text in player.notes.texts if player is not None else ():
        print(text, file=sys.stderr)
    return done


def _known(
    planned: Planned | None, first: Block, description: Description, settings: SourceOptions
) -> dict[str, Any]:
    """Payload, and the drive gains where the arm's description has them."""
    import numpy as np

    payload = settings.payload
    if payload is None and "payload" in first.status:
        payload = first.last("payload", 0.0)
    out: dict[str, Any] = {"payload": payload}
    arm = None if planned is None else planned.robot
    if arm is None and settings.robot is not None:
        from taufit.robot import read_robot

        arm = read_robot(settings.robot)
    if arm is not None and description.effort == "current" and np.any(arm.drives.gain != 1.0):
        out.update(gain=arm.drives.gain.copy(), gain_std=arm.drives.gain_std.copy())
    return out


def _first(line: Source) -> Block:
    """The first samples: where the arm is, and in which state."""
    import time

    from taufit.core.errors import WireError

    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        block = line.read(0.5)
        if block is not None:
            return block
    raise WireError("connected, but no sample came within 10 s.")


def _about(address: Address, ports: UrPorts, first: Block) -> dict[str, Any]:
    """What a Universal Robots controller says about its arm."""
    from taufit.wire.ur_player import about, calibration, mounting_of

    if address.kind != "ur":
        return {}
    meta: dict[str, Any] = dict(about(address.place, ports))
    table = calibration(address.place, ports)
    if table is not None:
        meta["dh"] = table.to_dict()
    gravity = first.status.get("target_gravity")
    mounting = None if gravity is None else mounting_of(gravity[-1])
    if mounting is not None:
        meta["mounting"] = list(mounting)
    return meta


def _check(first: Block, meta: dict[str, Any]) -> None:
    from taufit.core.errors import WireError
    from taufit.wire.ur_player import ready

    obstacles = ready(first)
    if meta.get("remote_control", "true") == "false":
        obstacles.append("the controller is in local control; switch it to remote control")
    if obstacles:
        raise WireError("the robot cannot be moved: " + "; ".join(obstacles) + ".")


def _ask(planned: Planned, first: Block, yes: bool) -> None:
    import numpy as np

    here = np.asarray(first.values["position"][-1], float)
    show_reach(planned, here)
    if yes:
        return
    if not sys.stdin.isatty():
        wrong("--yes", "the robot will move and nobody can be asked; give --yes if that is meant")
    if not typer.confirm("The robot will move now. Is its space free?", err=True):
        raise typer.Exit(1)


def _report(done: Recorded, planned: Planned | None, as_json: bool) -> None:
    """Counts, and how good the recording is."""
    from taufit.core.errors import TaufitError
    from taufit.signals import quality_report

    findings = list(done.recording.findings)
    if len(done.recording) > 100:
        try:
            findings += quality_report(
                done.recording, robot=None if planned is None else planned.robot
            )
        except TaufitError as error:
            print(f"no quality report: {error}", file=sys.stderr)
    if as_json:
        listed = [{"kind": f.kind, "joint": f.joint, "message": f.message} for f in findings]
        print_json({**done.to_dict(), "findings": listed})
        return
    print(
        f"{done.path}: {done.samples} samples, {done.seconds:.2f} s, {done.lost} lost, "
        f"{done.duplicated} duplicated"
    )
    for finding in findings:
        print(f"  {finding}")
    if done.ended:
        print(f"Ended early: {done.ended}", file=sys.stderr)
    print(f"Next: taufit convert {done.path} --report")
