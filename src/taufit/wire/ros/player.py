"""Playback through a ROS 2 joint trajectory controller: one trajectory is sent and monitored.

The controller interpolates between the points and keeps the robot's limits. ROS 2 has no standard
message for protective stops or speed scaling, so the measured position is compared with the
trajectory.
"""

from __future__ import annotations

import contextlib

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import WireError
from taufit.core.names import yaml_scalar
from taufit.wire.player import RECORDED, Approach, Playback, PlaybackNotices, select_rows
from taufit.wire.ros.middleware import Trajectory, TrajectoryPublisher, trajectory_publisher
from taufit.wire.source import SampleBlock

# Largest deviation from the trajectory [rad] within the largest delay of messages and controller
# [s].
_MAX_DEVIATION, _MAX_DELAY_S = 0.1, 1.0


class Ros2Player:
    """Sends a joint trajectory and monitors the joint states.

    Args:
        topic: Topic of the trajectory controller.
        playback: Playback of the motion.
        names: Joint names in the order of the playback.
        approach: Legs from the current pose to the start.
        rate_hz: Points per second [Hz]; the controller interpolates.
        publisher: Publisher to use; default by installed middleware.
        find_within_s: Time limit for finding the controller [s].
    """

    def __init__(
        self,
        topic: str,
        playback: Playback,
        names: tuple[str, ...],
        approach: Approach,
        *,
        rate_hz: float = 50.0,
        publisher: TrajectoryPublisher | None = None,
        find_within_s: float = 5.0,
    ) -> None:
        if not topic.startswith("/"):
            raise WireError(f"a topic begins with a slash: --controller /{topic}.")
        self.topic, self.playback, self.names = topic, playback, tuple(names)
        self.notices = PlaybackNotices()
        self.find_within_s = find_within_s
        self._publisher = publisher
        self.approach = approach
        self._current_position = np.asarray(approach.poses[0], float)
        self._rate = rate_hz
        self.approach_s = approach.seconds
        self._start_time: float | None = None
        self._is_over = False

    def trajectory(self) -> Trajectory:
        """Trajectory of the approach and the playback from the current pose."""
        count = int(np.ceil(self.playback.duration * self._rate))
        time = np.linspace(0.0, self.playback.duration, count + 1)
        _, q, v, a = self.playback.at(time)
        # The last pose of the approach is the first of the playback.
        vias = self.approach.poses[1:-1]
        zeros = np.zeros_like(vias)
        return Trajectory(
            self.names,
            np.concatenate([np.cumsum(self.approach.legs)[:-1], time + self.approach_s]),
            np.concatenate([vias, q]),
            np.concatenate([zeros, v]),
            np.concatenate([zeros, a]),
        )

    def text(self) -> str:
        """Trajectory as YAML."""
        t = self.trajectory()
        lines = [f"# {self.topic}: trajectory_msgs/JointTrajectory, {len(t.time)} points"]
        lines += [f"joint_names: [{', '.join(map(yaml_scalar, t.names))}]", "points:"]
        for i, point_time in enumerate(t.time):
            seconds = int(point_time)
            lines += [
                f"- positions: {_row(t.position[i])}",
                f"  velocities: {_row(t.velocity[i])}",
                f"  accelerations: {_row(t.acceleration[i])}",
                "  time_from_start: "
                f"{{sec: {seconds}, nanosec: {int((point_time - seconds) * 1e9)}}}",
            ]
        return "\n".join(lines)

    def prepare(self) -> None:
        """Find the controller."""
        if self._publisher is None:
            self._publisher = trajectory_publisher(self.topic)
        if not self._publisher.wait_for_subscriber(self.find_within_s):
            self._is_over = True
            raise WireError(
                f"nobody listens on {self.topic} (asked with {self._publisher.name}). Is the "
                "trajectory controller active? Give its topic with --controller, for example "
                "/scaled_joint_trajectory_controller/joint_trajectory."
            )

    def start(self) -> None:
        """Send the trajectory."""
        assert self._publisher is not None
        self._publisher.send(self.trajectory())

    def check_progress(self, block: SampleBlock) -> str | None:
        """Reason to end the recording ("" when the motion is over), or None to continue."""
        if self._start_time is None:
            self._start_time = float(block.time[0])
        time = block.time - self._start_time
        self._current_position = block.values["position"][-1]
        if time[-1] > self.approach_s + self.playback.duration + 0.5:
            self._is_over = True
            return ""
        candidate_times = np.maximum(time[-1] - np.linspace(-0.1, _MAX_DELAY_S, 45), 0.0)
        if time[-1] < self.approach_s + _MAX_DELAY_S:
            # Controllers differ in speed along a leg, not in its path.
            candidate_times = np.concatenate(
                [candidate_times, np.linspace(0.0, self.approach_s, 400)]
            )
        deviation = np.abs(self._target_position(candidate_times) - self._current_position)
        smallest_deviation = deviation[int(deviation.max(axis=1).argmin())]
        if smallest_deviation.max() > _MAX_DEVIATION:
            return (
                "the arm does not follow the trajectory "
                f"({self.names[int(smallest_deviation.argmax())]} is "
                f"more than {_MAX_DEVIATION:g} rad off); is the controller active, and the speed "
                "scaling at "
                "100 %?"
            )
        return None

    def _target_position(self, time: Float[Array, " n"]) -> Float[Array, "n j"]:
        """Expected joint positions."""
        q: Float[Array, "n j"] = self.playback.at(time - self.approach_s)[1]
        in_approach = time < self.approach_s
        return np.where(in_approach[:, None], self.approach.states(time)[0], q)

    def rows_to_record(self, block: SampleBlock) -> SampleBlock | None:
        """Rows of the recorded phase."""
        if self._start_time is None:
            self._start_time = float(block.time[0])
        phase = self.playback.at(block.time - self._start_time - self.approach_s)[0]
        return select_rows(block, phase == RECORDED)

    def stop(self) -> None:
        """Stop the robot by a trajectory that ends at its current position."""
        if self._publisher is None:
            return
        if not self._is_over:
            zeros = np.zeros((1, len(self.names)))
            hold = Trajectory(
                self.names, np.array([0.5]), self._current_position[None], zeros, zeros
            )
            with contextlib.suppress(WireError):
                self._publisher.send(hold)
            self._is_over = True
        self._publisher.close()
        self._publisher = None


def _row(values: Float[Array, " n"]) -> str:
    return "[" + ", ".join(f"{float(x) + 0.0:.9g}" for x in values) + "]"


__all__ = ["Ros2Player"]
