"""Identity of the connected robot as reported by its controller, queried once per connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.wire.source import SampleBlock, SourceDescription
from taufit.wire.ur_state import DhTable

if TYPE_CHECKING:
    from taufit.wire.source_address import SourceAddress
    from taufit.wire.ur import UrPorts


@dataclass(frozen=True, slots=True, eq=False)
class ControllerReport:
    """Robot description by its controller; values that are not reported are empty.

    Attributes:
        controller: Manufacturer, used in messages.
        model: Robot model, e.g. "UR10".
        serial: Serial number of the robot.
        software: Version of the controller software.
        remote_control: "true", "false" or empty.
        dh_table: Denavit-Hartenberg table of this robot.
        gravity: Gravitational acceleration in the base frame [m/s^2].
        position: Joint positions at the time of `flange`.
        flange: Position of the flange in the base frame [m].
        urdf: URDF text of the robot.
    """

    controller: str = ""
    model: str = ""
    serial: str = ""
    software: str = ""
    remote_control: str = ""
    dh_table: DhTable | None = None
    gravity: Float[Array, " 3"] | None = None
    position: Float[Array, " j"] | None = None
    flange: Float[Array, " 3"] | None = None
    urdf: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a recording's provenance."""
        from taufit.wire.ur_player import mounting_from_gravity

        identity = {
            "robot_model": self.model,
            "serial_number": self.serial,
            "remote_control": self.remote_control,
        }
        out: dict[str, Any] = {name: text for name, text in identity.items() if text}
        if self.dh_table is not None:
            out["dh"] = self.dh_table.to_dict()
        mounting = None if self.gravity is None else mounting_from_gravity(self.gravity)
        if mounting is not None:
            out["mounting"] = list(mounting)
        return out


def query_controller(
    address: SourceAddress, ports: UrPorts, description: SourceDescription, block: SampleBlock
) -> ControllerReport:
    """Query a connected controller for its robot.

    Args:
        address: Address of the controller.
        ports: Ports of a Universal Robots controller.
        description: Description of its samples.
        block: Samples of the controller.
    """
    software = str(description.meta.get("controller_version", ""))
    position, flange = _flange_position(block)
    if address.kind in ("ur", "realtime"):
        from taufit.wire.ur_player import controller_info, read_dh_table

        answers = controller_info(address.location, ports)
        gravity = block.status.get("target_gravity")
        return ControllerReport(
            "Universal Robots",
            answers.get("robot_model", ""),
            answers.get("serial_number", ""),
            software,
            answers.get("remote_control", ""),
            read_dh_table(address.location, ports),
            None if gravity is None else np.asarray(gravity[-1], float),
            position,
            flange,
        )
    urdf = None
    if address.kind == "ros2":
        from taufit.wire.ros import robot_description

        urdf = robot_description()
    make = {"franka": "Franka", "egm": "ABB", "ros2": "ROS 2"}[address.kind]
    return ControllerReport(make, software=software, position=position, flange=flange, urdf=urdf)


def _flange_position(block: SampleBlock) -> tuple[Array | None, Array | None]:
    """Joint positions and flange position, if tool pose and tool offset are reported; else None.

    The tool offset is in the flange frame: flange = pose - R(pose) offset.
    """
    pose, tool = block.status.get("actual_TCP_pose"), block.status.get("tcp_offset")
    if pose is not None and tool is not None:
        tool_pose, offset = np.asarray(pose[-1], float), np.asarray(tool[-1], float)
        rotation = _rotation(tool_pose[3:]) @ _rotation(offset[3:]).T
        return block.values["position"][-1], tool_pose[:3] - rotation @ offset[:3]
    matrix, tool = block.status.get("O_T_EE"), block.status.get("F_T_EE")
    if matrix is not None and tool is not None:
        # The interface sends matrices column by column.
        tool_transform = np.asarray(matrix[-1], float).reshape(4, 4).T
        tool_offset = np.asarray(tool[-1], float).reshape(4, 4).T
        return block.values["position"][-1], (tool_transform @ np.linalg.inv(tool_offset))[:3, 3]
    return None, None


def _rotation(vector: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Rotation matrix of a rotation vector."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    out: Float[Array, "3 3"] = np.eye(3) + np.sin(angle) * cross
    out += (1.0 - np.cos(angle)) * cross @ cross
    return out
