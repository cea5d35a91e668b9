"""`taufit simulate --serve`: a virtual controller, for any client of the real one."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from taufit.sim import Carried, Twin


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """A virtual controller instead of a recording."""

    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a virtual controller until Ctrl-C.")
    ] = False
    bind: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    ports: Annotated[
        str, typer.Option(help="`standard` (as the real controller) or `free` (any).")
    ] = "standard"
    seconds: Annotated[
        float | None, typer.Option(help="Serve this long, in its own time.", min=0)
    ] = None
    pace: Annotated[
        float, typer.Option(help="Of its time against this computer's.", min=0.01, max=100)
    ] = 1.0
    protocol: Annotated[
        str, typer.Option(help="`ur`; by default as the number of joints asks for.")
    ] = ""
    software: Annotated[
        str, typer.Option(help="Version of the controller, e.g. 3.15 (CB3) or 5.23 (e-Series).")
    ] = "5.23"


def serve(
    twin: Twin, carried: tuple[Carried, ...], seed: int, options: ServeOptions, as_json: bool
) -> None:
    """Run a virtual controller; its first line on stdout says where it listens."""
    if options.ports not in ("standard", "free"):
        raise typer.BadParameter("ports are `standard` or `free`.", param_hint="--ports")
    known = {"ur": _ur}
    protocol = options.protocol or "ur"
    if protocol not in known:
        raise typer.BadParameter(
            f"there is no protocol {protocol!r}; there are {', '.join(known)}.",
            param_hint="--protocol",
        )
    if not options.bind.startswith("127.") and options.bind not in ("localhost", "::1"):
        print(
            f"listening on {options.bind}: whoever reaches this address can move this virtual arm.",
            file=sys.stderr,
        )
    run, stop, about = known[protocol](twin, carried, seed, options)

    def ready() -> None:
        page = {"protocol": protocol, "robot": twin.robot.name, "host": options.bind, **about()}
        if as_json:
            print(json.dumps(page), flush=True)
            return
        listed = ", ".join(f"{name} {port}" for name, port in page["ports"].items())
        print(f"virtual {twin.robot.name} on {page['host']}: {listed}. Ctrl-C ends it.", flush=True)
        print(f"Next: taufit record {page['host']} MOTION -o run.parquet", flush=True)

    signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        run(ready)
    except KeyboardInterrupt:
        stop()


_Run = Callable[[Callable[[], None]], None]


def _ur(
    twin: Twin, carried: tuple[Carried, ...], seed: int, options: ServeOptions
) -> tuple[_Run, Callable[[], None], Callable[[], dict[str, Any]]]:
    from taufit.sim.virtual import UrController, VirtualUr
    from taufit.wire import UrPorts

    controller = UrController(twin, version=_version(options.software), seed=seed, payload=carried)
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


def _version(text: str) -> tuple[int, int, int, int]:
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isdigit() and len(part) < 5 for part in parts):
        raise typer.BadParameter(
            f"{text!r} is no version such as 5.23 or 3.15.4.", param_hint="--software"
        )
    major, minor, fix, build = [*(int(part) for part in parts), 0, 0, 0][:4]
    if not 3 <= major <= 10:
        raise typer.BadParameter(
            f"software {text} is not simulated: 3.x (CB3) or 5.x (e-Series).",
            param_hint="--software",
        )
    return major, minor, fix, build
