"""`taufit simulate`: a recording of an arm that does not exist, and the truth beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, RobotName, mounting_given, require_choice, usage_error
from taufit.cli.parts.serve import Served, ServeOptions, serve

if TYPE_CHECKING:
    from taufit.excitation import Motion
    from taufit.robot import Robot
    from taufit.sim import CarriedPayload, SimulatedRun, Twin


@dataclass(frozen=True, slots=True)
class TwinOptions:
    """The arm that is simulated: its bodies, its controller and what is not ideal about it."""

    preset: Annotated[
        str, typer.Option(help="clean, typical, or a preset of this robot; `list` shows them.")
    ] = "typical"
    effects: Annotated[
        Path | None, typer.Option(help="YAML with effects; each replaces the preset's.")
    ] = None
    model: Annotated[
        Path | None, typer.Option(help="Fitted model whose parameters and friction are the truth.")
    ] = None
    arm: Annotated[
        int | None,
        typer.Option(
            help="Which arm of its kind: another number has its ripple elsewhere. Every seed is "
            "the same arm.",
            min=1,
            max=1_000_000,
        ),
    ] = None
    bandwidth_hz: Annotated[
        float | None, typer.Option(help="Of the controller's position loop.", min=0.1, max=10000)
    ] = None
    mounting: Annotated[
        str | None, typer.Option(help="ground, ceiling, wall or ROLL,PITCH,YAW in degrees.")
    ] = None
    after: Annotated[
        Path | None,
        typer.Option(
            help="Go on at the temperatures this earlier run ended at; for arms with heat.",
            metavar="RUN",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is played, how often, and how it is recorded."""

    payload: Annotated[
        list[str] | None,
        typer.Option(
            help="MASS[,CX,CY,CZ][@PICK[:DROP]]: kg, m in the last link's frame, s. Repeatable."
        ),
    ] = None
    rate_hz: Annotated[
        float | None,
        typer.Option(help="Rows per second, up to 1000; default the preset's or 500.", min=1),
    ] = None
    periods: Annotated[
        float | None, typer.Option(help="How often the motion is played.", min=0.01, max=1000)
    ] = None
    rest: Annotated[
        float, typer.Option(help="Standstill before and after the motion [s].", min=0, max=3600)
    ] = 0.5
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0
    runs: Annotated[
        int,
        typer.Option(
            help="Recordings to write, seeds counting up; numbered files.", min=1, max=100_000
        ),
    ] = 1


def command(
    robot: RobotName,
    arm: TwinOptions,
    play: RunOptions,
    server: ServeOptions,
    motion: Annotated[
        str,
        typer.Argument(
            help="A motion file, a recording to play again, `fourier` (random), or `preset`."
        ),
    ] = "fourier",
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording to write.")] = Path(
        "recording.parquet"
    ),
    as_json: Json = False,
) -> None:
    """Record a simulated arm: MuJoCo's bodies, a controller, friction, heat, noise.

    The recording is the file a robot would give. What was true (parameters, friction, gains,
    payload) goes to NAME.truth.json beside it, which no other verb reads. With --serve
    it is no recording but a virtual controller on this computer that clients of the real one talk
    to, `taufit record` among them.

    Next: `taufit fit ROBOT RECORDING` fits a model; the truth file says how well.
    """
    import time

    from taufit.cli.common import to_plain_data
    from taufit.cli.parts.simulated_files import numbered, truth_path
    from taufit.core.files import write_json
    from taufit.recording import write_recording
    from taufit.sim.batch import run_many
    from taufit.sim.mujoco_arm import import_mujoco

    if arm.preset == "list":
        _list(as_json)
        return
    twin, given = _twin(robot, arm)
    carried = tuple(_payload(text) for text in play.payload or ())
    import_mujoco()
    if server.serve:
        chosen = _motion(twin, motion, given)
        played = lambda: chosen(play.seed, play.periods)  # noqa: E731
        serve(Served(twin, carried, play.seed, played, server), as_json)
        return
    path = _motion(twin, motion, given)
    files: list[dict[str, Any]] = []
    wall, cpu = 0.0, time.process_time()
    with progress("simulating") as bar:
        task = bar.add_task("simulating", total=float(play.runs))
        many = run_many(
            twin,
            lambda chosen: path(chosen, play.periods),
            range(play.seed, play.seed + play.runs),
            payload=carried,
            rate_hz=play.rate_hz,
            rest=(play.rest, play.rest),
            progress=(lambda share: bar.update(task, completed=share)) if play.runs == 1 else None,
        )
        for number in range(play.runs):
            before = time.perf_counter()
            run = next(many)
            wall += time.perf_counter() - before
            target = output if play.runs == 1 else numbered(output, number + 1)
            write_recording(run.recording, target)
            truth = truth_path(target)
            write_json(truth, to_plain_data(run.truth))
            files.append(_summary(run, target, truth, twin.robot))
            bar.update(task, completed=number + 1)
    cpu = time.process_time() - cpu
    simulated = sum(item["duration"] for item in files)
    result = {
        **files[0],
        "robot": twin.robot.name,
        "preset": arm.preset,
        "seed": play.seed,
        "runs": play.runs,
        "files": files,
        "cpu_seconds": cpu,
        "real_time_factor": simulated / wall,
    }
    if as_json:
        print_json(result)
    else:
        _show(result)


def _list(as_json: bool) -> None:
    from taufit.sim import presets, read_preset

    about = {name: read_preset(name).about for name in presets()}
    if as_json:
        print_json({"presets": about})
        return
    for name, text in about.items():
        print(f"{name}\n  {text.strip()}")


def _twin(robot: str, chosen: TwinOptions) -> tuple[Twin, Any]:
    """The arm, and its preset where it has one."""
    from taufit.sim import presets, read_preset

    require_choice(chosen.preset, ("clean", "typical", *presets()), "--preset")
    given = None
    if chosen.preset in ("clean", "typical"):
        twin = _plain_twin(robot, chosen.preset)
    else:
        given = read_preset(chosen.preset)
        twin = given.twin
        if robot != twin.robot.name:
            usage_error(
                "--preset",
                f"{chosen.preset!r} is a {twin.robot.name}, not {robot!r}: use `taufit simulate "
                f"{twin.robot.name} ... --preset {chosen.preset}`.",
            )
    if chosen.model is not None:
        twin = _from_model(twin, chosen.model)
    if chosen.mounting is not None:
        twin = _mounted(twin, mounting_given(chosen.mounting))
    if chosen.effects is not None:
        twin = replace(twin, effects=_merged(twin, chosen.effects))
    if chosen.arm is not None and twin.effects.ripple is not None:
        ripple = replace(twin.effects.ripple, arm=float(chosen.arm))
        twin = replace(twin, effects=replace(twin.effects, ripple=ripple))
    if chosen.after is not None:
        from taufit.cli.parts.simulated_files import going_on

        twin = going_on(twin, chosen.after)
    if chosen.bandwidth_hz is not None:
        controller = replace(twin.controller, bandwidth_hz=chosen.bandwidth_hz)
        twin = replace(twin, controller=controller)
    return twin, given


def _plain_twin(robot: str, preset: str) -> Twin:
    """Any arm: ideal ("clean"), or with rotors and effects of its size ("typical")."""
    from taufit.robot import read_robot
    from taufit.sim import Twin, typical_effects, typical_rotor

    arm = read_robot(robot)
    if preset == "clean":
        return Twin(arm, name=preset)
    arm = typical_rotor(arm)
    return replace(Twin(arm, name=preset), effects=typical_effects(arm))


def _mounted(twin: Twin, mounting: str) -> Twin:
    """The arm, and what its controller takes it for, mounted another way."""
    twin = replace(twin, robot=twin.robot.with_mounting(mounting))
    assumed = twin.controller.model
    if assumed is None:
        return twin
    moved = replace(twin.controller, model=assumed.with_mounting(mounting))
    return replace(twin, controller=moved)


def _from_model(twin: Twin, path: Path) -> Twin:
    import taufit
    from taufit.core.errors import TaufitError
    from taufit.sim import Twin

    fitted = taufit.read_model(path)
    if fitted.robot.joints != twin.robot.joints:
        raise TaufitError(
            f"{path} is a model of {fitted.robot.joints} joints; {twin.robot.name} has "
            f"{twin.robot.joints}."
        )
    made = Twin.from_model(fitted, twin.effects)
    drives = twin.robot.drives
    return replace(
        twin,
        robot=replace(made.robot, drives=drives, limits=twin.robot.limits),
        effects=made.effects,
        controller=replace(twin.controller, model=None),
    )


def _merged(twin: Twin, path: Path) -> Any:
    """The twin's effects with those of a file in their place; `name: null` switches one off."""
    from dataclasses import fields

    from taufit.core.plain_data import parse_yaml, read_text
    from taufit.sim import Effects, effects_from_dict

    data = parse_yaml(read_text(path, "YAML"), path, "YAML")
    new = effects_from_dict(data or {}, str(path))
    named = [item.name for item in fields(Effects) if item.name in (data or {})]
    return replace(twin.effects, **{name: getattr(new, name) for name in named})


def _motion(twin: Twin, text: str, given: Any) -> Any:
    from taufit.core.errors import TaufitError
    from taufit.excitation import read_motion
    from taufit.sim import random_fourier

    if text == "preset":
        if given is None:
            usage_error("--preset", "motion `preset` plays a preset's own motion: name one.")
        return lambda seed, periods: given.motion(seed, periods)
    if text == "fourier":
        if given is not None and given.sources.get("kind") == "random":
            return lambda seed, periods: given.motion(seed, periods)
        return lambda seed, periods: random_fourier(twin.robot, seed=seed, periods=periods or 1.0)
    path = Path(text)
    if not path.exists():
        raise TaufitError(
            f"there is no motion {text!r}: give a motion file (`taufit design` writes one), a "
            "recording, `fourier` for a random motion, or `preset`."
        )
    if path.suffix == ".json":
        fixed: Motion = read_motion(path)
    else:
        from taufit.recording import read_recording
        from taufit.sim.replay import replay

        fixed = replay(read_recording(path))

    def played(seed: int, periods: float | None) -> Motion:
        if periods is None:
            return fixed
        if not hasattr(fixed, "periods"):
            raise TaufitError(f"{text} is not a periodic motion; --periods does not apply.")
        return replace(fixed, periods=periods)  # type: ignore[type-var]

    return played


def _payload(text: str) -> CarriedPayload:
    """MASS[,CX,CY,CZ][@PICK[:DROP]]."""
    import numpy as np

    from taufit.sim import CarriedPayload

    body, _, when = text.partition("@")
    pick, _, drop = when.partition(":")
    try:
        numbers = [float(x) for x in body.split(",")]
        times = [float(x) if x else None for x in (pick, drop)]
    except ValueError:
        numbers, times = [], []
    known = [x for x in (*numbers, *times) if x is not None]
    # Beyond a hundred tonnes squares of it are no numbers any more.
    if len(numbers) not in (1, 4) or not np.all(np.abs(known) < 1e5):
        raise typer.BadParameter(
            f"{text!r} is not MASS[,CX,CY,CZ][@PICK[:DROP]], for example 2.5,0,0,0.05@3:8",
            param_hint="--payload",
        )
    centre = np.array(numbers[1:] or [0.0, 0.0, 0.0])
    return CarriedPayload.lump(numbers[0], centre, pick=times[0], drop=times[1])


def _beyond(run: SimulatedRun, robot: Robot) -> list[str]:
    """A sentence where the motors gave more torque than the robot's can."""
    import numpy as np

    reached = np.abs(run.trace.motor_torque).max(axis=0)
    over = np.flatnonzero(reached > robot.limits.torque)
    if not len(over):
        return []
    listed = ", ".join(
        f"joint {j + 1} {reached[j]:.4g} N m (limit {robot.limits.torque[j]:.4g})" for j in over
    )
    return [
        f"the motion asks for more torque than {robot.name}'s drives give: {listed}. Use another "
        "seed or a slower motion, or let the drives saturate (`saturation: 1` in --effects)"
    ]


def _summary(run: SimulatedRun, target: Path, truth: Path, robot: Robot) -> dict[str, Any]:
    import numpy as np

    recording = run.recording
    return {
        "warnings": _beyond(run, robot),
        "file": str(target),
        "truth": str(truth),
        "samples": len(recording),
        "duration": float(recording.time[-1] - recording.time[0]),
        "joints": recording.joints,
        "signal_unit": recording.signal_unit,
        "torque_source": recording.torque_source,
        "payload": recording.payload,
        "torque_rms": np.sqrt((run.trace.motor_torque**2).mean(0)),
        "tracking_error_rms": run.truth["tracking_error_rms"],
        "temperature_end": run.truth["temperature_end"],
    }


def _show(result: dict[str, Any]) -> None:
    for item in result["files"]:
        print(
            f"{item['file']}: {item['samples']} rows, {item['duration']:.2f} s, "
            f"{result['robot']} ({result['preset']}), {item['torque_source']} in "
            f"{item['signal_unit']}"
        )
    error = ", ".join(f"{1e3 * x:.2f}" for x in result["tracking_error_rms"])
    print(f"tracking error per joint: {error} mrad rms")
    print(f"simulated {result['real_time_factor']:.0f} times faster than real time")
    for item in result["files"]:
        for text in item["warnings"]:
            print(f"warning: {item['file']}: {text}.")
    print(f"Truth: {result['truth']}")
    print(f"Next: taufit fit {result['robot']} {result['files'][0]['file']}")
