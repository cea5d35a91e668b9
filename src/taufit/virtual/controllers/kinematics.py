"""Kinematics of one robot for a controller; poses as position and rotation vector, x, y, z, rx,
ry, rz."""

from __future__ import annotations

import math

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.robot import Robot
from taufit.robot.pose import inverse_pose, skew

_IDENTITY = np.eye(4)


class Kinematics:
    """Forward and inverse kinematics of one robot.

    Args:
        robot: Robot.
    """

    def __init__(self, robot: Robot) -> None:
        robot.require_serial("a simulated controller")
        self.robot = robot
        self._links = []
        for link in robot.links:
            twist = np.zeros((4, 4))
            twist[:3, :3], twist[:3, 3] = skew(link.screw[:3]), link.screw[3:]
            powers = (twist, twist @ twist, twist @ twist @ twist)
            self._links.append((link.placement, *(link.placement @ power for power in powers)))

    def frames(self, q: Float[Array, " j"]) -> list[Float[Array, "4 4"]]:
        """Pose of every link and, last, of the flange.

        exp([S] q) = I + [S] q + [S]^2 (1 - cos q) + [S]^3 (q - sin q), also for a prismatic joint,
        for which the powers vanish.
        """
        pose, out = _IDENTITY, []
        for x, (placement, twist_1, twist_2, twist_3) in zip(q.tolist(), self._links, strict=True):
            pose = pose @ (
                placement
                + twist_1 * x
                + twist_2 * (1.0 - math.cos(x))
                + twist_3 * (x - math.sin(x))
            )
            out.append(pose)
        out.append(pose @ self.robot.tip)
        return out

    def flange(self, q: Float[Array, " j"]) -> Float[Array, "4 4"]:
        """Pose of the flange."""
        return self.frames(q)[-1]

    def jacobian(
        self, q: Float[Array, " j"], tool: Float[Array, "4 4"] | None = None
    ) -> Float[Array, "6 j"]:
        """Linear and angular velocity of the tool origin in base axes, per joint velocity."""
        frames = self.frames(q)
        point = (frames[-1] if tool is None else frames[-1] @ tool)[:3, 3]
        out = np.empty((6, self.robot.joints))
        for i, link in enumerate(self.robot.links):
            rotation, origin = frames[i][:3, :3], frames[i][:3, 3]
            angular, linear = rotation @ link.screw[:3], rotation @ link.screw[3:]
            out[:3, i] = linear + skew(angular) @ (point - origin)
            out[3:, i] = angular
        return out

    def inverse(
        self, pose: Float[Array, "4 4"], start: Float[Array, " j"], *, tolerance: float = 1e-9
    ) -> Float[Array, " j"] | None:
        """Joint positions with the flange at `pose`, from a start nearby; None if not found.

        Damped least squares: dq = J' (J J' + d I)^-1 e, with d from the error.
        """
        q = np.array(start, float)
        limits = self.robot.limits
        for _ in range(60):
            frames = self.frames(q)
            current = frames[-1]
            rotation_error = pose[:3, :3] @ current[:3, :3].T
            error = np.concatenate([pose[:3, 3] - current[:3, 3], rotation_vector(rotation_error)])
            size = float(np.abs(error).max())
            if size < tolerance:
                is_within_limits = np.all((q >= limits.lower - 1e-9) & (q <= limits.upper + 1e-9))
                return q if is_within_limits else None
            jacobian = self.jacobian(q)
            damped_square = jacobian @ jacobian.T + min(1e-3, size**2) * np.eye(6)
            step = jacobian.T @ np.linalg.solve(damped_square, error)
            q = q + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-12))
        return None


def rotation_vector(rotation: Float[Array, "3 3"]) -> Float[Array, " 3"]:
    """Rotation vector (axis times angle) of a rotation matrix."""
    axis = np.array(
        [
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        ]
    )
    sine, cosine = 0.5 * float(np.linalg.norm(axis)), 0.5 * (float(np.trace(rotation)) - 1.0)
    angle = math.atan2(sine, cosine)
    if sine > 1e-9:
        return axis * (angle / (2.0 * sine))
    if cosine > 0.0:
        return 0.5 * axis
    # 180 degrees: the axis follows from the symmetric part.
    square = 0.5 * (rotation + np.eye(3))
    column = square[:, int(np.argmax(np.diagonal(square)))]
    return math.pi * column / float(np.linalg.norm(column))


def rotation_matrix(vector: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Inverse of `rotation_vector`."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.eye(3) + skew(np.asarray(vector, float))
    k = skew(np.asarray(vector, float) / angle)
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)


def to_pose(values: Float[Array, " 6"]) -> Float[Array, "4 4"]:
    """Pose matrix of x, y, z, rx, ry, rz."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation_matrix(np.asarray(values[3:], float)), values[:3]
    return out


def from_pose(pose: Float[Array, "4 4"]) -> list[float]:
    """Values x, y, z, rx, ry, rz of a pose matrix."""
    return [*pose[:3, 3].tolist(), *rotation_vector(pose[:3, :3]).tolist()]


__all__ = [
    "Kinematics",
    "from_pose",
    "inverse_pose",
    "rotation_matrix",
    "rotation_vector",
    "to_pose",
]
