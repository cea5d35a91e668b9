"""taufit design: plan an excitation trajectory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, RobotName, RobotOptions, numbers, one_of, wrong

if TYPE_CHECKING:
    from taufit.arrays import Array, Float
    from taufit.excitation import Effort, InertiaGoal, Motion, Plan, Scene
    from taufit.excitation.basis import Basis
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import Limits, Robot

# What the default of earlier versions was called.
_ALIASES = {"excitation": "identification"}


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """The family of motions."""

    frequency_hz: Annotated[
        float, typer.Option(help="Of the first harmonic.", min=1e-6, max=1000)
    ] = 0.1
    harmonics: Annotated[int, typer.Option(help="Per joint.", min=2, max=100)] = 5
    joint_harmonics: Annotated[
        str | None, typer.Option(help="Harmonics each joint may use, comma separated.")
    ] = None
    periods: Annotated[
        int, typer.Option(help="How often the motion is played.", min=1, max=10000)
    ] = 1
    splines: Annotated[
        int,
        typer.Option(help="B-splines with this many pieces (6 or more) instead.", min=0, max=1000),
    ] = 0

    def basis(self, joints: int) -> Basis:
        """As the library takes it."""
        from taufit.excitation import FourierBasis, SplineBasis

        if self.splines:
            if self.splines < 6:
                wrong("--splines", "a motion at rest at both ends needs at least 6 pieces.")
            return SplineBasis(self.splines, self.periods / self.frequency_hz)
        counts = None
        if self.joint_harmonics is not None:
            given = numbers(self.joint_harmonics, "--joint-harmonics", joints)
            if any(x != int(x) or not 2 <= x <= self.harmonics for x in given):
                wrong("--joint-harmonics", f"expected whole numbers from 2 to {self.harmonics}.")
            counts = tuple(int(x) for x in given)
        return FourierBasis(
            self.harmonics, self.frequency_hz, periods=self.periods, joint_harmonics=counts
        )


@dataclass(frozen=True, slots=True)
class GoalOptions:
    """What the motion is to show."""

    criterion: Annotated[
        str,
        typer.Option(
            help="a, d, cond, cond_scaled, product, three_stage, weighted_blocks or worst_case."
        ),
    ] = "a"
    friction: Annotated[str, typer.Option(help="Friction model to be identified.")] = "linear"
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="Identify rotor inertias too.")
    ] = False
    no_offset: Annotated[bool, typer.Option("--no-offset", help="No torque offset.")] = False
    after: Annotated[
        list[Path] | None,
        typer.Option(help="Motions or recordings there are already: plan what they did not show."),
    ] = None
    map: Annotated[
        Path | None, typer.Option("--map", help="Column map of recordings given with --after.")
    ] = None

    def model(self, arm: Robot) -> TorqueModel:
        """What is to be identified."""
        from taufit.excitation import CRITERIA
        from taufit.friction import FRICTION_MODELS
        from taufit.model.torque_model import TorqueModel

        one_of(self.criterion, CRITERIA, "--criterion")
        friction = FRICTION_MODELS[one_of(self.friction, FRICTION_MODELS, "--friction")]()
        return TorqueModel(
            arm, friction, rotor_inertia=self.rotor_inertia, offset=not self.no_offset
        )

    def earlier(self) -> list[Motion]:
        """The motions of --after."""
        return [_earlier(path, self.map) for path in self.after or []]


@dataclass(frozen=True, slots=True)
class CellOptions:
    """What the arm may do and must not touch."""

    start: Annotated[
        str | None, typer.Option(help="Start and end pose in degrees, comma separated.")
    ] = None
    envelope: Annotated[
        Path | None, typer.Option(help="Stay within range, speeds, accelerations of this motion.")
    ] = None
    speed: Annotated[float, typer.Option(help="Fraction of the speed limits to use.", max=1)] = 1.0
    acceleration: Annotated[
        float | None, typer.Option(help="Acceleration limit of every joint [rad/s^2].")
    ] = None
    jerk: Annotated[float | None, typer.Option(help="Jerk limit of every joint [rad/s^3].")] = None
    tip_speed: Annotated[float | None, typer.Option(help="Speed limit of the tip [m/s].")] = None
    wall: Annotated[
        list[str] | None,
        typer.Option(help="A plane to stay clear of, NX,NY,NZ,OFFSET in base axes: n.x >= offset."),
    ] = None
    clearance: Annotated[float, typer.Option(help="Distance to keep [m].", min=0, max=10)] = 0.02
    radius: Annotated[
        float | None,
        typer.Option(help="Radius of the capsules around the links [m].", min=0, max=10),
    ] = None
    free_space: Annotated[
        bool, typer.Option("--free-space", help="Nothing to touch: no table, no self-collision.")
    ] = False

    def pose(self, joints: int) -> Float[Array, " j"] | None:
        """--start in radians."""
        import numpy as np

        if self.start is None:
            return None
        return np.radians(numbers(self.start, "--start", joints))

    def limits(self, arm: Robot) -> Limits:
        """The arm's limits as these options change them."""
        import numpy as np

        from taufit.errors import InfeasibleError
        from taufit.excitation import default_limits, envelope_of, read_motion

        _positive(self.speed, "--speed")
        _positive(self.acceleration, "--acceleration")
        _positive(self.jerk, "--jerk")
        if self.envelope is not None:
            motion = read_motion(self.envelope)
            if motion.joints != arm.joints:
                raise InfeasibleError(
                    f"the envelope motion has {motion.joints} joints, the arm {arm.joints}."
                )
            return envelope_of(motion)
        own = default_limits(arm)
        if self.acceleration is not None:
            own = replace(own, acceleration=np.full(arm.joints, self.acceleration))
        return replace(own, velocity=self.speed * own.velocity)

    def scene(self, arm: Robot) -> Scene:
        """The arm's bodies, its mounting surface and the walls."""
        import numpy as np

        from taufit.excitation import Plane, Scene, mounting_plane, scene_for

        _positive(self.tip_speed, "--tip-speed")
        limit = np.inf if self.tip_speed is None else self.tip_speed
        planes = []
        for text in self.wall or []:
            *normal, offset = numbers(text, "--wall", 4)
            length = float(np.linalg.norm(normal))
            if length == 0:
                wrong("--wall", f"the normal in {text!r} has no length; try 1,0,0,-0.5.")
            planes.append(Plane(f"wall {text}", np.array(normal) / length, offset / length))
        if self.free_space:
            return Scene(tip_speed=limit)
        return scene_for(
            arm,
            planes=(mounting_plane(arm), *planes),
            clearance=self.clearance,
            tip_speed=limit,
            radius=self.radius,
        )


@dataclass(frozen=True, slots=True)
class PurposeOptions:
    """What only some kinds of motion need."""

    joint: Annotated[
        int | None,
        typer.Option(help="For friction-test: one joint, from 1; all by default.", min=1),
    ] = None
    speeds: Annotated[
        str | None,
        typer.Option(help="For friction-test: speeds [deg/s], comma separated; planned else."),
    ] = None
    passes: Annotated[
        int | None,
        typer.Option(
            help="For friction-test: how often every stroke is made; by default once, 3 times "
            "where torque is measured behind the gear.",
            min=1,
            max=20,
        ),
    ] = None
    minutes: Annotated[float, typer.Option(help="For warm-up: how long.", min=0.1, max=1440)] = 10.0
    part_mass: Annotated[
        float, typer.Option(help="For payload-inertia: of the part [kg].", min=0.001, max=10000)
    ] = 3.0
    part_size: Annotated[
        float, typer.Option(help="For payload-inertia: its edge [m].", min=0.001, max=100)
    ] = 0.2
    part_deviation: Annotated[
        float,
        typer.Option(
            help="For payload-inertia: standard deviation wanted, relative to m size^2/6.",
            min=1e-4,
            max=1,
        ),
    ] = 0.04
    torque_noise: Annotated[
        str | None,
        typer.Option(help="For payload-inertia: torque a fitted model leaves, per joint [N m]."),
    ] = None

    def inertia(self, joints: int) -> InertiaGoal:
        """What a payload-inertia motion is to reach."""
        import numpy as np

        from taufit.excitation import InertiaGoal

        noise = None
        if self.torque_noise is not None:
            noise = np.array(numbers(self.torque_noise, "--torque-noise", joints))
            if not np.all(noise > 0):
                wrong("--torque-noise", "must be positive.")
        return InertiaGoal(self.part_mass, self.part_size, self.part_deviation, noise)

    def stroke_speeds(self) -> Float[Array, " s"] | None:
        """--speeds in radians per second."""
        import numpy as np

        if self.speeds is None:
            return None
        given = np.radians(numbers(self.speeds, "--speeds"))
        if not np.all(given > 0):
            wrong("--speeds", "must be positive.")
        return given


@dataclass(frozen=True, slots=True)
class EffortOptions:
    """How long to search."""

    seconds: Annotated[
        float,
        typer.Option(
            help="Budget in CPU seconds of a usual machine; counted in evaluations, 170 each.",
            min=0.01,
            max=86400,
        ),
    ] = 3.0
    iterations: Annotated[
        int | None, typer.Option(help="Budget in evaluations, instead.", min=1, max=10**8)
    ] = None
    workers: Annotated[
        int, typer.Option(help="Processes to search in; each with this budget.", min=1, max=256)
    ] = 1
    seed: Annotated[int, typer.Option(help="Of the random starts.", min=0)] = 0

    def effort(self, tell: Any) -> Effort:
        """As the library takes it."""
        from taufit.excitation import Effort

        return Effort(self.seconds, self.iterations, self.seed, self.workers, tell)


@dataclass(frozen=True, slots=True)
class FormOptions:
    """Other forms of the motion."""

    csv: Annotated[Path | None, typer.Option(help="Also write a table of q, v, a.")] = None
    urscript: Annotated[Path | None, typer.Option(help="Also write a URScript program.")] = None
    ros2: Annotated[Path | None, typer.Option(help="Also write a JointTrajectory as YAML.")] = None
    plot: Annotated[Path | None, typer.Option(help="Also write a page with plots and 3-D.")] = None

    def write(self, arm: Robot, plan: Plan) -> list[Path]:
        """Write what was asked for; returns the files."""
        from taufit.excitation import to_csv, to_joint_trajectory, to_urscript
        from taufit.files import write_text

        motion = plan.motion
        if self.csv:
            write_text(self.csv, to_csv(motion))
        if self.urscript:
            write_text(self.urscript, to_urscript(motion))
        if self.ros2:
            write_text(self.ros2, to_joint_trajectory(motion, arm.joint_names))
        if self.plot:
            from taufit.report.motion_page import motion_page

            write_text(self.plot, motion_page(arm, motion, plan.limits, plan.design))
        return [path for path in (self.csv, self.urscript, self.ros2, self.plot) if path]


def command(  # noqa: PLR0913 - one parameter per group of options
    robot: RobotName,
    which: RobotOptions,
    series: SeriesOptions,
    goal: GoalOptions,
    cell: CellOptions,
    purpose: PurposeOptions,
    effort: EffortOptions,
    forms: FormOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Motion file.")] = Path(
        "motion.json"
    ),
    kind: Annotated[
        str,
        typer.Option(
            help="identification, validation (differs from the identification motion), payload "
            "(wide slow arm, fast wrist), payload-inertia, friction-test (constant-speed strokes) "
            "or warm-up."
        ),
    ] = "identification",
    as_json: Json = False,
) -> None:
    """Plan an excitation trajectory: certified on a fine grid, or refused with the reason.

    By default the arm keeps clear of itself and of the surface it is mounted on, within the limits
    of its description. The condition number holds for the true sign of velocity, unscaled SI
    columns, the leftmost base columns and 2000 samples; a low one is not information: criterion
    "a" (default) minimises standard deviations instead. The same seed gives the same motion. A
    motion whose column-scaled condition number is above 30 (more for friction models with similar
    terms) is refused.

    Next: play the motion on the robot (--urscript, --ros2, --csv) or `taufit simulate`, then
    `taufit fit`; a friction test goes to `taufit friction`.
    """
    from taufit.cli.common import plain
    from taufit.excitation import KINDS, plan, write_motion

    kind = one_of(_ALIASES.get(kind, kind), KINDS, "--kind")
    arm = which.read(robot)
    if purpose.joint is not None and purpose.joint > arm.joints:
        wrong("--joint", f"this arm has joints 1 to {arm.joints}, not {purpose.joint}.")
    model = goal.model(arm)
    with progress("designing") as bar:
        task = bar.add_task("designing", total=1.0)
        found = plan(
            kind,
            arm,
            model=model,
            criterion=goal.criterion,
            basis=series.basis(arm.joints),
            limits=cell.limits(arm),
            jerk=float("inf") if cell.jerk is None else cell.jerk,
            scene=cell.scene(arm),
            start=cell.pose(arm.joints),
            earlier=goal.earlier(),
            effort=effort.effort(lambda share, _: bar.update(task, completed=min(share, 1.0))),
            joints=() if purpose.joint is None else (purpose.joint,),
            speeds=purpose.stroke_speeds(),
            passes=purpose.passes,
            minutes=purpose.minutes,
            inertia=purpose.inertia(arm.joints),
        )
    data = _summary(found)
    # Times differ from run to run; the file of one seed does not.
    notes = {key: plain(x) for key, x in data.items() if key not in ("kind", "cpu_seconds")}
    write_motion(found.motion, output, robot=arm.name, mounting=list(arm.mounting), **notes)
    more = forms.write(arm, found)
    if as_json:
        print_json({**data, "output": str(output)})
        return
    _print(data, output, more)


def _summary(plan: Plan) -> dict[str, Any]:
    """What `--json` says of a plan."""
    data: dict[str, Any] = {"kind": plan.kind, "duration": plan.motion.duration}
    data["joints"] = plan.motion.joints
    result = plan.design
    if result is not None:
        data |= {
            "criterion": result.criterion,
            "condition_number": result.condition_number,
            "condition_number_scaled": result.condition_number_scaled,
            "log_det": result.log_det,
            "feasible": result.feasible,
            "worst_margin": result.worst.margin,
            "worst_constraint": result.worst.name,
            "shrunk_to": result.shrunk_to,
            "iterations": result.iterations,
            "cpu_seconds": result.cpu_seconds,
            "starts": result.starts,
            "warnings": list(result.warnings),
            "base_parameters": len(result.names),
            "samples": result.samples,
            "column_scaling": "none (SI); unit columns in condition_number_scaled",
            "base_columns": "leftmost independent, base to tip",
        }
    if plan.friction_test is not None:
        data["pose"] = plan.friction_test.pose.tolist()
        data["tests"] = [
            {
                "joint": one.joint,
                "speeds": one.speeds.tolist(),
                "expected_deviation": one.deviation,
                "not_identifiable": list(one.missing),
            }
            for one in plan.friction_test.plans
        ]
    if plan.inertia is not None:
        data["inertia"] = {
            "seconds": plan.inertia.seconds,
            "wanted": plan.inertia.wanted,
            "expected_deviation": plan.inertia.deviation,
            "reached": plan.inertia.reached,
        }
    return data


def _earlier(path: Path, map: Path | None) -> Motion:
    """A motion file, or a recording as the motion it shows."""
    from taufit.excitation import read_motion

    if path.suffix == ".json":
        return read_motion(path)
    from taufit.excitation.purpose import recorded_motion
    from taufit.recording import read_recording
    from taufit.signals import condition

    return recorded_motion(condition(read_recording(path, map=map)))


def _positive(value: float | None, option: str) -> None:
    if value is not None and not 0 < value < float("inf"):
        wrong(option, f"must be positive and finite, got {value:g}.")


def _print(data: dict[str, Any], output: Path, more: list[Path]) -> None:
    from rich.table import Table

    from taufit.cli.common import headline, plain_console

    console = plain_console()
    console.print(f"A {data['kind']} motion of {data['duration']:.4g} s.")
    if "feasible" in data:
        console.print(
            headline(
                "Feasible",
                f": checked at 5000 moments; tightest is {data['worst_constraint']} "
                f"({data['worst_margin']:.3g} left).",
            )
        )
        table = Table(show_header=False, box=None)
        for key in ("base_parameters", "condition_number", "condition_number_scaled", "log_det"):
            table.add_row(key.replace("_", " "), f"{data[key]:.4g}")
        table.add_row("criterion", str(data["criterion"]))
        table.add_row("search", f"{data['iterations']} evaluations, {data['starts']} starts")
        console.print(table)
        for warning in data["warnings"]:
            console.print(headline("Warning", f": {warning}.", "yellow"))
    for one in data.get("tests", ()):
        top = max(one["speeds"])
        line = f"joint {one['joint']}: {len(one['speeds'])} speeds up to {top:.3g} rad/s"
        if one["not_identifiable"]:
            line += f"; expected above 20 %: {', '.join(one['not_identifiable'])}"
        console.print(line)
    if "inertia" in data:
        inertia = data["inertia"]
        shown = ", ".join(f"{k} {v:.2g}" for k, v in inertia["expected_deviation"].items())
        verdict = "reached" if inertia["reached"] else "not reached"
        console.print(
            f"Expected standard deviations [kg m^2]: {shown}; {inertia['wanted']:.2g} was wanted "
            f"({verdict}) in {inertia['seconds']:.3g} s."
        )
    console.print("Written: " + ", ".join(str(path) for path in [output, *more]))
    following = "`taufit friction`" if "tests" in data else f"`taufit simulate ROBOT {output}`"
    console.print(f"Next: play it on the robot, then {following}.", soft_wrap=True)
