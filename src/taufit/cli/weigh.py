"""`taufit weigh`: payload of a running robot, set at its controller."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import Json, Model, Ports, usage_error
from taufit.cli.parts.next_step import next_step
from taufit.cli.parts.playback import PlayOptions, read_planned_motion
from taufit.cli.record import SourceOptions, play_and_record

if TYPE_CHECKING:
    from taufit.live.weighing import ControllerPayload, PayloadWatch
    from taufit.model.fitted_model import FittedModel
    from taufit.payload import PayloadEstimate, PayloadSettings
    from taufit.payload.controller_commands import FlangePayload
    from taufit.wire.source import SourceDescription
    from taufit.wire.source_address import SourceAddress
    from taufit.wire.ur import UrPorts


# Periods of the motion at most; it stops earlier when accurate.
_PERIODS = 30.0


def command(  # noqa: PLR0913 - one parameter per option
    source: Annotated[
        str, typer.Argument(help="Host of a UR controller, or franka:HOST.", metavar="SOURCE")
    ],
    model: Model,
    play: PlayOptions,
    motion: Annotated[
        Path | None,
        typer.Argument(help="Motion of `taufit design --kind payload`; default planned."),
    ] = None,
    ports: Ports = "",
    accuracy: Annotated[
        float,
        typer.Option(help="Relative standard deviation of the mass to stop at.", min=1e-4, max=0.5),
    ] = 0.005,
    seconds: Annotated[
        float, typer.Option(help="Longest motion without the accuracy [s].", min=1)
    ] = 240.0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the payload of the controller as it is.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording to write.")] = Path(
        "weighing.parquet"
    ),
    as_json: Json = False,
) -> None:
    """Weigh what a running robot carries, stop when accurate, and set it at the controller.

    On a UR controller the payload motion is verified, shown, asked for and played as `taufit
    record` does; on a Franka robot the motion of its own program is used. The motion stops as soon
    as the mass is as accurate as wanted. The controller's payload is then set after a question
    (--yes: without) and read back.

    Exits with 1 if the accuracy was not reached; nothing is set then.

    Next: guide the robot by hand, or give the payload to `taufit check --payload`.
    """
    from taufit.live.weighing import PayloadWatch
    from taufit.model.model_file import read_model
    from taufit.payload import PayloadSettings
    from taufit.wire.source_address import parse_address, parse_ports

    address, port_numbers = parse_address(source), parse_ports(ports)
    if address.kind not in ("ur", "franka"):
        usage_error("SOURCE", "a UR controller (HOST) or a Franka robot (franka:HOST) is needed")
    if output.suffix != ".parquet":
        usage_error("-o", "a recording is written as .parquet")
    fitted = read_model(model)
    if play.periods is None:
        play = replace(play, periods=_PERIODS)
    settings = PayloadSettings(mass_accuracy=accuracy)
    watches: list[PayloadWatch] = []

    def watch(description: SourceDescription) -> Any:
        watches.append(PayloadWatch(fitted, description, settings))
        return watches[-1].add

    weigh = _weigh_on_ur if address.kind == "ur" else _weigh_on_franka
    ending = weigh(address, port_numbers, fitted, motion, play, seconds, output, watch)
    if not watches:
        raise typer.Exit(1)
    estimate, accurate = watches[-1].estimate(), watches[-1].is_accurate
    controller_value = None
    if accurate and not keep:
        controller_value = _set(address, port_numbers, fitted, estimate, play.yes)
    _report(estimate, accurate, controller_value, ending, settings, output, as_json, model)
    if not accurate:
        raise typer.Exit(1)


def _weigh_on_ur(
    address: SourceAddress,
    ports: UrPorts,
    model: FittedModel,
    motion: Path | None,
    play: PlayOptions,
    seconds: float,
    output: Path,
    watch: Any,
) -> tuple[float, str]:
    """Play the payload motion until the watch ends it; time used and reason of an early end."""
    from taufit.wire.source_address import open_source

    if motion is None:
        motion = output.with_suffix(".motion.json")
        _plan_motion(model, motion)
    planned = read_planned_motion(motion, address, play, None)
    connection = open_source(address, ports=ports, joints=planned.robot.joint_names)
    recorded = play_and_record(
        connection, planned, address, ports, output, seconds, play, SourceOptions(), watch
    )
    return recorded.seconds, recorded.ended


def _plan_motion(model: FittedModel, path: Path) -> None:
    """Plan a payload motion of the model's robot and write it with its clearance."""
    from taufit.clearance import Cell, clearance_block
    from taufit.excitation import mounting_plane, plan, scene_for, write_motion
    from taufit.excitation.plan import CLEARANCE
    from taufit.robot import bundled_robots, read_robot

    if model.robot.name not in bundled_robots():
        usage_error("MOTION", "plan one with `taufit design ROBOT --kind payload` and give it here")
    robot = read_robot(model.robot.name).with_mounting(model.robot.mounting)
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=CLEARANCE)
    planned = plan("payload", robot, scene=scene)
    cell = Cell.of(scene, planned.limits, float("inf"), None)
    block = clearance_block(planned.motion, robot, cell)
    about = {"robot": robot.name, "mounting": list(robot.mounting)}
    write_motion(planned.motion, path, clearance=block, **about)
    print(f"planned: {path}", file=sys.stderr)


def _weigh_on_franka(
    address: SourceAddress,
    ports: UrPorts,
    model: FittedModel,
    motion: Path | None,
    play: PlayOptions,
    seconds: float,
    output: Path,
    watch: Any,
) -> tuple[float, str]:
    """Record the robot's own motion until the watch ends it."""
    from taufit.wire.recorder import record
    from taufit.wire.source_address import open_source

    if motion is not None:
        usage_error("MOTION", "a Franka robot moves by its own program; start it and leave this")
    connection = open_source(address, ports=ports)
    description = connection.connect()
    recorded = record(
        connection,
        output,
        seconds=seconds,
        description=description,
        meta={"robot": model.robot.name},
        until=watch(description),
    )
    return recorded.seconds, recorded.ended


def _set(
    address: SourceAddress,
    ports: UrPorts,
    model: FittedModel,
    estimate: PayloadEstimate,
    yes: bool,
) -> ControllerPayload | None:
    """Set the payload at the controller after asking; None if the user declines."""
    from taufit.live.weighing import flange_payload, set_controller_payload
    from taufit.wire.source_address import open_source

    payload: FlangePayload = flange_payload(estimate, model)
    if not yes:
        if not sys.stdin.isatty():
            usage_error("--yes", "nobody can be asked; give --yes to set the payload, or --keep")
        text = f"Set {payload.mass:.3f} kg at {_millimetres(payload.centre)} at the controller?"
        if not typer.confirm(text, err=True):
            return None
    connection = open_source(address, ports=ports)
    connection.connect()
    try:
        # The stop of the motion may still run.
        time.sleep(0.5)
        return set_controller_payload(connection, payload, ports)
    finally:
        connection.close()


def _millimetres(centre: Any) -> str:
    return "(" + ", ".join(f"{1e3 * x:.0f}" for x in centre) + ") mm"


def _report(
    estimate: PayloadEstimate,
    accurate: bool,
    held: ControllerPayload | None,
    ending: tuple[float, str],
    settings: PayloadSettings,
    output: Path,
    as_json: bool,
    model: Path,
) -> None:
    seconds, reason = ending
    if as_json:
        print_json(
            {
                **estimate.to_dict(),
                "accurate": accurate,
                "seconds": seconds,
                "ended": reason,
                "set": held is not None,
                "read_back": None
                if held is None
                else {"mass": held.mass, "com": held.centre.tolist()},
                "output": str(output),
            }
        )
        return
    low, high = estimate.mass_interval
    print(
        f"{estimate.mass:.3f} kg, 95 % interval {low:.3f} to {high:.3f} kg, centre "
        f"{_millimetres(estimate.centre)} in the last link's frame, after {seconds:.1f} s"
    )
    if not accurate:
        print(
            f"Not accurate to {100 * settings.mass_accuracy:g} %{f': {reason}' if reason else ''}. "
            "Nothing was set; move longer (--seconds) or with a wider motion.",
            file=sys.stderr,
        )
    elif held is not None:
        print(f"Set at the controller and read back: {held.mass:.3f} kg")
    print(f"Written: {output}")
    payload = ",".join(f"{x:.4g}" for x in (estimate.mass, *estimate.centre))
    print(next_step("check", model, output, "--payload", payload))
