"""taufit design: plan a motion worth recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.errors import InfeasibleError

if TYPE_CHECKING:
    from taufit.excitation import Motion


def command(
    robot: Annotated[str, typer.Argument(help="A bundled name, .urdf, or .yaml.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Motion file.")] = Path(
        "motion.json"
    ),
    kind: Annotated[
        str,
        typer.Option(
            help="excitation, payload (wide slow arm, fast wrist), validation (differs from the "
            "identification motion), friction-test (constant-speed strokes of one joint) or "
            "warm-up."
        ),
    ] = "excitation",
    frequency_hz: Annotated[float, typer.Option(help="Of the first harmonic.", max=1000)] = 0.1,
    harmonics: Annotated[int, typer.Option(help="Per joint; at least 2.", max=100)] = 5,
    joint_harmonics: Annotated[
        str | None, typer.Option(help="Harmonics each joint may use, comma separated.")
    ] = None,
    periods: Annotated[
        int, typer.Option(help="How often the motion is played.", min=1, max=10000)
    ] = 1,
    splines: Annotated[
        int, typer.Option(help="B-splines with this many pieces instead of harmonics.", max=1000)
    ] = 0,
    criterion: Annotated[
        str,
        typer.Option(
            help="a, d, cond, cond_scaled, product, three_stage, weighted_blocks or worst_case."
        ),
    ] = "a",
    friction: Annotated[str, typer.Option(help="Friction model to be identified.")] = "linear",
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="Identify rotor inertias too.")
    ] = False,
    no_offset: Annotated[bool, typer.Option("--no-offset", help="No torque offset.")] = False,
    mounting: Annotated[
        str | None, typer.Option(help="ground, ceiling, wall or ROLL,PITCH,YAW in degrees.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Start and end pose in degrees, comma separated.")
    ] = None,
    envelope: Annotated[
        Path | None, typer.Option(help="Stay within range, speeds, accelerations of this motion.")
    ] = None,
    speed: Annotated[float, typer.Option(help="Fraction of the speed limits to use.")] = 1.0,
    acceleration: Annotated[
        float | None, typer.Option(help="Acceleration limit of every joint [rad/s^2].")
    ] = None,
    jerk: Annotated[float | None, typer.Option(help="Jerk limit of every joint [rad/s^3].")] = None,
    tip_speed: Annotated[float | None, typer.Option(help="Speed limit of the tip [m/s].")] = None,
    wall: Annotated[
        list[str] | None,
        typer.Option(help="A plane to stay clear of, NX,NY,NZ,OFFSET in base axes: n.x >= offset."),
    ] = None,
    clearance: Annotated[float, typer.Option(help="Distance to keep [m].", min=0, max=10)] = 0.02,
    radius: Annotated[
        float | None,
        typer.Option(help="Radius of the capsules around the links [m].", min=0, max=10),
    ] = None,
    free_space: Annotated[
        bool, typer.Option("--free-space", help="Nothing to touch: no table, no self-collision.")
    ] = False,
    joint: Annotated[int, typer.Option(help="For friction-test: which joint, from 1.", min=1)] = 1,
    minutes: Annotated[
        float, typer.Option(help="For warm-up: how long.", min=0.1, max=1440)
    ] = 10.0,
    after: Annotated[
        list[Path] | None,
        typer.Option(help="Motions or recordings there are already: plan what they did not show."),
    ] = None,
    map: Annotated[
        Path | None, typer.Option("--map", help="Column map of recordings given with --after.")
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes to search in; each spends --seconds.", min=1, max=256)
    ] = 1,
    seconds: Annotated[
        float, typer.Option(help="CPU seconds to spend.", min=0.01, max=86400)
    ] = 3.0,
    seed: Annotated[int, typer.Option(help="Of the random starts.", min=0)] = 0,
    csv: Annotated[Path | None, typer.Option(help="Also write a table of q, v, a.")] = None,
    urscript: Annotated[Path | None, typer.Option(help="Also write a URScript program.")] = None,
    ros2: Annotated[Path | None, typer.Option(help="Also write a JointTrajectory as YAML.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also write a page with plots and 3-D.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Plan a motion worth recording: feasible, certified on a fine grid, in seconds.

    By default the arm keeps clear of itself and of the surface it is bolted to, within the limits
    of its description. The condition number is told for the true sign of velocity, unscaled SI
    columns, the leftmost base columns and 2000 samples; a low one is not information: criterion
    "a" (default) minimises standard deviations instead.

    Next: play the motion on the robot (--urscript, --ros2, --csv) or `taufit simulate`, then
    `taufit fit`.
    """
    import numpy as np

    from taufit.excitation import write_motion
    from taufit.excitation.motion_file import read_motion
    from taufit.excitation.programs import to_csv, to_joint_trajectory, to_urscript
    from taufit.files import write_text
    from taufit.robot import read_robot

    arm = read_robot(robot, mounting=mounting)
    if kind not in ("excitation", "payload", "validation", "friction-test", "warm-up"):
        raise InfeasibleError(
            f"kind {kind!r} is not known: use excitation, payload, validation, friction-test or "
            "warm-up."
        )
    limits = _limits(arm, envelope and read_motion(envelope), speed, acceleration)
    pose = _pose(start, arm.joints)
    scene = _scene(arm, wall or [], clearance, radius, tip_speed, free_space)

    result = None
    if kind in ("friction-test", "warm-up"):
        from taufit.excitation.design import free_centre
        from taufit.excitation.special import PAPER_SPEEDS_DEG, friction_strokes, warm_up

        centre = pose if pose is not None else free_centre(arm, limits, scene, seed)
        motion: Motion
        if kind == "warm-up":
            motion = warm_up(arm, limits, centre=centre, minutes=minutes)
        else:
            if not 1 <= joint <= arm.joints:
                raise InfeasibleError(f"this arm has joints 1 to {arm.joints}, not {joint}.")
            speeds = np.radians(PAPER_SPEEDS_DEG)
            speeds = speeds[speeds <= limits.velocity[joint - 1]]
            motion = friction_strokes(arm, joint - 1, speeds, pose=centre)
        data = {"kind": kind, "duration": motion.duration, "joints": arm.joints}
    else:
        with progress("designing") as bar:
            task = bar.add_task("designing", total=seconds)
            result = _design(
                arm,
                kind=kind,
                criterion=criterion,
                friction=friction,
                rotor_inertia=rotor_inertia,
                offset=not no_offset,
                frequency_hz=frequency_hz,
                harmonics=harmonics,
                joint_harmonics=_counts(joint_harmonics),
                periods=periods,
                splines=splines,
                limits=limits,
                jerk=jerk,
                scene=scene,
                start=pose,
                after=[_earlier(path, map) for path in after or []],
                seconds=seconds,
                workers=workers,
                seed=seed,
                progress=lambda share, _: bar.update(task, completed=min(share, 1.0) * seconds),
            )
        motion = result.motion
        data = {
            "kind": kind,
            "criterion": result.criterion,
            "condition_number": result.condition_number,
            "condition_number_scaled": result.condition_number_scaled,
            "log_det": result.log_det,
            "feasible": result.feasible,
            "worst_margin": result.worst.margin,
            "worst_constraint": result.worst.name,
            "cpu_seconds": result.cpu_seconds,
            "starts": result.starts,
            "iterations": result.iterations,
            "shrunk_to": result.shrunk_to,
            "warnings": list(result.warnings),
            "base_parameters": len(result.names),
            "samples": result.samples,
            "column_scaling": "none (SI); unit columns in condition_number_scaled",
            "base_columns": "leftmost independent, base to tip",
            "duration": motion.duration,
        }
    write_motion(motion, output, robot=arm.name, mounting=list(arm.mounting), **_notes(data))
    if csv:
        write_text(csv, to_csv(motion))
    if urscript:
        write_text(urscript, to_urscript(motion))
    if ros2:
        write_text(ros2, to_joint_trajectory(motion, arm.joint_names))
    if plot:
        from taufit.report.motion_page import motion_page

        write_text(plot, motion_page(arm, motion, limits, result))
    if json:
        print_json({**data, "output": str(output)})
        return
    _tell(data, output, [path for path in (csv, urscript, ros2, plot) if path])


def _limits(arm, envelope, speed, acceleration):
    import numpy as np

    from taufit.excitation import default_limits, envelope_of
    from taufit.robot import Limits

    if envelope is not None:
        if envelope.joints != arm.joints:
            raise InfeasibleError(
                f"the envelope motion has {envelope.joints} joints, the arm {arm.joints}."
            )
        return envelope_of(envelope)
    own = default_limits(arm)
    if not 0 < speed <= 1:
        raise InfeasibleError("--speed is a fraction of the speed limits, above 0 and at most 1.")
    if acceleration is not None:
        own = Limits(
            own.lower, own.upper, own.velocity, np.full(arm.joints, acceleration), own.torque
        )
    return Limits(own.lower, own.upper, speed * own.velocity, own.acceleration, own.torque)


def _counts(text):
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InfeasibleError(
            f"--joint-harmonics needs whole numbers, comma separated; found {text!r}."
        ) from None


def _earlier(path, map):
    """A motion file, or a recording as the motion it shows."""
    from taufit.excitation.motion_file import read_motion

    if path.suffix == ".json":
        return read_motion(path)
    from taufit.excitation.purpose import recorded_motion
    from taufit.recording import read_recording
    from taufit.signals import condition

    return recorded_motion(condition(read_recording(path, map=map)))


def _pose(text, joints):
    import numpy as np

    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != joints or not np.all(np.isfinite(values)):
        raise InfeasibleError(
            f"--start needs {joints} angles in degrees, comma separated; found {text!r}."
        )
    return np.radians(values)


def _scene(arm, walls, clearance, radius, tip_speed, free_space):
    import numpy as np

    from taufit.excitation import Plane, Scene, mounting_plane, scene_for

    limit = np.inf if tip_speed is None else tip_speed
    planes = []
    for text in walls:
        try:
            *normal, offset = (float(part) for part in text.split(","))
        except ValueError:
            normal, offset = [], 0.0
        length = float(np.linalg.norm(normal)) if len(normal) == 3 else 0.0
        if not (np.isfinite(length) and length > 0):
            raise InfeasibleError(
                f"--wall {text!r} is not NX,NY,NZ,OFFSET, for example 1,0,0,-0.5 for a wall half a "
                "metre behind the base."
            )
        planes.append(Plane(f"wall {text}", np.array(normal) / length, offset / length))
    if free_space:
        return Scene(tip_speed=limit)
    return scene_for(
        arm,
        planes=(mounting_plane(arm), *planes),
        clearance=clearance,
        tip_speed=limit,
        radius=radius,
    )


def _design(
    arm,
    *,
    kind,
    criterion,
    friction,
    rotor_inertia,
    offset,
    frequency_hz,
    harmonics,
    joint_harmonics,
    periods,
    splines,
    limits,
    jerk,
    scene,
    start,
    after,
    seconds,
    workers,
    seed,
    progress,
):
    from dataclasses import replace

    import numpy as np

    from taufit.excitation import FourierBasis, SplineBasis
    from taufit.excitation.many import design_in_parallel
    from taufit.excitation.purpose import payload_columns, prior_information, slow_arm
    from taufit.friction import FRICTION_MODELS
    from taufit.model.torque_model import TorqueModel

    if friction not in FRICTION_MODELS:
        raise InfeasibleError(
            f"friction model {friction!r} is not known: use {', '.join(FRICTION_MODELS)}."
        )
    model = TorqueModel(
        arm, FRICTION_MODELS[friction](), rotor_inertia=rotor_inertia, offset=offset
    )
    basis: Any
    if splines:
        basis = SplineBasis(splines, periods / frequency_hz)
    else:
        basis = FourierBasis(
            harmonics, frequency_hz, periods=periods, joint_harmonics=joint_harmonics
        )
    columns = focus = None
    if kind == "payload":
        columns, focus = payload_columns(model)
        limits = slow_arm(limits)
    if kind == "validation":
        # Another frequency and other starts: a motion the fit has not been tuned to.
        if not splines:
            basis = replace(basis, frequency_hz=0.83 * frequency_hz)
        criterion, seed = "d", seed + 7919
    prior = prior_information(model, after, columns) if after else None
    return design_in_parallel(
        arm,
        workers=workers,
        model=model,
        criterion=criterion,
        basis=basis,
        limits=limits,
        jerk=np.inf if jerk is None else jerk,
        scene=scene,
        start=start,
        columns=columns,
        focus=focus,
        prior=prior,
        seconds=seconds,
        seed=seed,
        progress=progress,
    )


def _notes(data):
    from taufit.cli.common import plain

    return {key: plain(value) for key, value in data.items() if key != "kind"}


def _tell(data, output, more) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if "feasible" in data:
        console.print(
            f"[bold]Feasible[/bold]: checked at 5000 moments; tightest is "
            f"{data['worst_constraint']} ({data['worst_margin']:.3g} left)."
        )
        table = Table(show_header=False, box=None)
        for key in ("base_parameters", "condition_number", "condition_number_scaled", "log_det"):
            table.add_row(key.replace("_", " "), f"{data[key]:.4g}")
        table.add_row("criterion", str(data["criterion"]))
        table.add_row("duration", f"{data['duration']:.3g} s")
        table.add_row("CPU time", f"{data['cpu_seconds']:.2f} s, {data['starts']} starts")
        console.print(table)
    else:
        console.print(f"A {data['kind']} motion of {data['duration']:.1f} s.")
    console.print("Written: " + ", ".join(str(path) for path in [output, *more]))
    console.print("Next: play it on the robot, or `taufit simulate ROBOT " + str(output) + "`.")
