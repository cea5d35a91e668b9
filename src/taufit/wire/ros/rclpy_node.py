"""ROS 2 topics with rclpy, the ROS 2 client library."""

from __future__ import annotations

import os
import time
from typing import Any

from taufit.core.errors import WireError
from taufit.wire.ros.middleware import JointState, Trajectory


class _RosNode:
    """Node with its own context."""

    def __init__(self) -> None:
        import rclpy

        self._rclpy = rclpy
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.name = f"rclpy ({rclpy.get_rmw_implementation_identifier()})"
        number = f"{os.getpid()}_{id(self) % 100_000}"
        self._node = rclpy.create_node(f"taufit_{number}", context=self._context)
        self._executor = rclpy.executors.SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def close(self) -> None:
        """Shut down the node."""
        if self._context.ok():
            self._node.destroy_node()
            self._rclpy.shutdown(context=self._context)


class RclpyJointStateSubscriber(_RosNode):
    """Subscriber of joint states."""

    def __init__(self, topic: str) -> None:
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from sensor_msgs.msg import JointState as Message

        super().__init__()
        self._received: list[JointState] = []
        # A reliable reader receives from reliable publishers only: query the existing ones.
        end = time.monotonic() + 3.0
        writers: list[Any] = []
        while not writers and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)
            writers = self._node.get_publishers_info_by_topic(topic)
        best_effort = ReliabilityPolicy.BEST_EFFORT
        any_best_effort = any(w.qos_profile.reliability == best_effort for w in writers)
        reliability = best_effort if any_best_effort else ReliabilityPolicy.RELIABLE
        profile = QoSProfile(depth=5000, reliability=reliability)
        self._node.create_subscription(Message, topic, self._take, profile)

    def _take(self, message: Any) -> None:
        stamp = message.header.stamp
        self._received.append(
            JointState(
                stamp.sec + 1e-9 * stamp.nanosec,
                tuple(message.name),
                tuple(message.position),
                tuple(message.velocity),
                tuple(message.effort),
            )
        )

    def take(self, seconds: float) -> list[JointState]:
        """Messages received within `seconds`."""
        end = time.monotonic() + seconds
        while not self._received and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=max(0.0, end - time.monotonic()))
        # Further received messages, without waiting.
        for _ in range(200):
            before = len(self._received)
            self._executor.spin_once(timeout_sec=0.0)
            if len(self._received) == before:
                break
        messages, self._received = self._received, []
        return messages


def read_latched_text(topic: str, seconds: float) -> str | None:
    """Latched text of a topic (transient local); None if there is none within `seconds`."""
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    node, texts = _RosNode(), list[str]()
    profile = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node._node.create_subscription(String, topic, lambda m: texts.append(m.data), profile)
    end = time.monotonic() + seconds
    while not texts and time.monotonic() < end:
        node._executor.spin_once(timeout_sec=0.1)
    node.close()
    return texts[-1] if texts else None


class RclpyTrajectoryPublisher(_RosNode):
    """Publisher of joint trajectories."""

    def __init__(self, topic: str) -> None:
        try:
            from trajectory_msgs.msg import JointTrajectory
        except ImportError:
            raise WireError(
                "this ROS 2 installation has no trajectory_msgs; install its package (for example "
                "ros-jazzy-trajectory-msgs)."
            ) from None

        super().__init__()
        self._publisher = self._node.create_publisher(JointTrajectory, topic, 10)

    def wait_for_subscriber(self, seconds: float) -> bool:
        """Whether there is a subscriber within `seconds`."""
        end = time.monotonic() + seconds
        while self._publisher.get_subscription_count() == 0:
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=0.05)
        return True

    def send(self, trajectory: Trajectory) -> None:
        """Publish a trajectory."""
        from builtin_interfaces.msg import Duration
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        message = JointTrajectory()
        message.joint_names = list(trajectory.names)
        for i, t in enumerate(trajectory.time.tolist()):
            point = JointTrajectoryPoint()
            point.positions = trajectory.position[i].tolist()
            point.velocities = trajectory.velocity[i].tolist()
            point.accelerations = trajectory.acceleration[i].tolist()
            point.time_from_start = Duration(sec=int(t), nanosec=int((t - int(t)) * 1e9))
            message.points.append(point)
        self._publisher.publish(message)
        self._executor.spin_once(timeout_sec=0.05)


class RclpyMessagePublisher(_RosNode):
    """Publisher of joint states or text."""

    def __init__(self, topic: str, kind: str) -> None:
        from sensor_msgs.msg import JointState as JointStateMessage
        from std_msgs.msg import String

        super().__init__()
        self._type = {"joint_state": JointStateMessage, "text": String}[kind]
        self._publisher = self._node.create_publisher(self._type, topic, 100)

    def send(self, message: JointState | str) -> None:
        """Publish a message."""
        from builtin_interfaces.msg import Time

        out = self._type()
        if isinstance(message, str):
            out.data = message
        else:
            seconds = int(message.time)
            out.header.stamp = Time(sec=seconds, nanosec=int((message.time - seconds) * 1e9))
            out.name, out.position = list(message.names), list(message.position)
            out.velocity, out.effort = list(message.velocity), list(message.effort)
        self._publisher.publish(out)
