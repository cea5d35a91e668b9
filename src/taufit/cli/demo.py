"""`taufit demo`: the whole procedure on a simulated robot."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from taufit.cli.options import Json

_COST = """The demo takes about half a minute on two idle cores and 28 MB of disk, in {output}/.
Nothing is downloaded and nothing is opened; a virtual robot controller listens on this computer
only, and ends with the demo.
"""
# Two pushes at the flange.
HAND = "hand.yaml"
_HAND = """pushes:
  - {start: 6.0, duration: 0.2, force: [0, 60, 0]}
  - {start: 8.5, duration: 0.6, force: [30, 0, 30]}
"""


def command(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for everything the demo writes.", metavar="FOLDER"
        ),
    ] = Path("demo"),
    robot: Annotated[str, typer.Option(help="Bundled robot with six joints or more.")] = "ur10",
    files: Annotated[
        bool,
        typer.Option(
            "--files",
            help="Write small example files only (recordings, logs, a model), into this folder or "
            "that of --output.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the whole procedure on a simulated robot: inspect, design, simulate, fit, check, report,
    export, payload, contact, and a virtual controller recorded over its network ports.

    Every step prints its command. Takes about half a minute on two idle cores and 28 MB of disk;
    nothing is opened, nothing is downloaded. --files takes five seconds.

    Next: open the report it names in a browser.
    """
    from taufit.cli.common import plain_console, print_json, reset_printed_json

    if files:
        from taufit.cli.parts.example_files import write_example_files

        folder = Path() if output == Path("demo") else output
        folder.mkdir(parents=True, exist_ok=True)
        descriptions = dict(write_example_files(folder))
        if as_json:
            print_json({"folder": str(folder), "report": None, "files": descriptions})
            return
        for name, description in descriptions.items():
            plain_console().print(f"{name:<20} {description}")
        return
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        _run_steps(output, robot)
    if as_json:
        reset_printed_json()
        titles = {path.name: "" for path in sorted(output.iterdir())}
        report = str(output / "report.html")
        print_json({"folder": str(output), "report": report, "files": titles})


def _run_steps(output: Path, robot: str) -> None:
    """Run every step, each after its command."""
    from taufit.cli.common import headline, plain_console
    from taufit.core.errors import MissingExtraError
    from taufit.core.files import write_text

    console = plain_console()
    console.print(_COST.format(output=output))
    output.mkdir(parents=True, exist_ok=True)
    write_text(output / HAND, _HAND)
    for title, arguments in steps(output, robot):
        console.rule(headline(title, ""))
        console.print("$ taufit " + " ".join(arguments), style="dim")
        try:
            run(arguments)
        except MissingExtraError as error:
            console.print(f"skipped: {error}")
    with virtual_controller(robot) as ports:
        for title, arguments in wire_steps(output, robot, ports):
            console.rule(headline(title, ""))
            console.print("$ taufit " + " ".join(arguments), style="dim")
            if arguments[0] != "simulate":
                run(arguments)
    console.rule()
    console.print(f"Report: {output / 'report.html'}")


@contextmanager
def virtual_controller(robot: str) -> Iterator[str | None]:
    """Run a virtual UR controller on free ports; None if this robot or computer cannot."""
    import json
    import subprocess

    command = [sys.executable, "-m", "taufit", *serve_arguments(robot), "--seconds", "600"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        page = json.loads(line) if line else {}
        is_other = page.get("protocol") != "ur"
        yield None if is_other else ",".join(f"{k}={v}" for k, v in page["ports"].items())
    finally:
        server.terminate()
        server.wait()


def serve_arguments(robot: str) -> list[str]:
    """Arguments that start the virtual controller, at four times real time."""
    arguments = ["simulate", robot, "--serve", "--json", "--ports", "free"]
    return [*arguments, "--software", "3.15", "--pace", "4"]


def wire_steps(out: Path, robot: str, ports: str | None) -> list[tuple[str, list[str]]]:
    """Steps that record the same motion from a virtual controller over its network ports."""
    if ports is None:
        return []
    wire = str(out / "wire.parquet")
    record = ["record", "127.0.0.1", str(out / "motion.json"), "--ports", ports, "--slow", "0"]
    return [
        ("A virtual controller on this computer", serve_arguments(robot)),
        ("Play the motion on it and record it over the wire", [*record, "--yes", "-o", wire]),
        ("Does the model hold there, too?", ["check", str(out / "model.json"), wire]),
    ]


def steps(out: Path, robot: str) -> list[tuple[str, list[str]]]:
    """Title and arguments of every step."""
    motion, train, test = (
        str(out / name) for name in ("motion.json", "run.parquet", "test.parquet")
    )
    model, validation = str(out / "model.json"), str(out / "validation.json")
    return [
        (
            "What can this arm's motion tell?",
            ["inspect", robot, "--friction", "linear", "--rotor-inertia"],
        ),
        (
            "Plan an excitation trajectory",
            ["design", robot, "-o", motion, "--plot", str(out / "motion.html")],
        ),
        (
            "Plan another one to test with",
            ["design", robot, "--kind", "validation", "--seconds", "1", "-o", validation],
        ),
        ("Record it (a simulated arm)", ["simulate", robot, motion, "--periods", "2", "-o", train]),
        ("Record the other one", ["simulate", robot, validation, "--seed", "1", "-o", test]),
        ("Is the recording any good?", ["convert", train, "--report"]),
        (
            "Fit, and test on motion the fit has not seen",
            ["fit", robot, train, "--holdout", test, "-o", model]
            + ["--report", str(out / "report.html")],
        ),
        ("Check the model file again", ["check", model, test]),
        (
            "Put it to use",
            ["export", model, "--format", "urdf", "-o", str(out / "arm.urdf")],
        ),
        (
            "... in C, tested on that motion",
            ["export", model, "--format", "c", "--holdout", test, "-o", str(out / "arm.c")],
        ),
        (
            "... and as a unit for co-simulation",
            ["export", model, "--format", "fmu", "--kind", "forward", "-o", str(out / "arm.fmu")],
        ),
        (
            "Put something into the gripper",
            ["simulate", robot, motion, "--payload", "3.5,0,0,0.03", "--seed", "5"]
            + ["-o", str(out / "loaded.parquet")],
        ),
        ("What does it carry?", ["payload", model, str(out / "loaded.parquet")]),
        (
            "A hand pushes the empty arm, twice",
            ["simulate", robot, motion, "--effects", str(out / HAND), "--seed", "6"]
            + ["-o", str(out / "pushed.parquet")],
        ),
        (
            "What touched it, and how hard?",
            ["contact", model, str(out / "pushed.parquet"), "--contact-free", test]
            + ["--report", str(out / "contact.html")],
        ),
        (
            "Strokes that show one joint's friction",
            ["design", robot, "--kind", "friction-test", "--joint", "3"]
            + ["--speeds", "0.3,1,3,10,30,90", "-o", str(out / "strokes.json")],
        ),
        (
            "Record them",
            ["simulate", robot, str(out / "strokes.json"), "--rate-hz", "200"]
            + ["-o", str(out / "strokes.parquet")],
        ),
        (
            "The friction curve",
            ["friction", robot, str(out / "strokes.parquet")]
            + ["-o", str(out / "friction.json"), "--report", str(out / "friction.html")],
        ),
        (
            "Another arm, whose controller hides the torque's sign",
            ["simulate", "kr5", "preset", "--preset", "kr5-unsigned"]
            + ["-o", str(out / "unsigned.parquet")],
        ),
        (
            "Signs and model together",
            ["fit", "kr5", str(out / "unsigned.parquet"), "--torque-signs", "unknown"]
            + ["--friction", "linear", "-o", str(out / "kr5.json")],
        ),
        (
            "A seven-joint arm with torque sensors behind its gears",
            ["design", "panda", "--frequency-hz", "0.05", "--friction", "polynomial"]
            + ["--criterion", "three_stage", "-o", str(out / "panda.json")],
        ),
        (
            "Record it",
            ["simulate", "panda", str(out / "panda.json"), "--preset", "franka"]
            + ["-o", str(out / "panda.parquet")],
        ),
        (
            "Fit it",
            ["fit", "panda", str(out / "panda.parquet"), "-o", str(out / "panda_model.json")]
            + ["--report", str(out / "panda.html")],
        ),
        (
            "Six minutes of work warm an arm up",
            ["simulate", "ur5", "preset", "--preset", "ur5-warmup", "--periods", "36"]
            + ["-o", str(out / "warm_up.parquet")],
        ),
        (
            "One model for cold and warm",
            ["fit", "ur5", str(out / "warm_up.parquet"), "--friction", "linear"]
            + ["--temperature", "linear", "-o", str(out / "warm_up.json")],
        ),
    ]


def run(arguments: list[str]) -> None:
    """Run one command in this process."""
    from taufit.cli.app import typer_app

    typer_app(arguments[0])(
        args=arguments[1:], prog_name=f"taufit {arguments[0]}", standalone_mode=False
    )
