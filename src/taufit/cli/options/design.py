"""Options of `taufit design`, in groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.options import parse_numbers, require_choice, usage_error
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.clearance import Cell
    from taufit.core.arrays import Array, Float
    from taufit.excitation import InertiaGoal, Motion, Plan, Scene, SearchEffort
    from taufit.excitation.basis import Basis
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import JointLimits, Robot


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """Parametrisation of the trajectory."""

    frequency_hz: Annotated[
        float, typer.Option(help="Frequency of the first harmonic [Hz].", min=1e-6, max=1000)
    ] = 0.1
    harmonics: Annotated[int, typer.Option(help="Harmonics per joint.", min=2, max=100)] = 5
    joint_harmonics: Annotated[
        str | None, typer.Option(help="Number of harmonics of each joint, comma separated.")
    ] = None
    periods: Annotated[int, typer.Option(help="Number of periods played.", min=1, max=10000)] = 1
    splines: Annotated[
        int,
        typer.Option(
            help="Number of B-spline pieces (at least 6) instead of harmonics; 0: harmonics.",
            min=0,
            max=1000,
        ),
    ] = 0

    def basis(self, joints: int) -> Basis:
        """Convert to a trajectory basis."""
        from taufit.excitation import FourierBasis, SplineBasis

        if self.splines:
            if self.splines < 6:
                usage_error("--splines", "a motion at rest at both ends needs at least 6 pieces.")
            return SplineBasis(self.splines, self.periods / self.frequency_hz)
        counts = None
        if self.joint_harmonics is not None:
            harmonics = parse_numbers(self.joint_harmonics, "--joint-harmonics", joints)
            if any(x != int(x) or not 2 <= x <= self.harmonics for x in harmonics):
                usage_error(
                    "--joint-harmonics", f"expected whole numbers from 2 to {self.harmonics}."
                )
            counts = tuple(int(x) for x in harmonics)
        return FourierBasis(
            self.harmonics, self.frequency_hz, periods=self.periods, joint_harmonics=counts
        )


@dataclass(frozen=True, slots=True)
class GoalOptions:
    """Purpose of the trajectory: model and criterion."""

    criterion: Annotated[
        str,
        typer.Option(
            help="Optimality criterion: a, d, cond, cond_scaled, product, three_stage, "
            "weighted_blocks or worst_case."
        ),
    ] = "a"
    delta1: Annotated[
        float, typer.Option(help="Condition number that three_stage has to reach.", min=1)
    ] = 100.0
    delta2: Annotated[
        float | None, typer.Option(help="Largest -ln det that three_stage accepts.")
    ] = None
    friction: Annotated[str, typer.Option(help="Friction model to identify.")] = "linear"
    rotor_inertia: Annotated[
        bool, typer.Option("--rotor-inertia", help="Identify rotor inertias as well.")
    ] = False
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="No torque offset in the model.")
    ] = False
    after: Annotated[
        list[Path] | None,
        typer.Option(
            help="Earlier motions or recordings; the new one complements them. Repeatable."
        ),
    ] = None
    map: Annotated[
        Path | None, typer.Option("--map", help="Column map of recordings given with --after.")
    ] = None

    def model(self, arm: Robot) -> TorqueModel:
        """Model to identify."""
        from taufit.excitation import CRITERIA
        from taufit.model.torque_model import TorqueModel
        from taufit.terms.friction import FRICTION_MODELS

        require_choice(self.criterion, CRITERIA, "--criterion")
        friction = FRICTION_MODELS[require_choice(self.friction, FRICTION_MODELS, "--friction")]()
        return TorqueModel(
            arm, friction, rotor_inertia=self.rotor_inertia, offset=not self.no_offset
        )

    def earlier_motions(self) -> list[Motion]:
        """Motions of --after."""
        return [_read_earlier_motion(path, self.map) for path in self.after or []]


@dataclass(frozen=True, slots=True)
class LimitAndSceneOptions:
    """Limits of the robot and obstacles."""

    start: Annotated[
        str | None, typer.Option(help="Start and end pose [deg], comma separated.")
    ] = None
    envelope: Annotated[
        Path | None,
        typer.Option(help="Motion file whose ranges, speeds, accelerations are limits."),
    ] = None
    speed: Annotated[float, typer.Option(help="Fraction of the speed limits to use.", max=1)] = 1.0
    acceleration: Annotated[
        float | None, typer.Option(help="Acceleration limit of all joints [rad/s^2].")
    ] = None
    jerk: Annotated[float | None, typer.Option(help="Jerk limit of all joints [rad/s^3].")] = None
    tip_speed: Annotated[float | None, typer.Option(help="Speed limit of the tip [m/s].")] = None
    wall: Annotated[
        list[str] | None,
        typer.Option(
            help="Plane as obstacle, NX,NY,NZ,OFFSET in base axes: n.x >= offset. Repeatable."
        ),
    ] = None
    clearance: Annotated[
        float, typer.Option(help="Smallest distance to obstacles and itself [m].", min=0, max=10)
    ] = 0.02
    radius: Annotated[
        float | None,
        typer.Option(help="Radius of the capsules around the links [m].", min=0, max=10),
    ] = None
    free_space: Annotated[
        bool, typer.Option("--free-space", help="No obstacles: no table, no self-collision.")
    ] = False

    def pose(self, joints: int) -> Float[Array, " j"] | None:
        """Pose of --start [rad], None without it."""
        import numpy as np

        if self.start is None:
            return None
        return np.radians(parse_numbers(self.start, "--start", joints))

    def limits(self, arm: Robot) -> JointLimits:
        """Limits of the robot, changed by these options."""
        import numpy as np

        from taufit.core.errors import InfeasibleError
        from taufit.excitation import default_limits, limits_of_motion, read_motion

        _require_positive(self.speed, "--speed")
        _require_positive(self.acceleration, "--acceleration")
        _require_positive(self.jerk, "--jerk")
        if self.envelope is not None:
            motion = read_motion(self.envelope)
            if motion.joints != arm.joints:
                raise InfeasibleError(
                    f"the envelope motion has {motion.joints} joints, the arm {arm.joints}."
                )
            return limits_of_motion(motion)
        limits = default_limits(arm)
        if self.acceleration is not None:
            limits = replace(limits, acceleration=np.full(arm.joints, self.acceleration))
        return replace(limits, velocity=self.speed * limits.velocity)

    def scene(self, arm: Robot) -> Scene:
        """Collision bodies of the robot, its mounting surface and the planes."""
        import numpy as np

        from taufit.excitation import Plane, Scene, mounting_plane, scene_for

        _require_positive(self.tip_speed, "--tip-speed")
        limit = np.inf if self.tip_speed is None else self.tip_speed
        planes = []
        for text in self.wall or []:
            *normal, offset = parse_numbers(text, "--wall", 4)
            length = float(np.linalg.norm(normal))
            if length == 0:
                usage_error("--wall", f"the normal in {text!r} has no length; try 1,0,0,-0.5.")
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

    def cell(self, plan: Plan, scene: Scene) -> Cell:
        """Limits and scene of the plan, for its file; torque limits if a search applied them."""
        import numpy as np

        from taufit.clearance import Cell

        limits = plan.limits
        if plan.design is None:
            limits = replace(limits, torque=np.full(len(limits.torque), np.inf))
        jerk = np.inf if self.jerk is None or plan.design is None else self.jerk
        return Cell.of(scene, limits, jerk, self.radius)


@dataclass(frozen=True, slots=True)
class PurposeOptions:
    """Options of particular kinds of motion."""

    joint: Annotated[
        list[int] | None,
        typer.Option(help="friction-test: joint number from 1, repeatable; default all.", min=1),
    ] = None
    speeds: Annotated[
        str | None,
        typer.Option(help="friction-test: speeds [deg/s], comma separated; default planned."),
    ] = None
    passes: Annotated[
        int | None,
        typer.Option(
            help="friction-test: number of passes per stroke; default 1, 2 for torque measured "
            "behind the gear.",
            min=1,
            max=20,
        ),
    ] = None
    minutes: Annotated[
        float | None,
        typer.Option(
            help="warm-up: duration, default 10; friction-test: budget, all joints at once [min].",
            min=0.1,
            max=1440,
        ),
    ] = None
    part_mass: Annotated[
        float, typer.Option(help="payload-inertia: mass of the part [kg].", min=0.001, max=10000)
    ] = 3.0
    part_size: Annotated[
        float,
        typer.Option(help="payload-inertia: edge length of the part [m].", min=0.001, max=100),
    ] = 0.2
    part_deviation: Annotated[
        float,
        typer.Option(
            help="payload-inertia: required standard deviation, relative to m size^2/6.",
            min=1e-4,
            max=1,
        ),
    ] = 0.04
    torque_noise: Annotated[
        str | None,
        typer.Option(help="payload-inertia: residual RMS of a fitted model, per joint [N m]."),
    ] = None

    def inertia(self, joints: int) -> InertiaGoal:
        """Goal of a payload-inertia motion."""
        import numpy as np

        from taufit.excitation import InertiaGoal

        noise = None
        if self.torque_noise is not None:
            noise = np.array(parse_numbers(self.torque_noise, "--torque-noise", joints))
            if not np.all(noise > 0):
                usage_error("--torque-noise", "must be positive.")
        return InertiaGoal(self.part_mass, self.part_size, self.part_deviation, noise)

    def joints(self, arm: Robot) -> tuple[int, ...]:
        """Joints of a friction test; none stands for all."""
        for number in self.joint or ():
            if number > arm.joints:
                usage_error("--joint", f"this arm has joints 1 to {arm.joints}, not {number}.")
        return tuple(sorted(set(self.joint or ())))

    def stroke_speeds(self) -> Float[Array, " s"] | None:
        """Speeds of --speeds [rad/s], None without it."""
        import numpy as np

        if self.speeds is None:
            return None
        speeds = np.radians(parse_numbers(self.speeds, "--speeds"))
        if not np.all(speeds > 0):
            usage_error("--speeds", "must be positive.")
        return speeds


@dataclass(frozen=True, slots=True)
class SearchBudgetOptions:
    """Budget of the search."""

    seconds: Annotated[
        float,
        typer.Option(
            help="Budget in CPU seconds of a typical computer, counted as 170 evaluations each.",
            min=0.01,
            max=86400,
        ),
    ] = 3.0
    iterations: Annotated[
        int | None,
        typer.Option(help="Budget in evaluations; overrides --seconds.", min=1, max=10**8),
    ] = None
    workers: Annotated[
        int, typer.Option(help="Parallel processes, each with this budget.", min=1, max=256)
    ] = 1
    seed: Annotated[int, typer.Option(help="Seed of the random starts.", min=0)] = 0

    def effort(self, callback: Any) -> SearchEffort:
        """Convert to a search effort."""
        from taufit.excitation import SearchEffort

        return SearchEffort(self.seconds, self.iterations, self.seed, self.workers, callback)


@dataclass(frozen=True, slots=True)
class MotionFileOptions:
    """Further files of the motion."""

    csv: Annotated[Path | None, typer.Option(help="CSV table of q, v, a to write.")] = None
    urscript: Annotated[Path | None, typer.Option(help="URScript program to write.")] = None
    ros2: Annotated[Path | None, typer.Option(help="ROS 2 JointTrajectory YAML to write.")] = None
    plot: Annotated[Path | None, typer.Option(help="HTML page with plots and 3-D view.")] = None

    def write(self, arm: Robot, plan: Plan) -> list[Path]:
        """Write the requested files; return their paths."""
        from taufit.core.files import write_text
        from taufit.excitation import to_csv, to_joint_trajectory, to_urscript

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


def _read_earlier_motion(path: Path, map: Path | None) -> Motion:
    """Read a motion file, or the motion of a recording."""
    from taufit.excitation import read_motion

    if path.suffix == ".json":
        return read_motion(path)
    from taufit.excitation.motion_kinds import motion_from_recording
    from taufit.recording import read_recording
    from taufit.signals import condition

    return motion_from_recording(condition(read_recording(path, column_map=map)))


def _require_positive(value: float | None, option: str) -> None:
    if value is not None and not 0 < value < float("inf"):
        usage_error(option, f"must be positive and finite, got {value:g}.")
