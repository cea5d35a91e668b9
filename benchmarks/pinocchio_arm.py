"""An arm as Pinocchio's model, from plain arrays: it also runs where taufit is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def arrays_of(robot: Any) -> dict[str, np.ndarray]:
    """What `pinocchio_model` needs, ready to be saved."""
    return {
        "placements": robot.placements,
        "screws": robot.screws,
        "parameters": robot.parameters.reshape(-1, 10),
        "gravity": robot.gravity,
    }


def pinocchio_model(arm: Any) -> Any:
    """Joint frames on the axes; the inertias are the same bodies seen from there."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = arm["gravity"]
    parent, before = 0, pin.SE3.Identity()
    for i, (placement, screw, theta) in enumerate(
        zip(arm["placements"], arm["screws"], arm["parameters"], strict=True)
    ):
        w, u = screw[:3], screw[3:]
        revolute = np.any(w)
        shift = np.cross(w, u) if revolute else np.zeros(3)
        joint = (
            pin.JointModelRevoluteUnaligned(w) if revolute else pin.JointModelPrismaticUnaligned(u)
        )
        if np.allclose(screw, [0, 0, 1, 0, 0, 0]):
            joint = pin.JointModelRZ()  # the faster of Pinocchio's joints where it applies
        pose = before * pin.SE3(placement[:3, :3], placement[:3, 3]) * pin.SE3(np.eye(3), shift)
        parent = model.addJoint(parent, joint, pose, f"joint_{i + 1}")
        before = pin.SE3(np.eye(3), -shift)
        mass = max(theta[0], 1e-3)
        c = theta[1:4] / mass
        xx, xy, yy, xz, yz, zz = theta[4:]
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        tensor -= mass * (c @ c * np.eye(3) - np.outer(c, c))
        model.appendBodyToJoint(parent, pin.Inertia(mass, c, tensor), before)
    return model


def link_columns(arm: Any) -> Callable[..., np.ndarray]:
    """Function from motion (n, j) to the regressor of the links (n, j, 10 j)."""
    import pinocchio as pin

    model = pinocchio_model(arm)
    memory = model.createData()

    def columns(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.stack(
            [
                pin.computeJointTorqueRegressor(model, memory, *row).copy()
                for row in zip(q, v, a, strict=True)
            ]
        )

    return columns
