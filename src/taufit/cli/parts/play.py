"""A motion that `taufit record` plays: read, checked, shown, and given to the right player."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.options import wrong

if TYPE_CHECKING:
    from taufit.excitation import Motion
    from taufit.robot import Robot
    from taufit.wire.open import Address
    from taufit.wire.player import Playback, Player, Reach
    from taufit.wire.source import Block, Description
    from taufit.wire.ur import UrPorts


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """How a motion is played."""

    periods: Annotated[
        float | None, typer.Option(help="How often the motion is played.", min=0.1, max=1000)
    ] = None
    slow: Annotated[
        float,
        typer.Option(help="Share of the speed of a first period, not recorded; 0: none.", max=1.0),
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent; connect to nothing.")
    ] = False


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A motion to be played and what it asks of the arm."""

    motion: Motion
    robot: Robot
    reach: Reach
    play: PlayOptions

    def playback(self) -> Playback:
        """The motion with what comes before it, for players that send it step by step."""
        from taufit.wire.player import Playback

        period = getattr(self.motion, "period", None)
        return Playback(self.motion, self.play.slow, 60.0 * self.play.warm_up, period)

    def sent(self, address: Address) -> str:
        """What would be sent, for a dry run: to an e-Series controller, or to ROS 2."""
        if address.kind == "ros2":
            from taufit.wire.ros import Ros2Player

            names, start = self.robot.joint_names, self.reach.start
            return Ros2Player(self.play.controller, self.playback(), names, start).text()
        if self.play.stream:
            from taufit.wire.ur_stream import stream_program

            return stream_program(self.reach.start, 0.002)
        return self.program(500.0)

    def program(self, rate_hz: float) -> str:
        from taufit.excitation.programs import to_urscript

        return to_urscript(
            self.motion,
            step_s=1.0 / rate_hz,
            slow=self.play.slow,
            warm_up_s=60.0 * self.play.warm_up,
            phases=True,
            call=False,
        )


def read_planned(path: Path, address: Address, play: PlayOptions, robot: str | None) -> Planned:
    """Read and check a motion before anything is connected."""
    import json
    from dataclasses import replace

    import numpy as np

    from taufit.core.errors import InfeasibleError, TaufitError
    from taufit.excitation import read_motion
    from taufit.robot import read_robot
    from taufit.wire.player import Reach

    if address.kind not in ("ur", "ros2"):
        raise TaufitError(
            f"motions are played on Universal Robots controllers or through ROS 2; {address.kind}: "
            "is only read. Play it with the robot's own tools and record without MOTION."
        )
    if address.kind == "ros2" and play.stream:
        wrong("--stream", "ROS 2 takes a whole trajectory; leave --stream out")
    motion = read_motion(path)
    if play.periods is not None:
        if not hasattr(motion, "periods"):
            raise TaufitError(f"{path} is not a periodic motion; --periods does not apply.")
        motion = replace(motion, periods=play.periods)  # type: ignore[type-var]
    notes = json.loads(path.read_text(encoding="utf-8")).get("notes", {})
    name = robot or notes.get("robot")
    if not isinstance(name, str):
        raise TaufitError(f"{path} does not say which robot it is for: name it with --robot.")
    arm = read_robot(name, expand=robot is not None)
    if arm.joints != motion.joints:
        raise TaufitError(f"the motion moves {motion.joints} joints; {name} has {arm.joints}.")
    time = np.linspace(0.0, motion.duration, max(200, int(200 * motion.duration)))
    q, v, a = motion.at(time)
    reach = Reach.of(q, v, a, motion.duration)
    limits = arm.limits
    for what, excess in (
        ("position", np.maximum(reach.upper - limits.upper, limits.lower - reach.lower)),
        ("speed", reach.speed - limits.velocity),
        ("acceleration", reach.acceleration - limits.acceleration),
    ):
        if float(excess.max()) > 1e-6:
            joint = arm.joint_names[int(excess.argmax())]
            raise InfeasibleError(
                f"{path}: the {what} of {joint} goes {float(excess.max()):.3g} beyond the limit of "
                f"{name}. Plan another motion with `taufit design {name}`."
            )
    return Planned(motion, arm, reach, play)


def length_of(planned: Planned) -> float:
    """Of what counts, with the rest before and after [s]."""
    return planned.motion.duration + 1.0


def player_for(
    planned: Planned, address: Address, ports: UrPorts, first: Block, description: Description
) -> Player:
    """The one for this controller and way of playing."""
    import numpy as np

    if address.kind == "ros2":
        from taufit.wire.ros import Ros2Player

        here = np.asarray(first.values["position"][-1], float)
        names = planned.robot.joint_names
        return Ros2Player(planned.play.controller, planned.playback(), names, here)
    if planned.play.stream:
        from taufit.wire.ur_stream import UrStreamPlayer

        return UrStreamPlayer(address.place, planned.playback(), ports=ports)
    from taufit.wire.ur_player import UrPlayer

    return UrPlayer(address.place, planned.program(description.rate_hz), ports=ports)


def show_reach(planned: Planned, here: Any) -> None:
    """What will move, on stderr."""
    from rich.table import Table

    from taufit.cli.common import plain_console

    reach, slow = planned.reach, planned.play.slow
    table = Table(title=f"{planned.robot.name}: {reach.duration:.1f} s of motion")
    for heading in ("joint", "now", "start", "from", "to", "speed", "acceleration"):
        table.add_column(heading, justify="left" if heading == "joint" else "right")
    for i, name in enumerate(planned.robot.joint_names):
        now = "" if here is None else f"{here[i]:.2f}"
        table.add_row(
            name,
            now,
            f"{reach.start[i]:.2f}",
            f"{reach.lower[i]:.2f}",
            f"{reach.upper[i]:.2f}",
            f"{reach.speed[i]:.2f}",
            f"{reach.acceleration[i]:.2f}",
        )
    console = plain_console(stderr=True)
    console.print(table)
    console.print(
        "rad, rad/s, rad/s^2. First the arm goes to the start at up to 0.3 rad/s"
        + (f", then one period at {100 * slow:.0f} % of the speed." if slow else "."),
        highlight=False,
    )
