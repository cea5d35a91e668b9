# No `from __future__ import annotations`: Cyclone DDS reads these annotations as objects.
"""ROS 2 message types as Cyclone DDS needs them; imported only where it is installed."""

from dataclasses import dataclass
from typing import Any

from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import float64, int32, sequence, uint32
from cyclonedds.util import duration


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    """Seconds and nanoseconds."""

    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    """Stamp and frame."""

    stamp: Time
    frame_id: str


@dataclass
class JointStateMessage(IdlStruct, typename="sensor_msgs::msg::dds_::JointState_"):
    """Names, positions, velocities and efforts of joints."""

    header: Header
    name: sequence[str]  # type: ignore[type-arg]
    position: sequence[float64]  # type: ignore[type-arg]
    velocity: sequence[float64]  # type: ignore[type-arg]
    effort: sequence[float64]  # type: ignore[type-arg]


@dataclass
class StringMessage(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    """Text."""

    data: str


@dataclass
class DurationMessage(IdlStruct, typename="builtin_interfaces::msg::dds_::Duration_"):
    """Seconds and nanoseconds."""

    sec: int32
    nanosec: uint32


@dataclass
class JointTrajectoryPoint(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectoryPoint_"):
    """Joint positions, velocities and accelerations at a time."""

    positions: sequence[float64]  # type: ignore[type-arg]
    velocities: sequence[float64]  # type: ignore[type-arg]
    accelerations: sequence[float64]  # type: ignore[type-arg]
    effort: sequence[float64]  # type: ignore[type-arg]
    time_from_start: DurationMessage


@dataclass
class JointTrajectoryMessage(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectory_"):
    """Joint names and trajectory points."""

    header: Header
    joint_names: sequence[str]  # type: ignore[type-arg]
    points: sequence[JointTrajectoryPoint]  # type: ignore[type-arg]


def reliable() -> Any:
    """QoS of a driver's joint states."""
    return Qos(
        Policy.Reliability.Reliable(duration(seconds=1)),
        Policy.Durability.Volatile,
        Policy.History.KeepLast(5000),
    )


def sensor_data() -> Any:
    """QoS of a best-effort publisher."""
    return Qos(
        Policy.Reliability.BestEffort,
        Policy.Durability.Volatile,
        Policy.History.KeepLast(5000),
    )


def latched_qos() -> Any:
    """QoS of a latched text (transient local)."""
    return Qos(
        Policy.Reliability.Reliable(duration(seconds=1)),
        Policy.Durability.TransientLocal,
        Policy.History.KeepLast(1),
    )
