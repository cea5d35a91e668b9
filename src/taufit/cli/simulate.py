"""`taufit simulate`: simulated recording with its ground truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, RobotName, require_choice, require_mounting, usage_error
from taufit.cli.parts.closed_loop import LoopOptions, compare_controllers
from taufit.cli.parts.next_step import next_step
from taufit.cli.parts.virtual_controller import (
    ServeOptions,
    VirtualControllerConfig,
    run_virtual_controller,
)
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.excitation import Motion
    from taufit.robot import Robot
    from taufit.sim import CarriedPayload, SimulatedRun, Twin


@dataclass(frozen=True, slots=True)
class TwinOptions:
    """Simulated robot: dynamics, controller and imperfections."""

    preset: Annotated[
        str, typer.Option(help="Preset: clean, typical, or one of this robot; `list` shows them.")
    ] = "typical"
    effects: Annotated[
        Path | None, typer.Option(help="YAML of effects; each replaces that of the preset.")
    ] = None
    model: Annotated[
        Path | None, typer.Option(help="Fitted model with parameters and friction to simulate.")
    ] = None
    arm: Annotated[
        int | None,
        typer.Option(
            help="Number of the individual robot; robots differ in the phase of torque ripple. "
            "Independent of the seed.",
            min=1,
            max=1_000_000,
        ),
    ] = None
    bandwidth_hz: Annotated[
        float | None,
        typer.Option(help="Bandwidth of the position controller [Hz].", min=0.1, max=10000),
    ] = None
    mounting: Annotated[
        str | None, typer.Option(help="Mounting: ground, ceiling, wall or ROLL,PITCH,YAW [deg].")
    ] = None
    after: Annotated[
        Path | None,
        typer.Option(
            help="Earlier run whose final temperatures are the initial ones.",
            metavar="RUN",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Motion, payload and recording."""

    payload: Annotated[
        list[str] | None,
        typer.Option(
            help="Payload MASS[,CX,CY,CZ][@PICK[:DROP]]: kg, m in the last link's frame, s. "
            "Repeatable.",
            metavar="MASS,..|FILE",
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(help="Tip or link of a tree that carries the payload.", metavar="TIP"),
    ] = None
    rate_hz: Annotated[
        float | None,
        typer.Option(help="Recording rate [Hz], up to 1000; default of the preset or 500.", min=1),
    ] = None
    periods: Annotated[
        float | None, typer.Option(help="Number of periods played.", min=0.01, max=1000)
    ] = None
    rest: Annotated[
        float, typer.Option(help="Standstill before and after the motion [s].", min=0, max=3600)
    ] = 0.5
    seed: Annotated[int, typer.Option(help="Seed of all random values.", min=0)] = 0
    runs: Annotated[
        int,
        typer.Option(
            help="Number of recordings, with increasing seeds and numbered files.",
            min=1,
            max=100_000,
        ),
    ] = 1


def command(
    robot: RobotName,
    arm: TwinOptions,
    play: RunOptions,
    server: ServeOptions,
    loop: LoopOptions,
    motion: Annotated[
        str,
        typer.Argument(help="Motion file, recording to replay, `fourier` (random), or `preset`."),
    ] = "fourier",
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording to write.")] = Path(
        "recording.parquet"
    ),
    as_json: Json = False,
) -> None:
    """Simulate a recording: rigid-body dynamics (MuJoCo), controller, friction, heat, noise.

    The recording has the format of a real one. The ground truth (parameters, friction, gains,
    payload) is written to NAME.truth.json beside it, which no other command reads. With --serve a
    virtual controller on this computer is started instead, for clients of the real one such as
    `taufit record`. With --controller the robot is driven by torques, a position loop with
    feed-forward by a fitted model, and tracking errors are printed.

    Next: `taufit fit ROBOT RECORDING` fits a model; compare it with the truth file.
    """
    import time

    from taufit.cli.parts.servo_verbs import simulate_servo
    from taufit.cli.parts.simulated_files import number_file, truth_path
    from taufit.core.files import write_json
    from taufit.core.plain_data import to_plain_data
    from taufit.recording import write_recording
    from taufit.servo.model import is_servo_file
    from taufit.sim.batch import run_many
    from taufit.sim.mujoco_arm import import_mujoco

    if arm.preset == "list":
        _list(as_json)
        return
    if robot.endswith(".json") and is_servo_file(robot):
        simulate_servo(Path(robot), Path(motion), output, as_json)
        return
    twin, preset = _twin(robot, arm)
    if play.at is not None:
        twin = replace(twin, robot=twin.robot.with_tip(play.at))
    payloads = tuple(_payload(text) for text in play.payload or ())
    import_mujoco()
    if server.serve:
        make_motion = _motion(twin, motion, preset)
        motion_source = lambda: make_motion(play.seed, play.periods)  # noqa: E731
        run_virtual_controller(
            VirtualControllerConfig(twin, payloads, play.seed, motion_source, server), as_json
        )
        return
    path = _motion(twin, motion, preset)
    if loop.controller:
        compare_controllers(twin, path, loop, payloads, play.seed, arm.bandwidth_hz, as_json)
        return
    files: list[dict[str, Any]] = []
    wall, cpu = 0.0, time.process_time()
    with progress("simulating") as bar:
        task = bar.add_task("simulating", total=float(play.runs))
        runs = run_many(
            twin,
            lambda make_motion: path(make_motion, play.periods),
            range(play.seed, play.seed + play.runs),
            payload=payloads,
            rate_hz=play.rate_hz,
            rest=(play.rest, play.rest),
            progress=(lambda share: bar.update(task, completed=share)) if play.runs == 1 else None,
        )
        for number in range(play.runs):
            start_time = time.perf_counter()
            run = next(runs)
            wall += time.perf_counter() - start_time
            target = output if play.runs == 1 else number_file(output, number + 1)
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
        from taufit.excitation.stroke_motion import Strokes

        _show(result)
        is_friction_test = isinstance(path(play.seed, play.periods), Strokes)
        if is_friction_test:
            print(next_step("friction", robot, files[0]["file"]))
        else:
            print(next_step("fit", robot, files[0]["file"], "--holdout", "30%"))


def _list(as_json: bool) -> None:
    from taufit.sim import presets, read_preset

    about = {name: read_preset(name).about for name in presets()}
    if as_json:
        print_json({"presets": about})
        return
    for name, text in about.items():
        print(f"{name}\n  {text.strip()}")


def _twin(robot: str, options: TwinOptions) -> tuple[Twin, Any]:
    """Simulated robot, and its preset if it has one."""
    from taufit.sim import presets, read_preset

    require_choice(options.preset, ("clean", "typical", *presets()), "--preset")
    preset = None
    if options.preset in ("clean", "typical"):
        twin = _generic_twin(robot, options.preset)
    else:
        preset = read_preset(options.preset)
        twin = preset.twin
        if robot != twin.robot.name:
            usage_error(
                "--preset",
                f"{options.preset!r} is a {twin.robot.name}, not {robot!r}: use `taufit simulate "
                f"{twin.robot.name} --preset {options.preset}`.",
            )
    if options.model is not None:
        twin = _from_model(twin, options.model)
    if options.mounting is not None:
        twin = _with_mounting(twin, require_mounting(options.mounting))
    if options.effects is not None:
        twin = replace(twin, effects=_merge_effects(twin, options.effects))
    if options.arm is not None and twin.effects.ripple is not None:
        ripple = replace(twin.effects.ripple, arm=float(options.arm))
        twin = replace(twin, effects=replace(twin.effects, ripple=ripple))
    if options.after is not None:
        from taufit.cli.parts.simulated_files import continue_run

        twin = continue_run(twin, options.after)
    if options.bandwidth_hz is not None:
        controller = replace(twin.controller, bandwidth_hz=options.bandwidth_hz)
        twin = replace(twin, controller=controller)
    return twin, preset


def _generic_twin(robot: str, preset: str) -> Twin:
    """Any robot: ideal ("clean"), or with rotors and typical effects ("typical")."""
    from taufit.robot import read_robot
    from taufit.sim import Twin, typical_effects, typical_rotor

    arm = read_robot(robot)
    if preset == "clean":
        return Twin(arm, name=preset)
    arm = typical_rotor(arm)
    return replace(Twin(arm, name=preset), effects=typical_effects(arm))


def _with_mounting(twin: Twin, mounting: str) -> Twin:
    """Copy with robot and controller model in another mounting."""
    twin = replace(twin, robot=twin.robot.with_mounting(mounting))
    controller_model = twin.controller.model
    if controller_model is None:
        return twin
    remounted = replace(twin.controller, model=controller_model.with_mounting(mounting))
    return replace(twin, controller=remounted)


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
    model_twin = Twin.from_model(fitted, twin.effects)
    drives = twin.robot.drives
    return replace(
        twin,
        robot=replace(model_twin.robot, drives=drives, limits=twin.robot.limits),
        effects=model_twin.effects,
        controller=replace(twin.controller, model=None),
    )


def _merge_effects(twin: Twin, path: Path) -> Any:
    """Effects of the twin, replaced by those of a file; `name: null` removes one."""
    from dataclasses import fields

    from taufit.core.plain_data import parse_yaml, read_text
    from taufit.sim import Effects, effects_from_dict

    data = parse_yaml(read_text(path, "YAML"), path, "YAML")
    file_effects = effects_from_dict(data or {}, str(path))
    names = [item.name for item in fields(Effects) if item.name in (data or {})]
    return replace(twin.effects, **{name: getattr(file_effects, name) for name in names})


def _motion(twin: Twin, text: str, preset: Any) -> Any:
    from taufit.core.errors import TaufitError
    from taufit.excitation import read_motion
    from taufit.sim import random_fourier

    if text == "preset":
        if preset is None:
            usage_error("--preset", "motion `preset` plays a preset's own motion: name one.")
        return lambda seed, periods: preset.motion(seed, periods)
    if text == "fourier":
        if preset is not None and preset.sources.get("kind") == "random":
            return lambda seed, periods: preset.motion(seed, periods)
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
        from taufit.sim.replay import motion_of_recording

        fixed = motion_of_recording(read_recording(path))

    def repeat_motion(seed: int, periods: float | None) -> Motion:
        if periods is None:
            return fixed
        if not hasattr(fixed, "periods"):
            raise TaufitError(f"{text} is not a periodic motion; --periods does not apply.")
        return replace(fixed, periods=periods)  # type: ignore[type-var]

    return repeat_motion


def _payload(text: str) -> CarriedPayload:
    """MASS[,CX,CY,CZ][@PICK[:DROP]], or FILE[@PICK[:DROP]] with a file of `taufit payload -o`."""
    import numpy as np

    from taufit.sim import CarriedPayload

    mass_text, _, times_text = text.partition("@")
    is_file = mass_text.endswith(".json")
    pick, _, drop = times_text.partition(":")
    try:
        values = [1.0] if is_file else [float(x) for x in mass_text.split(",")]
        times = [float(x) if x else None for x in (pick, drop)]
    except ValueError:
        values, times = [], []
    finite_values = [x for x in (*values, *times) if x is not None]
    # Squares of values above a hundred tonnes would overflow.
    if len(values) not in (1, 4) or not np.all(np.abs(finite_values) < 1e5):
        raise typer.BadParameter(
            f"{text!r} is not MASS[,CX,CY,CZ][@PICK[:DROP]], for example 2.5,0,0,0.05@3:8",
            param_hint="--payload",
        )
    if is_file:
        from taufit.model.payload import parse_payload

        return CarriedPayload(parse_payload(mass_text).parameters, *times)
    centre = np.array(values[1:] or [0.0, 0.0, 0.0])
    return CarriedPayload.lump(values[0], centre, pick=times[0], drop=times[1])


def _torque_warnings(run: SimulatedRun, robot: Robot) -> list[str]:
    """Warning if motor torques exceed the limits of the robot."""
    import numpy as np

    largest = np.abs(run.trace.motor_torque).max(axis=0)
    exceeded = np.flatnonzero(largest > robot.limits.torque)
    if not len(exceeded):
        return []
    joint_list = ", ".join(
        f"joint {j + 1} {largest[j]:.4g} N m (limit {robot.limits.torque[j]:.4g})" for j in exceeded
    )
    return [
        f"the motion asks for more torque than {robot.name}'s drives give: {joint_list}. Use "
        f"another "
        "seed or a slower motion, or let the drives saturate (`saturation: 1` in --effects)"
    ]


def _summary(run: SimulatedRun, target: Path, truth: Path, robot: Robot) -> dict[str, Any]:
    import numpy as np

    recording = run.recording
    return {
        "warnings": _torque_warnings(run, robot),
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
