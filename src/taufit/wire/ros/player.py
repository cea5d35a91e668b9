"""Playing a motion through a ROS 2 joint trajectory controller: one trajectory sent, then watched.

A trajectory controller interpolates between the points and keeps the robot's own limits. ROS 2 has
no common word for protective stops or speed scaling, so what is watched is the arm itself: whether
it is where the trajectory says.
"""

from __future__ import annotations

import contextlib

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import WireError
from taufit.core.names import yaml_scalar
from taufit.wire.player import RECORDED, Notes, Playback, rows
from taufit.wire.ros.middleware import Talker, Trajectory, talker_for
from taufit.wire.source import Block

# Of the way to the start: peak speed [rad/s], and the shortest time it takes [s].
_APPROACH_SPEED, _APPROACH_LEAST = 0.3, 3.0
# Further off than this, for longer than this, the arm does not follow [rad], [s].
_OFF, _OFF_S = 0.2, 1.0


class Ros2Player:
    """Sends a joint trajectory and watches the joint states for it.

    Args:
        topic: Of the trajectory controller.
        playback: What to play.
        names: Of the joints, in the order of the playback.
        here: Where the arm is.
        rate_hz: Points per second; the controller interpolates.
        talker: To use instead of what is installed.
        heard_within: Seconds a controller has to be found.
    """

    def __init__(
        self,
        topic: str,
        playback: Playback,
        names: tuple[str, ...],
        here: Float[Array, " j"],
        *,
        rate_hz: float = 50.0,
        talker: Talker | None = None,
        heard_within: float = 5.0,
    ) -> None:
        if not topic.startswith("/"):
            raise WireError(f"a topic begins with a slash: --controller /{topic}.")
        self.topic, self.playback, self.names = topic, playback, tuple(names)
        self.notes = Notes()
        self.heard_within = heard_within
        self._talker = talker
        self._here = np.asarray(here, float)
        self._rate = rate_hz
        way = float(np.abs(self._start - self._here).max())
        # A cubic between points at rest peaks at 1.5 times its mean speed.
        self.approach_s = max(_APPROACH_LEAST, 1.5 * way / _APPROACH_SPEED)
        self._began: float | None = None
        self._off_since: float | None = None
        self._over = False

    @property
    def _start(self) -> Float[Array, " j"]:
        start: Float[Array, " j"] = self.playback.at(np.zeros(1))[1][0]
        return start

    def trajectory(self) -> Trajectory:
        """The approach, then the playback, from where the arm is."""
        count = int(np.ceil(self.playback.duration * self._rate))
        time = np.linspace(0.0, self.playback.duration, count + 1)
        _, q, v, a = self.playback.at(time)
        return Trajectory(self.names, time + self.approach_s, q, v, a)

    def text(self) -> str:
        """The trajectory as YAML, for people to read."""
        t = self.trajectory()
        lines = [f"# {self.topic}: trajectory_msgs/JointTrajectory, {len(t.time)} points"]
        lines += [f"joint_names: [{', '.join(map(yaml_scalar, t.names))}]", "points:"]
        for i, at in enumerate(t.time):
            whole = int(at)
            lines += [
                f"- positions: {_row(t.position[i])}",
                f"  velocities: {_row(t.velocity[i])}",
                f"  accelerations: {_row(t.acceleration[i])}",
                f"  time_from_start: {{sec: {whole}, nanosec: {int((at - whole) * 1e9)}}}",
            ]
        return "\n".join(lines)

    def prepare(self) -> None:
        """Find the controller."""
        if self._talker is None:
            self._talker = talker_for(self.topic)
        if not self._talker.heard(self.heard_within):
            self._over = True
            raise WireError(
                f"nobody listens on {self.topic} (asked with {self._talker.name}). Is the "
                "trajectory controller active? Give its topic with --controller, for example "
                "/scaled_joint_trajectory_controller/joint_trajectory."
            )

    def start(self) -> None:
        """Send the trajectory."""
        assert self._talker is not None
        self._talker.send(self.trajectory())

    def watch(self, block: Block) -> str | None:
        """Why the recording should end ("" when the motion is over), or None to go on."""
        if self._began is None:
            self._began = float(block.time[0])
        time = block.time - self._began
        self._here = block.values["position"][-1]
        if time[-1] > self.approach_s + self.playback.duration + 0.5:
            self._over = True
            return ""
        off = np.abs(block.values["position"] - self._expected(time)).max(axis=1) > _OFF
        if not off[-1]:
            self._off_since = None
        elif self._off_since is None:
            self._off_since = float(time[-1])
        elif time[-1] - self._off_since > _OFF_S:
            joint = int(np.abs(self._here - self._expected(time[-1:])[0]).argmax())
            return (
                f"the arm does not follow the trajectory ({self.names[joint]} is more than "
                f"{_OFF:g} rad off); is the controller active, and the speed scaling at 100 %?"
            )
        return None

    def _expected(self, time: Float[Array, " n"]) -> Float[Array, "n j"]:
        """Where the arm should be; on the way to the start anywhere counts as right."""
        q: Float[Array, "n j"] = self.playback.at(time - self.approach_s)[1]
        approaching = time < self.approach_s
        return np.where(approaching[:, None], self._here, q)

    def keep(self, block: Block) -> Block | None:
        """The rows of the phase that counts."""
        if self._began is None:
            self._began = float(block.time[0])
        phase = self.playback.at(block.time - self._began - self.approach_s)[0]
        return rows(block, phase == RECORDED)

    def stop(self) -> None:
        """Bring the arm to rest: a trajectory that ends where it is now."""
        if self._talker is None:
            return
        if not self._over:
            none = np.zeros((1, len(self.names)))
            hold = Trajectory(self.names, np.array([0.5]), self._here[None], none, none)
            with contextlib.suppress(WireError):
                self._talker.send(hold)
            self._over = True
        self._talker.close()
        self._talker = None


def _row(values: Float[Array, " n"]) -> str:
    return "[" + ", ".join(f"{float(x) + 0.0:.9g}" for x in values) + "]"


__all__ = ["Ros2Player"]
