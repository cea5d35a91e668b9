"""`taufit simulate --serve`: virtual controller for clients of the real one."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.parts.next_step import next_step
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.excitation import Motion
    from taufit.sim import CarriedPayload, Twin


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Virtual controller instead of a recording."""

    serve: Annotated[
        bool, typer.Option("--serve", help="Run a virtual controller until Ctrl-C.")
    ] = False
    bind: Annotated[str, typer.Option(help="Address of this computer to listen on.")] = "127.0.0.1"
    ports: Annotated[
        str, typer.Option(help="Ports: `standard` (of the real controller) or `free` (any).")
    ] = "standard"
    seconds: Annotated[
        float | None, typer.Option(help="Duration in simulated time [s].", min=0)
    ] = None
    pace: Annotated[float, typer.Option(help="Speed relative to real time.", min=0.01, max=100)] = (
        1.0
    )
    protocol: Annotated[
        str,
        typer.Option(help="Protocol: ur (six joints), franka (seven) or egm; default by joints."),
    ] = ""
    software: Annotated[
        str, typer.Option(help="Controller version, e.g. 3.15 (CB3) or 5.23 (e-Series).")
    ] = "5.23"


@dataclass(frozen=True, slots=True, eq=False)
class VirtualControllerConfig:
    """Configuration of a virtual controller.

    Attributes:
        twin: Simulated robot.
        carried: Payloads.
        seed: Seed of all random values.
        motion: Motion it plays, for protocols that are only read.
        options: Server options.
    """

    twin: Twin
    payloads: tuple[CarriedPayload, ...]
    seed: int
    motion: Callable[[], Motion]
    options: ServeOptions


def run_virtual_controller(config: VirtualControllerConfig, as_json: bool) -> None:
    """Run a virtual controller; its first line on stdout gives its ports."""
    options, twin = config.options, config.twin
    if options.ports not in ("standard", "free"):
        raise typer.BadParameter("ports are `standard` or `free`.", param_hint="--ports")
    servers = {"ur": _ur_server, "franka": _franka_server, "egm": _egm_server}
    protocol = options.protocol or ("franka" if twin.robot.joints == 7 else "ur")
    if protocol not in servers:
        raise typer.BadParameter(
            f"there is no protocol {protocol!r}; there are {', '.join(servers)}.",
            param_hint="--protocol",
        )
    if not options.bind.startswith("127.") and options.bind not in ("localhost", "::1"):
        print(
            f"listening on {options.bind}: whoever reaches this address can move this virtual arm.",
            file=sys.stderr,
        )
    run, stop, about = servers[protocol](config)

    def ready() -> None:
        page = {"protocol": protocol, "robot": twin.robot.name, "host": options.bind, **about()}
        if as_json:
            print(json.dumps(page), flush=True)
            return
        port_list = ", ".join(f"{name} {port}" for name, port in page["ports"].items())
        print(
            f"virtual {twin.robot.name} on {page['host']}: {port_list}. Ctrl-C ends it.", flush=True
        )
        source = {"ur": page["host"], "franka": f"franka:{page['host']}"}
        ports = ",".join(f"{name}={port}" for name, port in page["ports"].items())
        port_words = ("--ports", ports) if protocol == "ur" else ()
        words = ("record", source.get(protocol, "egm:6510"), *port_words, "--seconds", 2)
        print(next_step(*words, "-o", "run.parquet"), flush=True)

    signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        run(ready)
    except KeyboardInterrupt:
        stop()


_Run = Callable[[Callable[[], None]], None]


_ServerFunctions = tuple[_Run, Callable[[], None], Callable[[], dict[str, Any]]]


def _franka_server(config: VirtualControllerConfig) -> _ServerFunctions:
    from taufit.virtual.controllers import RepeatingRobot, VirtualFranka
    from taufit.wire.franka import PORT

    options = config.options
    arm = RepeatingRobot(
        config.twin, config.motion(), 1000.0, seed=config.seed, payload=config.payloads
    )
    port = PORT if options.ports == "standard" else 0
    robot = VirtualFranka(arm, host=options.bind, port=port, pace=options.pace)
    run = _run_threaded(robot, robot.ended, options)
    return run, robot.ended.set, lambda: {"rate_hz": 1000.0, "ports": {"franka": robot.port}}


def _egm_server(config: VirtualControllerConfig) -> _ServerFunctions:
    from taufit.virtual.controllers import RepeatingRobot, VirtualEgm
    from taufit.wire.egm import PORT

    options = config.options
    arm = RepeatingRobot(
        config.twin, config.motion(), 250.0, seed=config.seed, payload=config.payloads
    )
    robot = VirtualEgm(arm, options.bind, PORT, pace=options.pace)
    run = _run_threaded(robot, robot.ended, options)
    return run, robot.ended.set, lambda: {"rate_hz": 250.0, "ports": {"egm": PORT}}


def _run_threaded(robot: Any, ended: threading.Event, options: ServeOptions) -> _Run:
    """Run a controller that has its own thread."""

    def run(ready: Callable[[], None]) -> None:
        with robot:
            ready()
            ended.wait(None if options.seconds is None else options.seconds / options.pace)

    return run


def _ur_server(config: VirtualControllerConfig) -> _ServerFunctions:
    from taufit.virtual.controllers import UrController, VirtualUr
    from taufit.wire import UrPorts

    options = config.options
    controller = UrController(
        config.twin,
        version=_parse_version(options.software),
        seed=config.seed,
        payload=config.payloads,
    )
    ports = UrPorts() if options.ports == "standard" else UrPorts(0, 0, 0, 0, 0)

    def log(text: str, level: int) -> None:
        if level < 2:
            print(f"{controller.sample.time:.3f} s: {text}", file=sys.stderr, flush=True)

    robot = VirtualUr(controller, host=options.bind, ports=ports, log=log, pace=options.pace)

    def about() -> dict[str, Any]:
        return {
            "software": ".".join(str(x) for x in controller.version),
            "rate_hz": controller.rate_hz,
            "ports": asdict(robot.ports),
        }

    return lambda ready: robot.serve(seconds=options.seconds, ready=ready), robot.stop, about


def _parse_version(text: str) -> tuple[int, int, int, int]:
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isdigit() and len(part) < 5 for part in parts):
        raise typer.BadParameter(
            f"{text!r} is not a version such as 5.23 or 3.15.4.", param_hint="--software"
        )
    major, minor, fix, build = [*(int(part) for part in parts), 0, 0, 0][:4]
    if not 3 <= major <= 10:
        raise typer.BadParameter(
            f"software {text} is not simulated: 3.x (CB3) or 5.x (e-Series).",
            param_hint="--software",
        )
    return major, minor, fix, build
