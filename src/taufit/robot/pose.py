"""Poses as 4x4 matrices, and frame changes of twists (omega; v)."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float


def rotation_about_axis(axis: int, angle: float) -> Float[Array, "4 4"]:
    """Pose of a rotation about a coordinate axis [rad]."""
    c, s = np.cos(angle), np.sin(angle)
    # cos(pi/2) is 6e-17 in floating point; zero is meant.
    c, s = (0.0 if abs(x) < 1e-15 else x for x in (c, s))
    out = np.eye(4)
    i, k = (axis + 1) % 3, (axis + 2) % 3
    out[i, i] = out[k, k] = c
    out[k, i], out[i, k] = s, -s
    return out


def translation_along_axis(axis: int, length: float) -> Float[Array, "4 4"]:
    """Pose of a translation along a coordinate axis [m]."""
    out = np.eye(4)
    out[axis, 3] = length
    return out


def skew(w: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Cross product matrix [w] with [w] x = w cross x."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def inverse_pose(pose: Float[Array, "4 4"]) -> Float[Array, "4 4"]:
    """Inverse T^-1 of a pose T."""
    out = np.eye(4)
    out[:3, :3] = pose[:3, :3].T
    out[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return out


def adjoint(pose: Float[Array, "4 4"]) -> Float[Array, "6 6"]:
    """Adjoint Ad_T = [[R, 0], [[p] R, R]] for twists (omega; v)."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = pose[:3, :3]
    out[3:, :3] = skew(pose[:3, 3]) @ pose[:3, :3]
    return out


def screw_motion(screw: Float[Array, " 6"], displacement: float) -> Float[Array, "4 4"]:
    """Pose exp([S] q) after moving by q along S = (omega; v), omega of length 1 or 0."""
    w, u = screw[:3], screw[3:]
    out = np.eye(4)
    if not np.any(w):
        out[:3, 3] = displacement * u
        return out
    cross = skew(w)
    sine, cosine = np.sin(displacement), np.cos(displacement)
    out[:3, :3] = np.eye(3) + sine * cross + (1.0 - cosine) * cross @ cross
    out[:3, 3] = (
        displacement * np.eye(3) + (1.0 - cosine) * cross + (displacement - sine) * cross @ cross
    ) @ u
    return out


def snap_angle(angle: float, tolerance: float = 1e-5) -> float:
    """Angle rounded to a multiple of 45 degrees if within `tolerance`.

    Descriptions print 90 degrees as 1.5708 or 1.570796; unrounded, axes would miss each other by
    microns, and more base parameters would seem identifiable than are.
    """
    nearest = np.round(angle / (np.pi / 4)) * (np.pi / 4)
    return float(nearest) if abs(angle - nearest) < tolerance else float(angle)


def pose_from_rpy(position: Float[Array, " 3"], angles: Float[Array, " 3"]) -> Float[Array, "4 4"]:
    """Pose Tx Ty Tz Rz(yaw) Ry(pitch) Rx(roll), with rounded angles."""
    roll, pitch, yaw = (snap_angle(float(a)) for a in angles)
    out = rotation_about_axis(2, yaw) @ rotation_about_axis(1, pitch) @ rotation_about_axis(0, roll)
    out[:3, 3] = position
    return np.asarray(out)
