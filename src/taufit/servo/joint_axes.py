"""Arm in frames whose z axes are the joint axes, as the roll-outs need it."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.robot import Robot
from taufit.robot.inertia import transform_parameters
from taufit.robot.pose import inverse_pose

MAX_JOINTS = 12


@dataclass(frozen=True, slots=True, eq=False)
class JointAxes:
    """Serial arm, link by link in frames on the joint axes.

    Attributes:
        rotation: Rotation of each frame in the frame before, at q = 0.
        position: Origin of each frame in the frame before [m].
        parameters: m, h, I of each link in its frame.
        gravity: Gravity vector in the base frame [m/s^2].
        point: Point of the last link that touches a floor first, in the last frame [m].
    """

    rotation: Float[Array, "j 3 3"]
    position: Float[Array, "j 3"]
    parameters: Float[Array, "j 10"]
    gravity: Float[Array, " 3"]
    point: Float[Array, " 3"]

    @classmethod
    def of_robot(cls, robot: Robot, point: Float[Array, " 3"] | None = None) -> JointAxes:
        """Frames of a robot with revolute joints.

        Args:
            robot: Robot with nominal link parameters.
            point: Contact point in the last link's frame [m]; the robot's tip by default.
        """
        _require_revolute(robot)
        poses, parameters, before = [], [], np.eye(4)
        for link in robot.links:
            pose = _axis_pose(link.screw)
            poses.append(inverse_pose(before) @ link.placement @ pose)
            parameters.append(transform_parameters(link.parameters, inverse_pose(pose)))
            before = pose
        stacked = np.array(poses)
        tip = robot.tip[:3, 3] if point is None else np.asarray(point, float)
        return cls(
            np.ascontiguousarray(stacked[:, :3, :3]),
            np.ascontiguousarray(stacked[:, :3, 3]),
            np.array(parameters),
            robot.gravity,
            (inverse_pose(before) @ np.append(tip, 1.0))[:3],
        )

    @property
    def joints(self) -> int:
        return len(self.position)

    @property
    def up(self) -> Float[Array, " 3"]:
        """Unit vector against gravity in the base frame."""
        return -self.gravity / np.linalg.norm(self.gravity)

    def heights(self, q: Float[Array, "n j"]) -> Float[Array, " n"]:
        """Height of the contact point above the base origin [m], sample by sample."""
        place = np.zeros((len(q), 3))
        turn = np.broadcast_to(np.eye(3), (len(q), 3, 3))
        for j in range(self.joints):
            place = place + turn @ self.position[j]
            turn = turn @ self.rotation[j] @ _rotations(q[:, j])
        return np.asarray((place + turn @ self.point) @ self.up)


def _rotations(angle: Float[Array, " n"]) -> Float[Array, "n 3 3"]:
    """Rotations about z."""
    c, s, zero, one = np.cos(angle), np.sin(angle), 0 * angle, 1 + 0 * angle
    return np.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=1).reshape(-1, 3, 3)


def _axis_pose(screw: Float[Array, " 6"]) -> Float[Array, "4 4"]:
    """Frame on the axis of a screw: z along the axis, origin nearest to the link's origin."""
    axis, moment = screw[:3], screw[3:]
    side = np.eye(3)[np.argmin(np.abs(axis))]
    x = np.cross(side, axis) if abs(axis[2]) < 1.0 - 1e-12 else np.array([axis[2], 0.0, 0.0])
    x = x / np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    pose[:3, 3] = np.cross(axis, moment)
    return pose


def _require_revolute(robot: Robot) -> None:
    robot.require_serial("a servo model")
    prismatic = [link.joint for link in robot.links if link.is_prismatic]
    if prismatic:
        raise RobotError(
            f"{robot.name}: joint {prismatic[0]!r} is prismatic; servo models are for revolute "
            "joints. End the chain before it with --tip."
        )
    if robot.joints > MAX_JOINTS:
        raise RobotError(
            f"{robot.name} has {robot.joints} joints; servo models have at most {MAX_JOINTS}."
        )
    if not np.any(robot.parameters):
        raise RobotError(
            f"{robot.name} has no link masses: the servo gain follows from the weight of the "
            "links. Give a description with masses."
        )
