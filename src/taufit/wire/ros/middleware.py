"""Messages as taufit has them, and the library that carries them: rclpy, else Cyclone DDS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from taufit.core.arrays import Array, Float
from taufit.core.extras import missing_extra


@dataclass(frozen=True, slots=True)
class JointState:
    """One message.

    Attributes:
        time: Of its header [s]; 0 where the publisher sets none.
        names: Of the joints.
        position, velocity, effort: One each per joint, or empty.
    """

    time: float
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """A joint trajectory, to begin when it arrives.

    Attributes:
        names: Of the joints.
        time: Of the points from the start [s], growing.
        position, velocity, acceleration: At the points.
    """

    names: tuple[str, ...]
    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]


@runtime_checkable
class JointStateSubscriber(Protocol):
    """A subscription to joint states."""

    name: str

    def take(self, seconds: float) -> list[JointState]:
        """Messages that arrive within `seconds`."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class TrajectoryPublisher(Protocol):
    """A publisher of joint trajectories."""

    name: str

    def wait_for_subscriber(self, seconds: float) -> bool:
        """Whether somebody listens, or does within `seconds`."""
        ...

    def send(self, trajectory: Trajectory) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class MessagePublisher(Protocol):
    """A publisher of joint states or of text."""

    name: str

    def send(self, message: JointState | str) -> None: ...

    def close(self) -> None: ...


def message_publisher(topic: str, kind: str) -> MessagePublisher:
    """Of messages of a kind, "joint_state" or "text", by what is installed."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import RclpyMessagePublisher

        return RclpyMessagePublisher(topic, kind)
    from taufit.wire.ros.cyclone_dds import CycloneMessagePublisher

    return CycloneMessagePublisher(topic, kind)


def robot_description(topic: str = "/robot_description", seconds: float = 2.0) -> str | None:
    """The latched description of the robot, where somebody publishes one within a time."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import latched_text
    else:
        from taufit.wire.ros.cyclone_dds import latched_text
    return latched_text(topic, seconds)


def joint_state_subscriber(topic: str) -> JointStateSubscriber:
    """Of joint states, by what is installed."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import RclpyJointStateSubscriber

        return RclpyJointStateSubscriber(topic)
    from taufit.wire.ros.cyclone_dds import CycloneJointStateSubscriber

    return CycloneJointStateSubscriber(topic)


def trajectory_publisher(topic: str) -> TrajectoryPublisher:
    """Of joint trajectories, by what is installed."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import RclpyTrajectoryPublisher

        return RclpyTrajectoryPublisher(topic)
    from taufit.wire.ros.cyclone_dds import CycloneTrajectoryPublisher

    return CycloneTrajectoryPublisher(topic)


def has_rclpy() -> bool:
    """Whether ROS 2's own library is here; raises where neither it nor Cyclone DDS is."""
    try:
        import rclpy  # noqa: F401
    except ImportError:
        pass
    else:
        return True
    try:
        import cyclonedds  # noqa: F401
    except ImportError:
        instead = "source your ROS 2 installation and use its Python, which has rclpy"
        raise missing_extra("ros2", "ROS 2 topics", instead) from None
    return False
