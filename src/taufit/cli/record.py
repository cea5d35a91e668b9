"""`taufit record`: a robot that is on, recorded, with or without a motion played on it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Ports, Rate, usage_error
from taufit.cli.parts.play import Planned, PlayOptions, read_planned, show_reach

if TYPE_CHECKING:
    from taufit.clearance import Clearance, RobotComparison
    from taufit.wire.identity import ControllerReport
    from taufit.wire.open import Address
    from taufit.wire.recorder import Recorded
    from taufit.wire.source import Block, Description, Source
    from taufit.wire.ur import UrPorts


# How far an arm may have moved since it was shown [rad].
_MOVED = 0.01


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where the samples come from and what they are."""

    robot: Annotated[
        str | None, typer.Option(help="The arm; by default the motion's, compared with the wire.")
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

    With a motion: connect, compare the arm with the motion's, prove that all that will be played
    keeps limits and distances, show it and ask; then prove it anew from where the arm stands, play
    one slow period and record the motion. Ctrl-C stops the robot. Every sample is on disk within a
    second; a recording cut short by a crash is read with `taufit convert`.

    Next: `taufit convert RECORDING --report` says how good it is, `taufit fit` fits a model.
    """
    from taufit.wire.open import open_source, parse, parse_ports
    from taufit.wire.recorder import BY_HAND

    address = parse(source)
    ports = parse_ports(settings.ports)
    if output.suffix != ".parquet":
        usage_error("-o", "a recording is written as .parquet")
    planned = None if motion is None else read_planned(motion, address, play, settings.robot)
    if play.dry_run:
        if planned is None:
            usage_error("--dry-run", "there is nothing to send without a motion")
        _dry_run(planned, address, as_json)
        return
    if planned is not None:
        # What no arm could play is refused before anything is connected.
        _require_cleared(planned, planned.check.clear(None), ())
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
    from taufit.wire.identity import ask_controller
    from taufit.wire.recorder import record
    from taufit.wire.source import newest_block

    description = line.connect()
    try:
        first = newest_block(line)
        report = ask_controller(address, ports, description, first)
        meta = report.to_dict()
        player = guard = None
        if planned is not None:
            meta["robot"] = planned.robot.name
            identity = _identity(planned, report)
            shown = _cleared(planned, first, identity, report.remote_control)
            _ask(planned, shown, first, identity, play.yes)
            # The person may have thought for long: all of it again, from what is true now.
            latest = newest_block(line)
            remote = _remote_control(address, ports)
            _require_unmoved(planned, first, latest)
            clearance = _cleared(planned, latest, identity, remote)
            player = planned.player(clearance, address, ports, description)
            guard = planned.guard(clearance)
    except BaseException:
        line.close()
        raise
    length = seconds if planned is None else planned.length
    with progress("recording") as bar:
        task = bar.add_task("recording", total=length)
        done = record(
            line,
            output,
            seconds=seconds,
            player=player,
            guard=guard,
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


def _dry_run(planned: Planned, address: Address, as_json: bool) -> None:
    """Prove what can be without the robot, and show what would be sent."""
    clearance = planned.check.clear(None)
    accept = planned.play.uncertified
    reasons = clearance.refusals(accept_uncertified=accept)
    later = (
        "which arm is on the wire, where it stands and the way from there; what is shown here "
        "begins at the start"
    )
    if as_json:
        page = {
            "cleared": not reasons,
            "reasons": reasons,
            "uncertified": list(clearance.uncertified),
            "notes": [*clearance.notes, f"checked later: {later}"],
        }
        print_json({**page, "sent": "" if reasons else planned.sent(clearance, address)})
    else:
        show_reach(planned, clearance, None, [f"checked later: {later}"])
        for text in reasons:
            print(f"not cleared: {text}", file=sys.stderr)
        if not reasons:
            print(planned.sent(clearance, address))
    if reasons:
        raise typer.Exit(1)


def _identity(planned: Planned, report: ControllerReport) -> RobotComparison:
    """The arm on the wire, compared with the one the motion is for."""
    from dataclasses import replace

    from taufit.clearance import compare_arms

    found = compare_arms(planned.robot, report)
    if found.is_identified or found.reasons:
        return found
    if planned.robot_given:
        note = (
            f"{report.controller} does not report which arm it moves: {planned.robot.name} is what "
            "--robot says"
        )
        return replace(found, notes=(*found.notes, note))
    reason = (
        f"{report.controller} does not report which arm it moves. If it is a {planned.robot.name}, "
        f"say so with --robot {planned.file.robot_name}"
    )
    return replace(found, reasons=(reason,))


def _cleared(planned: Planned, block: Block, identity: RobotComparison, remote: str) -> Clearance:
    """The clearance from where the arm stands; refused with every reason."""
    import numpy as np

    from taufit.core.errors import WireError
    from taufit.wire.ur_player import motion_blockers

    obstacles = motion_blockers(block)
    if remote == "false":
        obstacles.append("the controller is in local control; switch it to remote control")
    if obstacles:
        raise WireError("the robot cannot be moved: " + "; ".join(obstacles) + ".")
    here = np.asarray(block.values["position"][-1], float)
    clearance = planned.check.clear(here)
    _require_cleared(planned, clearance, identity.reasons)
    return clearance


def _require_cleared(planned: Planned, clearance: Clearance, others: tuple[str, ...]) -> None:
    """Refuse what is not cleared, with every reason."""
    from taufit.core.errors import InfeasibleError

    refusals = clearance.refusals(accept_uncertified=planned.play.uncertified)
    reasons = [*others, *refusals]
    if reasons:
        raise InfeasibleError(f"{planned.file.path} is not cleared: " + "; ".join(reasons) + ".")


def _require_unmoved(planned: Planned, shown: Block, latest: Block) -> None:
    """Refuse to start from a pose that nobody was shown."""
    import numpy as np

    from taufit.core.errors import WireError

    before, now = (np.asarray(block.values["position"][-1], float) for block in (shown, latest))
    moved = np.abs(now - before)
    if moved.max() > _MOVED:
        joint = int(moved.argmax())
        raise WireError(
            f"the arm was moved while the question waited: {planned.robot.joint_names[joint]} "
            f"stood at {before[joint]:.2f} and is at {now[joint]:.2f} rad. Start again, to see "
            "what would be played from there."
        )


def _remote_control(address: Address, ports: UrPorts) -> str:
    from taufit.wire.ur_player import controller_info

    if address.kind != "ur":
        return ""
    return controller_info(address.place, ports).get("remote_control", "")


def _ask(
    planned: Planned, clearance: Clearance, first: Block, identity: RobotComparison, yes: bool
) -> None:
    import numpy as np

    here = np.asarray(first.values["position"][-1], float)
    show_reach(planned, clearance, here, list(identity.notes))
    if yes:
        return
    if not sys.stdin.isatty():
        usage_error(
            "--yes", "the robot will move and nobody can be asked; give --yes if that is meant"
        )
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
