"""Trajectory played by `taufit record`: reading, clearance, display and player."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.options import usage_error
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.clearance import Clearance, ClearanceCheck, MotionFile
    from taufit.robot import Robot
    from taufit.wire.player import Approach, Playback, PlaybackGuard, Player
    from taufit.wire.source import SourceDescription
    from taufit.wire.source_address import SourceAddress
    from taufit.wire.ur import UrPorts

# Lower limit of the speed fraction of the first period.
_MIN_SPEED_FRACTION = 0.05


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """Playback of a trajectory."""

    periods: Annotated[
        float | None, typer.Option(help="Number of periods played.", min=0.1, max=1000)
    ] = None
    slow: Annotated[
        float,
        typer.Option(
            help="Speed fraction of a first, unrecorded period (0.05 to 1); 0: none.",
            min=0.0,
            max=1.0,
        ),
    ] = 0.3
    warm_up: Annotated[
        float, typer.Option(help="Playing time before the recording [min].", min=0, max=240)
    ] = 0.0
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Send set points one by one instead of a complete program."),
    ] = False
    controller: Annotated[
        str,
        typer.Option(
            help="Topic of the trajectory controller, for ros2; default that of "
            "joint_trajectory_controller.",
            show_default=False,
        ),
    ] = "/joint_trajectory_controller/joint_trajectory"
    yes: Annotated[bool, typer.Option("--yes", help="Move the robot without asking.")] = False
    uncertified: Annotated[
        bool,
        typer.Option(
            "--uncertified",
            help="Play a motion changed after `design`, or planned without scene.",
        ),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent, without connecting.")
    ] = False


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMotion:
    """A trajectory to be played on a robot.

    Attributes:
        file: Motion file.
        robot: Robot in the mounting of the plan.
        robot_given: Whether the user named the robot.
        check: Prepared clearance check.
        play: Playback options.
    """

    file: MotionFile
    robot: Robot
    robot_given: bool
    check: ClearanceCheck
    play: PlayOptions

    def playback(self, clearance: Clearance) -> Playback:
        """Motion with slow period and warm-up, for players that send it step by step."""
        from taufit.wire.player import Playback

        motion = clearance.motion
        return Playback(
            motion,
            self.play.slow,
            60.0 * self.play.warm_up,
            getattr(motion, "period", None),
            clearance.back,
        )

    def approach(self, clearance: Clearance) -> Approach:
        """Verified approach, or the start pose alone if the present pose is unknown."""
        import numpy as np

        from taufit.wire.player import Approach

        if clearance.approach is not None:
            return clearance.approach
        start = clearance.reach.start
        return Approach(np.stack([start, start]), self.check.speed, self.check.acceleration)

    def program_text(self, clearance: Clearance, address: SourceAddress) -> str:
        """Program or trajectory as text, for a dry run: of an e-Series controller, or ROS 2."""
        approach = self.approach(clearance)
        if address.kind == "ros2":
            from taufit.wire.ros import Ros2Player

            names, playback = self.robot.joint_names, self.playback(clearance)
            return Ros2Player(self.play.controller, playback, names, approach).text()
        if self.play.stream:
            from taufit.wire.ur_stream import stream_program

            return stream_program(approach, 0.002)
        return self.program(clearance, 500.0)

    def program(self, clearance: Clearance, rate_hz: float) -> str:
        """URScript of the complete playback."""
        from taufit.excitation.robot_programs import to_urscript

        return to_urscript(
            clearance.motion,
            step_s=1.0 / rate_hz,
            slow=self.play.slow,
            warm_up_s=60.0 * self.play.warm_up,
            phases=True,
            call=False,
            approach=self.approach(clearance),
            back=clearance.back,
            knots_s=clearance.knots_s,
        )

    def player(
        self,
        clearance: Clearance,
        address: SourceAddress,
        ports: UrPorts,
        description: SourceDescription,
    ) -> Player:
        """Player for this controller and kind of playback."""
        approach = self.approach(clearance)
        if address.kind == "ros2":
            from taufit.wire.ros import Ros2Player

            names, playback = self.robot.joint_names, self.playback(clearance)
            return Ros2Player(self.play.controller, playback, names, approach)
        if self.play.stream:
            from taufit.wire.ur_stream import UrStreamPlayer

            return UrStreamPlayer(address.location, self.playback(clearance), approach, ports=ports)
        from taufit.wire.ur_player import UrPlayer

        return UrPlayer(address.location, self.program(clearance, description.rate_hz), ports=ports)

    def guard(self, clearance: Clearance) -> PlaybackGuard:
        """Limits monitored while the robot plays."""
        from taufit.wire.player import PlaybackGuard

        reach = clearance.reach
        return PlaybackGuard(
            self.robot.joint_names, reach.lower, reach.upper, clearance.limits.velocity
        )

    @property
    def duration_s(self) -> float:
        """Recorded duration, with standstill before and after [s]."""
        return self.check.motion.duration + 1.0


def read_planned_motion(
    path: Path, address: SourceAddress, play: PlayOptions, robot: str | None
) -> PlannedMotion:
    """Read a motion and its robot, before connecting."""
    from dataclasses import replace

    from taufit.clearance import ClearanceCheck, read_motion_file
    from taufit.clearance.playback import PROGRAM, STREAM, TRAJECTORY
    from taufit.core.errors import TaufitError

    if address.kind not in ("ur", "ros2"):
        raise TaufitError(
            f"motions are played on Universal Robots controllers or through ROS 2; {address.kind}: "
            "is only read. Play it with the robot's own tools and record without MOTION."
        )
    if address.kind == "ros2" and play.stream:
        usage_error("--stream", "ROS 2 takes a whole trajectory; leave --stream out")
    if 0.0 < play.slow < _MIN_SPEED_FRACTION:
        usage_error(
            "--slow",
            f"a first period is played at {_MIN_SPEED_FRACTION} to 1 of the speed, or not at all",
        )
    file = read_motion_file(path)
    motion = file.motion
    if play.periods is not None:
        if not hasattr(motion, "periods"):
            raise TaufitError(f"{path} is not a periodic motion; --periods does not apply.")
        motion = replace(motion, periods=play.periods)  # type: ignore[type-var]
    arm = _read_robot(file, robot)
    playback_kind = TRAJECTORY if address.kind == "ros2" else STREAM if play.stream else PROGRAM
    is_repeated = play.slow > 0.0 or play.warm_up > 0.0
    check = ClearanceCheck(file, arm, mode=playback_kind, motion=motion, is_repeated=is_repeated)
    if robot is None and Path(file.robot_name or "").suffix and not check.is_known_robot:
        raise TaufitError(
            f"{path} names the robot file {file.robot_name}, which describes no arm that taufit "
            "knows: if its limits are right, name it yourself with --robot."
        )
    return PlannedMotion(file, arm, robot is not None, check, play)


def _read_robot(file: MotionFile, robot: str | None) -> Robot:
    """Robot of a motion, in the mounting of the plan."""
    from taufit.core.errors import TaufitError
    from taufit.robot import read_robot

    name = robot or file.robot_name
    if name is None:
        raise TaufitError(f"{file.path} does not say which robot it is for: name it with --robot.")
    if robot is None and Path(name).suffix.lower() == ".xacro":
        raise TaufitError(
            f"{file.path} names {name}; a xacro is a program and is evaluated only when you name "
            "it yourself with --robot."
        )
    arm = read_robot(name)
    if arm.joints != file.motion.joints:
        raise TaufitError(f"the motion moves {file.motion.joints} joints; {name} has {arm.joints}.")
    return arm if file.mounting is None else arm.with_mounting(file.mounting)


def show_planned_motion(
    planned: PlannedMotion, clearance: Clearance, pose: Any, notes: list[str]
) -> None:
    """Print the planned motion and its clearance on stderr."""
    from rich.table import Table

    from taufit.cli.common import plain_console
    from taufit.core.number_text import fixed

    reach, slow = clearance.reach, planned.play.slow
    approach = clearance.approach
    vias = [] if approach is None else list(approach.poses[1:-1])
    table = Table(title=f"{planned.robot.name}: {reach.duration:.1f} s of motion")
    via_names = [f"by way of {k + 1}" if len(vias) > 1 else "by way of" for k in range(len(vias))]
    for heading in ("joint", "now", *via_names, "start", "from", "to", "speed", "acceleration"):
        table.add_column(heading, justify="left" if heading == "joint" else "right")
    for i, name in enumerate(planned.robot.joint_names):
        present = "" if pose is None else fixed(pose[i], 2)
        table.add_row(
            name,
            present,
            *(fixed(via[i], 2) for via in vias),
            fixed(reach.start[i], 2),
            fixed(reach.lower[i], 2),
            fixed(reach.upper[i], 2),
            fixed(reach.speed[i], 2),
            fixed(reach.acceleration[i], 2),
        )
    console = plain_console(stderr=True)
    console.print(table)
    console.print(
        f"rad, rad/s, rad/s^2. First the arm goes to the start at up to {planned.check.speed:.2g} "
        "rad/s" + (f", then one period at {100 * slow:.0f} % of the speed." if slow else "."),
    )
    for text in (*clearance.notes, *notes):
        console.print(f"- {text}")
    if planned.play.uncertified:
        for text in clearance.uncertified:
            console.print(f"NOT CERTIFIED: {text}", style="bold")
