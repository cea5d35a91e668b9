"""The fitted arm as MJCF: bodies, inertias, rotor inertia as armature, linear friction."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from taufit.export.feasible import require_feasible
from taufit.export.friction_parts import linear_part
from taufit.export.joint_frames import joint_frames, numbers, quaternion
from taufit.model.fitted_model import FittedModel


def to_mjcf(model: FittedModel) -> tuple[str, tuple[str, ...]]:
    """MJCF text and what of the model it could not hold.

    Bodies, armature, damping and dry friction (`frictionloss`) are written; MuJoCo solves dry
    friction as a constraint, so `mj_inverse` torques contain it only up to its solver.
    """
    robot = model.robot
    require_feasible(robot)
    frames, tip = joint_frames(robot)
    damping, dry, dropped = linear_part(model)
    rotor = _rotor(model)

    root = ET.Element("mujoco", model=robot.name)
    # "local" coordinates and radians are MuJoCo's own; balancing or bounding inertias would change
    # the fitted model without saying so.
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers(robot.gravity))
    world = ET.SubElement(root, "worldbody")
    parent = world
    for i, (link, frame) in enumerate(zip(robot.links, frames, strict=True)):
        body = ET.SubElement(
            parent,
            "body",
            name=link.name,
            pos=numbers(frame.placement[:3, 3]),
            quat=numbers(quaternion(frame.placement[:3, :3])),
        )
        t = frame.tensor
        if frame.mass > 0 or i == len(frames) - 1 or np.any(t):
            ET.SubElement(
                body,
                "inertial",
                pos=numbers(frame.centre),
                mass=repr(float(frame.mass)),
                fullinertia=numbers([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]),
            )
        joint = ET.SubElement(
            body,
            "joint",
            name=link.joint,
            type="slide" if frame.prismatic else "hinge",
            axis=numbers(frame.axis),
            armature=repr(float(rotor[i])),
            damping=repr(float(damping[i])),
            frictionloss=repr(float(dry[i])),
        )
        low, high = robot.limits.lower[i], robot.limits.upper[i]
        if np.isfinite(low) and np.isfinite(high):
            joint.set("range", numbers([low, high]))
        parent = body
    ET.SubElement(
        parent, "site", name="tip", pos=numbers(tip[:3, 3]), quat=numbers(quaternion(tip[:3, :3]))
    )
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n", dropped


def _rotor(model: FittedModel) -> np.ndarray:
    if not model.rotor_inertia:
        return model.robot.rotor_inertias
    return np.maximum(model.values[model.layout.rotors], 0.0)
