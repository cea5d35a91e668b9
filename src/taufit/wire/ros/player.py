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
from taufit.wire.player import RECORDED, Approach, Playback, PlaybackNotices, rows
from taufit.wire.ros.middleware import Trajectory, TrajectoryPublisher, trajectory_publisher
from taufit.wire.source import Block

# Further than this from where the trajectory was within this time, the arm does not follow [rad],
# [s]: messages and controllers have delays.
_OFF, _BEHIND_S = 0.1, 1.0


class Ros2Player:
    """Sends a joint trajectory and watches the joint states for it.

    Args:
        topic: Of the trajectory controller.
        playback: What to play.
        names: Of the joints, in the order of the playback.
        approach: Legs to its start, from where the arm stands.
        rate_hz: Points per second; the controller interpolates.
        talker: To use instead of what is installed.
        heard_within: Seconds a controller has to be found.
    """

    def __init__(
        self,
        topic: str,
        playback: Playback,
        names: tuple[str, ...],
        approach: Approach,
        *,
        rate_hz: float = 50.0,
        talker: TrajectoryPublisher | None = None,
        heard_within: float = 5.0,
    ) -> None:
        if not topic.startswith("/"):
            raise WireError(f"a topic begins with a slash: --controller /{topic}.")
        self.topic, self.playback, self.names = topic, playback, tuple(names)
        self.notes = PlaybackNotices()
        self.heard_within = heard_within
        self._talker = talker
        self.approach = approach
        self._here = np.asarray(approach.poses[0], float)
        self._rate = rate_hz
        self.approach_s = approach.seconds
        self._began: float | None = None
        self._over = False

    def trajectory(self) -> Trajectory:
        """Points at rest on the approach, then the playback, from where the arm is."""
        count = int(np.ceil(self.playback.duration * self._rate))
        time = np.linspace(0.0, self.playback.duration, count + 1)
        _, q, v, a = self.playback.at(time)
        # The last pose of the approach is the first of the playback.
        vias = self.approach.poses[1:-1]
        rest = np.zeros_like(vias)
        return Trajectory(
            self.names,
            np.concatenate([np.cumsum(self.approach.legs)[:-1], time + self.approach_s]),
            np.concatenate([vias, q]),
            np.concatenate([rest, v]),
            np.concatenate([rest, a]),
        )

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
            self._talker = trajectory_publisher(self.topic)
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
        moments = np.maximum(time[-1] - np.linspace(-0.1, _BEHIND_S, 45), 0.0)
        if time[-1] < self.approach_s + _BEHIND_S:
            # Controllers differ in how fast they go along a leg, not in where it is.
            moments = np.concatenate([moments, np.linspace(0.0, self.approach_s, 400)])
        off = np.abs(self._expected(moments) - self._here)
        nearest = off[int(off.max(axis=1).argmin())]
        if nearest.max() > _OFF:
            return (
                f"the arm does not follow the trajectory ({self.names[int(nearest.argmax())]} is "
                f"more than {_OFF:g} rad off); is the controller active, and the speed scaling at "
                "100 %?"
            )
        return None

    def _expected(self, time: Float[Array, " n"]) -> Float[Array, "n j"]:
        """Where the arm should be."""
        q: Float[Array, "n j"] = self.playback.at(time - self.approach_s)[1]
        approaching = time < self.approach_s
        return np.where(approaching[:, None], self.approach.states(time)[0], q)

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
