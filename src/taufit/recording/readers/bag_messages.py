"""Messages of a bag that hold joint states: JointState, and those of ros2_control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError

# Bags before ROS 2 Iron lack definitions of their messages, and packages of ros2_control are not
# among the types of a ROS distribution.
_DEFINITIONS = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\n"
        "control_msgs/InterfaceValue[] interface_values\n"
    ),
    "control_msgs/msg/JointTrajectoryControllerState": (
        "std_msgs/Header header\nstring[] joint_names\n"
        "trajectory_msgs/JointTrajectoryPoint reference\n"
        "trajectory_msgs/JointTrajectoryPoint feedback\n"
        "trajectory_msgs/JointTrajectoryPoint error\n"
        "trajectory_msgs/JointTrajectoryPoint output\n"
    ),
}
_QUANTITIES = ("position", "velocity", "effort")


class JointStateRow(NamedTuple):
    """Joint state in the form of sensor_msgs/JointState; quantities may be empty."""

    header: Any
    name: tuple[str, ...]
    position: Float[Array, " j"]
    velocity: Float[Array, " j"]
    effort: Float[Array, " j"]


def register_messages(store: Any) -> None:
    """Add the messages of ros2_control to a store of message types."""
    from rosbags.typesys import get_types_from_msg

    for name, text in _DEFINITIONS.items():
        store.register(get_types_from_msg(text, name))


def _from_joint_state(message: Any) -> JointStateRow:
    return JointStateRow(
        message.header, tuple(message.name), message.position, message.velocity, message.effort
    )


def _from_dynamic_state(message: Any) -> JointStateRow:
    """Values by joint and interface; a quantity that some joints lack is nan there."""
    names = tuple(message.joint_names)
    if len(names) != len(message.interface_values):
        raise RecordingError(
            f"a DynamicJointState names {len(names)} joints and has values of "
            f"{len(message.interface_values)}."
        )
    values = {quantity: np.full(len(names), np.nan) for quantity in _QUANTITIES}
    for joint, entry in enumerate(message.interface_values):
        for interface, value in zip(entry.interface_names, entry.values, strict=False):
            if interface in values:
                values[interface][joint] = value
    return JointStateRow(message.header, names, *(values[quantity] for quantity in _QUANTITIES))


def _from_controller_state(message: Any) -> JointStateRow:
    """Measured state of a trajectory controller, `actual` in older distributions."""
    point = getattr(message, "feedback", None) or message.actual
    return JointStateRow(
        message.header, tuple(message.joint_names), point.positions, point.velocities, point.effort
    )


# In order of preference where no topic is named.
JOINT_STATE_MESSAGES: dict[str, Callable[[Any], JointStateRow]] = {
    "sensor_msgs/msg/JointState": _from_joint_state,
    "control_msgs/msg/DynamicJointState": _from_dynamic_state,
    "control_msgs/msg/JointTrajectoryControllerState": _from_controller_state,
}

_UR_JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
_NANOSECONDS_2026 = 1_767_225_600 * 10**9


def effort_advice(joint_names: tuple[str, ...], start_time_ns: int) -> str:
    """Likely kind of effort by the driver that recorded it, or an empty string.

    The driver of Universal Robots reports torque without gravity since 2026, motor currents before.
    """
    if len(joint_names) != len(_UR_JOINTS) or not all(
        any(joint in name for name in joint_names) for joint in _UR_JOINTS
    ):
        return ""
    kind = "torque_without_gravity" if start_time_ns >= _NANOSECONDS_2026 else "current"
    return (
        "The joints are named as by the driver of Universal Robots, which reports torque without "
        f"gravity since 2026 and motor currents before: likely --torque-kind {kind}."
    )
