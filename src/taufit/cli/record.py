"""`taufit record`: recording of a running robot, with or without a trajectory played."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Ports, Rate, usage_error
from taufit.cli.options.option_groups import FormerName
from taufit.cli.parts.next_step import next_step
from taufit.cli.parts.playback import (
    PlannedMotion,
    PlayOptions,
    read_planned_motion,
    show_planned_motion,
)
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.clearance import Clearance, RobotComparison
    from taufit.wire.controller_report import ControllerReport
    from taufit.wire.recorder import RecordingResult
    from taufit.wire.source import SampleBlock, Source, SourceDescription
    from taufit.wire.source_address import SourceAddress
    from taufit.wire.ur import UrPorts


# Largest displacement of the robot since it was shown [rad].
_MAX_DISPLACEMENT = 0.01


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Source of the samples."""

    robot: Annotated[
        str | None,
        typer.Option(help="Robot; default that of the motion. Compared with the source."),
    ] = None
    torque_kind: Annotated[
        str | None,
        typer.Option(
            help="Torque channel of ros2: torque, current, torque_without_gravity or raw."
        ),
        FormerName("--effort"),
    ] = None
    rate_hz: Rate = None
    ports: Ports = ""
    payload: Annotated[
        float | None, typer.Option(help="Mass on the flange [kg], stored in the recording.", min=0)
    ] = None


def command(
    source: Annotated[
        str,
        typer.Argument(
            help="Host of a UR controller, ros2:/TOPIC, franka:HOST, egm:PORT or realtime:HOST.",
            metavar="SOURCE",
        ),
    ],
    play: PlayOptions,
    settings: SourceOptions,
    motion: Annotated[
        Path | None, typer.Argument(help="Motion file of `taufit design`; none: record only.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording to write.")] = Path(
        "recording.parquet"
    ),
    seconds: Annotated[
        float | None, typer.Option(help="Duration [s]; default until Ctrl-C.", min=0.1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Record a running robot, and play a trajectory on it if one is given.

    With a trajectory: connect, compare the robot with that of the motion, verify limits and
    clearances of everything that will be played, show it and ask; verify again from the present
    pose, play one slow period and record the motion. Ctrl-C stops the robot. Samples are on disk
    within a second; `taufit convert` reads a recording interrupted by a crash.

    Next: `taufit convert RECORDING --report` reports its quality, `taufit fit` fits a model.
    """
    from taufit.wire.recorder import STOPPED_BY_USER
    from taufit.wire.source_address import open_source, parse_address, parse_ports

    address = parse_address(source)
    ports = parse_ports(settings.ports)
    if output.suffix != ".parquet":
        usage_error("-o", "a recording is written as .parquet")
    planned = None if motion is None else read_planned_motion(motion, address, play, settings.robot)
    if play.dry_run:
        if planned is None:
            usage_error("--dry-run", "there is nothing to send without a motion")
        _dry_run(planned, address, as_json)
        return
    if planned is not None:
        # Motions that no robot could play are rejected before connecting.
        _require_cleared(planned, planned.check.clear(None), ())
    connection = open_source(
        address,
        ports=ports,
        rate_hz=settings.rate_hz,
        torque_kind=settings.torque_kind,
        joints=None if planned is None else planned.robot.joint_names,
    )
    recorded = play_and_record(connection, planned, address, ports, output, seconds, play, settings)
    _report(recorded, planned, as_json)
    if recorded.ended and not (recorded.ended == STOPPED_BY_USER and planned is None):
        raise typer.Exit(1)


def play_and_record(  # noqa: PLR0913 - one parameter per part of the connection
    connection: Source,
    planned: PlannedMotion | None,
    address: SourceAddress,
    ports: UrPorts,
    output: Path,
    seconds: float | None,
    play: PlayOptions,
    settings: SourceOptions,
    watch: Callable[[SourceDescription], Callable[[SampleBlock], bool]] | None = None,
) -> RecordingResult:
    """Connect, verify, ask, play and record; `watch` makes a function that may end it."""
    from taufit.wire.controller_report import query_controller
    from taufit.wire.recorder import record
    from taufit.wire.source import newest_block

    description = connection.connect()
    try:
        first = newest_block(connection)
        report = query_controller(address, ports, description, first)
        meta = report.to_dict()
        player = guard = None
        if planned is not None:
            meta["robot"] = planned.robot.name
            identity = _identity(planned, report)
            first_clearance = _require_clearance(planned, first, identity, report.remote_control)
            _confirm_motion(planned, first_clearance, first, identity, play.yes)
            # Time may have passed since the question: verify everything again.
            latest = newest_block(connection)
            remote_control = _remote_control(address, ports)
            _require_same_pose(planned, first, latest)
            clearance = _require_clearance(planned, latest, identity, remote_control)
            player = planned.player(clearance, address, ports, description)
            guard = planned.guard(clearance)
    except BaseException:
        connection.close()
        raise
    length = seconds if planned is None else planned.duration_s
    with progress("recording") as bar:
        task = bar.add_task("recording", total=length)
        recorded = record(
            connection,
            output,
            seconds=seconds,
            player=player,
            guard=guard,
            description=description,
            callback=lambda now: bar.update(task, completed=now),
            meta=meta,
            about=_recording_attributes(planned, first, description, settings),
            until=None if watch is None else watch(description),
        )
    for text in player.notices.texts if player is not None else ():
        print(text, file=sys.stderr)
    return recorded


def _recording_attributes(
    planned: PlannedMotion | None,
    first: SampleBlock,
    description: SourceDescription,
    settings: SourceOptions,
) -> dict[str, Any]:
    """Payload and, if the robot description has them, drive gains."""
    import numpy as np

    payload = settings.payload
    if payload is None and "payload" in first.status:
        payload = first.last("payload", 0.0)
    attributes: dict[str, Any] = {"payload": payload}
    arm = None if planned is None else planned.robot
    if arm is None and settings.robot is not None:
        from taufit.robot import read_robot

        arm = read_robot(settings.robot)
    if arm is not None and description.torque_kind == "current" and np.any(arm.drives.gain != 1.0):
        attributes.update(gain=arm.drives.gain.copy(), gain_std=arm.drives.gain_std.copy())
    return attributes


def _dry_run(planned: PlannedMotion, address: SourceAddress, as_json: bool) -> None:
    """Verify without the robot, and print the program or trajectory."""
    clearance = planned.check.clear(None)
    accept = planned.play.uncertified
    reasons = clearance.refusals(accept_uncertified=accept)
    note = (
        "which arm is on the wire, where it stands and the way from there; what is shown here "
        "begins at the start"
    )
    if as_json:
        page = {
            "cleared": not reasons,
            "reasons": reasons,
            "uncertified": list(clearance.uncertified),
            "notes": [*clearance.notes, f"checked later: {note}"],
        }
        print_json({**page, "sent": "" if reasons else planned.program_text(clearance, address)})
    else:
        show_planned_motion(planned, clearance, None, [f"checked later: {note}"])
        for text in reasons:
            print(f"not cleared: {text}", file=sys.stderr)
        if not reasons:
            print(planned.program_text(clearance, address))
    if reasons:
        raise typer.Exit(1)


def _identity(planned: PlannedMotion, report: ControllerReport) -> RobotComparison:
    """Compare the connected robot with that of the motion."""
    from dataclasses import replace

    from taufit.clearance import compare_arms

    comparison = compare_arms(planned.robot, report)
    if comparison.is_identified or comparison.reasons:
        return comparison
    if planned.robot_given:
        note = (
            f"{report.controller} does not report which arm it moves: {planned.robot.name} is what "
            "--robot says"
        )
        return replace(comparison, notes=(*comparison.notes, note))
    reason = (
        f"{report.controller} does not report which arm it moves. If it is a {planned.robot.name}, "
        f"say so with --robot {planned.file.robot_name}"
    )
    return replace(comparison, reasons=(reason,))


def _require_clearance(
    planned: PlannedMotion, block: SampleBlock, identity: RobotComparison, remote_control: str
) -> Clearance:
    """Clearance from the present pose; raises with all reasons if it is not given."""
    import numpy as np

    from taufit.core.errors import WireError
    from taufit.wire.ur_player import blocking_reasons

    obstacles = blocking_reasons(block)
    if remote_control == "false":
        obstacles.append("the controller is in local control; switch it to remote control")
    if obstacles:
        raise WireError("the robot cannot be moved: " + "; ".join(obstacles) + ".")
    pose = np.asarray(block.values["position"][-1], float)
    clearance = planned.check.clear(pose)
    _require_cleared(planned, clearance, identity.reasons)
    return clearance


def _require_cleared(
    planned: PlannedMotion, clearance: Clearance, other_reasons: tuple[str, ...]
) -> None:
    """Raise with all reasons if the motion is not cleared."""
    from taufit.core.errors import InfeasibleError

    refusals = clearance.refusals(accept_uncertified=planned.play.uncertified)
    reasons = [*other_reasons, *refusals]
    if reasons:
        raise InfeasibleError(f"{planned.file.path} is not cleared: " + "; ".join(reasons) + ".")


def _require_same_pose(planned: PlannedMotion, first: SampleBlock, latest: SampleBlock) -> None:
    """Raise if the robot has moved since its pose was shown."""
    import numpy as np

    from taufit.core.errors import WireError

    old_pose, new_pose = (
        np.asarray(block.values["position"][-1], float) for block in (first, latest)
    )
    displacement = np.abs(new_pose - old_pose)
    if displacement.max() > _MAX_DISPLACEMENT:
        joint = int(displacement.argmax())
        raise WireError(
            f"the arm was moved while the question waited: {planned.robot.joint_names[joint]} "
            f"stood at {old_pose[joint]:.2f} and is at {new_pose[joint]:.2f} rad. Start again, "
            f"to see "
            "what would be played from there."
        )


def _remote_control(address: SourceAddress, ports: UrPorts) -> str:
    from taufit.wire.ur_player import controller_info

    if address.kind != "ur":
        return ""
    return controller_info(address.location, ports).get("remote_control", "")


def _confirm_motion(
    planned: PlannedMotion,
    clearance: Clearance,
    first: SampleBlock,
    identity: RobotComparison,
    yes: bool,
) -> None:
    import numpy as np

    pose = np.asarray(first.values["position"][-1], float)
    show_planned_motion(planned, clearance, pose, list(identity.notes))
    if yes:
        return
    if not sys.stdin.isatty():
        usage_error(
            "--yes", "the robot will move and nobody can be asked; give --yes if that is meant"
        )
    if not typer.confirm("The robot will move now. Is its space free?", err=True):
        raise typer.Exit(1)


def _report(recorded: RecordingResult, planned: PlannedMotion | None, as_json: bool) -> None:
    """Print sample counts and the quality of the recording."""
    from taufit.core.errors import TaufitError
    from taufit.signals import quality_report

    findings = list(recorded.recording.findings)
    if len(recorded.recording) > 100:
        try:
            findings += quality_report(
                recorded.recording, robot=None if planned is None else planned.robot
            )
        except TaufitError as error:
            print(f"no quality report: {error}", file=sys.stderr)
    if as_json:
        plain_findings = [
            {"kind": f.kind, "joint": f.joint, "message": f.message} for f in findings
        ]
        print_json({**recorded.to_dict(), "findings": plain_findings})
        return
    print(
        f"{recorded.path}: {recorded.samples} samples, {recorded.seconds:.2f} s, {recorded.lost} "
        f"lost, "
        f"{recorded.duplicated} duplicated"
    )
    for finding in findings:
        print(f"  {finding}")
    if recorded.ended:
        print(f"Ended early: {recorded.ended}", file=sys.stderr)
    print(next_step("convert", recorded.path, "--report"))
