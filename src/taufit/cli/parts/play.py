"""A motion that `taufit record` plays: read, cleared, shown, and given to the right player."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.options import usage_error

if TYPE_CHECKING:
    from taufit.clearance import Clearance, ClearanceCheck, MotionFile
    from taufit.robot import Robot
    from taufit.wire.open import Address
    from taufit.wire.player import Approach, Guard, Playback, Player
    from taufit.wire.source import Description
    from taufit.wire.ur import UrPorts

# The slowest first period: a share of 0.05 takes twenty times as long.
_SLOWEST = 0.05


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """How a motion is played."""

    periods: Annotated[
        float | None, typer.Option(help="How often the motion is played.", min=0.1, max=1000)
    ] = None
    slow: Annotated[
        float,
        typer.Option(
            help="Share of the speed of a first period (0.05 to 1), not recorded; 0: none.",
            min=0.0,
            max=1.0,
        ),
    ] = 0.3
    warm_up: Annotated[
        float, typer.Option(help="Minutes to play before it is recorded.", min=0, max=240)
    ] = 0.0
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Send set points step by step, not a program that has all."),
    ] = False
    controller: Annotated[
        str, typer.Option(help="Topic of the trajectory controller that plays, for ros2.")
    ] = "/joint_trajectory_controller/joint_trajectory"
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the robot moves.")] = False
    uncertified: Annotated[
        bool,
        typer.Option(
            "--uncertified",
            help="Play what was changed after `design`, or planned without a cell.",
        ),
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent; connect to nothing.")
    ] = False


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A motion to be played on an arm.

    Attributes:
        file: The motion and what its file says.
        robot: The arm, mounted as the motion was planned for.
        robot_given: Whether the user named it.
        check: Proofs, prepared.
        play: Options.
    """

    file: MotionFile
    robot: Robot
    robot_given: bool
    check: ClearanceCheck
    play: PlayOptions

    def playback(self, clearance: Clearance) -> Playback:
        """The motion with what comes before it, for players that send it step by step."""
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
        """The proved way, or the start alone where nobody knows where the arm stands."""
        import numpy as np

        from taufit.wire.player import Approach

        if clearance.approach is not None:
            return clearance.approach
        start = clearance.reach.start
        return Approach(np.stack([start, start]), self.check.speed, self.check.acceleration)

    def sent(self, clearance: Clearance, address: Address) -> str:
        """What would be sent, for a dry run: to an e-Series controller, or to ROS 2."""
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
        """URScript of the whole playback."""
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
        self, clearance: Clearance, address: Address, ports: UrPorts, description: Description
    ) -> Player:
        """The one for this controller and way of playing."""
        approach = self.approach(clearance)
        if address.kind == "ros2":
            from taufit.wire.ros import Ros2Player

            names, playback = self.robot.joint_names, self.playback(clearance)
            return Ros2Player(self.play.controller, playback, names, approach)
        if self.play.stream:
            from taufit.wire.ur_stream import UrStreamPlayer

            return UrStreamPlayer(address.place, self.playback(clearance), approach, ports=ports)
        from taufit.wire.ur_player import UrPlayer

        return UrPlayer(address.place, self.program(clearance, description.rate_hz), ports=ports)

    def guard(self, clearance: Clearance) -> Guard:
        """Bounds of the arm while it plays."""
        from taufit.wire.player import Guard

        reach = clearance.reach
        return Guard(self.robot.joint_names, reach.lower, reach.upper, clearance.limits.velocity)

    @property
    def length(self) -> float:
        """Of what counts, with the rest before and after [s]."""
        return self.check.motion.duration + 1.0


def read_planned(path: Path, address: Address, play: PlayOptions, robot: str | None) -> Planned:
    """Read a motion and the arm it is for, before anything is connected."""
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
    if 0.0 < play.slow < _SLOWEST:
        usage_error(
            "--slow", f"a first period is played at {_SLOWEST} to 1 of the speed, or not at all"
        )
    file = read_motion_file(path)
    motion = file.motion
    if play.periods is not None:
        if not hasattr(motion, "periods"):
            raise TaufitError(f"{path} is not a periodic motion; --periods does not apply.")
        motion = replace(motion, periods=play.periods)  # type: ignore[type-var]
    arm = _arm(file, robot)
    way = TRAJECTORY if address.kind == "ros2" else STREAM if play.stream else PROGRAM
    repeated = play.slow > 0.0 or play.warm_up > 0.0
    check = ClearanceCheck(file, arm, mode=way, motion=motion, is_repeated=repeated)
    if robot is None and Path(file.robot_name or "").suffix and not check.is_known_robot:
        raise TaufitError(
            f"{path} names the robot file {file.robot_name}, which describes no arm that taufit "
            "knows: if its limits are right, name it yourself with --robot."
        )
    return Planned(file, arm, robot is not None, check, play)


def _arm(file: MotionFile, robot: str | None) -> Robot:
    """The arm a motion is for, mounted as it was planned for."""
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


def show_reach(planned: Planned, clearance: Clearance, here: Any, notes: list[str]) -> None:
    """What will move and what was proved, on stderr."""
    from rich.table import Table

    from taufit.cli.common import plain_console

    reach, slow = clearance.reach, planned.play.slow
    approach = clearance.approach
    vias = [] if approach is None else list(approach.poses[1:-1])
    table = Table(title=f"{planned.robot.name}: {reach.duration:.1f} s of motion")
    by_way = [f"by way of {k + 1}" if len(vias) > 1 else "by way of" for k in range(len(vias))]
    for heading in ("joint", "now", *by_way, "start", "from", "to", "speed", "acceleration"):
        table.add_column(heading, justify="left" if heading == "joint" else "right")
    for i, name in enumerate(planned.robot.joint_names):
        now = "" if here is None else f"{here[i]:.2f}"
        table.add_row(
            name,
            now,
            *(f"{via[i]:.2f}" for via in vias),
            f"{reach.start[i]:.2f}",
            f"{reach.lower[i]:.2f}",
            f"{reach.upper[i]:.2f}",
            f"{reach.speed[i]:.2f}",
            f"{reach.acceleration[i]:.2f}",
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
