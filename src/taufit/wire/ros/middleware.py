"""ROS 2 messages, and selection of the middleware: rclpy, else Cyclone DDS."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.extras import missing_extra


@dataclass(frozen=True, slots=True)
class JointState:
    """JointState message.

    Attributes:
        time: Time stamp of the header [s]; 0 if not set.
        names: Joint names.
        position, velocity, effort: Values per joint, or empty.
    """

    time: float
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """Joint trajectory that starts on arrival.

    Attributes:
        names: Joint names.
        time: Time of the points from the start [s], increasing.
        position, velocity, acceleration: Motion at the points.
    """

    names: tuple[str, ...]
    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]


@runtime_checkable
class JointStateSubscriber(Protocol):
    """Subscriber of joint states."""

    name: str

    def take(self, seconds: float) -> list[JointState]:
        """Messages received within `seconds`."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class TrajectoryPublisher(Protocol):
    """Publisher of joint trajectories."""

    name: str

    def wait_for_subscriber(self, seconds: float) -> bool:
        """Whether there is a subscriber within `seconds`."""
        ...

    def send(self, trajectory: Trajectory) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class MessagePublisher(Protocol):
    """Publisher of joint states or text."""

    name: str

    def send(self, message: JointState | str) -> None: ...

    def close(self) -> None: ...


def message_publisher(topic: str, kind: str) -> MessagePublisher:
    """Create a publisher of messages, "joint_state" or "text", with the installed middleware."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import RclpyMessagePublisher

        return RclpyMessagePublisher(topic, kind)
    from taufit.wire.ros.cyclone_dds import CycloneMessagePublisher

    return CycloneMessagePublisher(topic, kind)


def robot_description(topic: str = "/robot_description", seconds: float = 2.0) -> str | None:
    """Latched robot description (URDF); None if it is not published within `seconds`."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import read_latched_text
    else:
        from taufit.wire.ros.cyclone_dds import read_latched_text
    return read_latched_text(topic, seconds)


def joint_state_subscriber(topic: str) -> JointStateSubscriber:
    """Create a subscriber of joint states with the installed middleware."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import RclpyJointStateSubscriber

        return RclpyJointStateSubscriber(topic)
    from taufit.wire.ros.cyclone_dds import CycloneJointStateSubscriber

    return CycloneJointStateSubscriber(topic)


def trajectory_publisher(topic: str) -> TrajectoryPublisher:
    """Create a publisher of joint trajectories with the installed middleware."""
    if has_rclpy():
        from taufit.wire.ros.rclpy_node import RclpyTrajectoryPublisher

        return RclpyTrajectoryPublisher(topic)
    from taufit.wire.ros.cyclone_dds import CycloneTrajectoryPublisher

    return CycloneTrajectoryPublisher(topic)


def has_rclpy() -> bool:
    """Whether rclpy is installed; raises if neither it nor Cyclone DDS is."""
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
