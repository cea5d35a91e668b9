"""Fitted model as MJCF: bodies, armature, Coulomb friction, damping, actuator offsets."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from taufit.export.consistency_check import require_feasible
from taufit.export.format_reduction import MJCF_TERMS, ReducedModel, reduce_to_format
from taufit.export.friction_parts import friction_coefficients, offsets
from taufit.export.joint_frames import joint_frames, numbers, quaternion
from taufit.export.unique_names import unique_names
from taufit.model.fitted_model import FittedModel
from taufit.terms import LEVEL


def to_mjcf(model: FittedModel) -> tuple[str, tuple[str, ...]]:
    """MJCF text and the parts of the model it cannot represent.

    The values are those of `mjcf_model(model)`: rotor inertia is armature, viscous friction a
    polynomial damping (linear, quadratic, cubic), Coulomb friction `frictionloss`, a spring
    `stiffness`, and an offset the bias of the joint's actuator, whose control is the torque of the
    drive. MuJoCo solves Coulomb friction as a constraint, so `mj_inverse` torques contain it up to
    the accuracy of its solver.
    """
    require_feasible(model.robot)
    reduced = mjcf_model(model)
    robot = reduced.model.robot
    require_feasible(robot)
    frames, tip = joint_frames(robot)
    friction = friction_coefficients(reduced.model)
    parameters = MJCF_TERMS.friction.parameters
    coulomb = friction[
        :, next(k for k, parameter in enumerate(parameters) if parameter.group == LEVEL)
    ]
    viscous = friction[:, [k for k, parameter in enumerate(parameters) if parameter.power]]
    springs = [getattr(term, "rest", 0.0) for term in reduced.model.terms]
    rotor = reduced.model.layout.split(reduced.model.values).rotors
    offset = offsets(reduced.model)

    bodies = unique_names((link.name for link in robot.links), "link", ("world",))
    joints = unique_names((link.joint for link in robot.links), "joint")
    root = ET.Element("mujoco", model=robot.name)
    # Local coordinates are MuJoCo's default; balancing or bounding inertias would change the
    # fitted model silently.
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(root, "option", gravity=numbers(robot.gravity), timestep="0.001")
    world = ET.SubElement(root, "worldbody")
    parent = world
    for i, frame in enumerate(frames):
        body = ET.SubElement(
            parent,
            "body",
            name=bodies[i],
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
            name=joints[i],
            type="slide" if frame.prismatic else "hinge",
            axis=numbers(frame.axis),
            armature=repr(float(rotor[i])),
            damping=numbers(viscous[i] if np.any(viscous[i, 1:]) else viscous[i, :1]),
            frictionloss=repr(float(coulomb[i])),
            # With MuJoCo's default of 0.02 s friction reaches its full value and right sign only
            # at speeds above 1 % of the acceleration; hence a tenth of that.
            solreffriction="0.002 1",
            # MuJoCo's default of 0.9 lets a light joint creep: full friction only at speeds that
            # grow with friction over inertia.
            solimpfriction="0.99 0.99 0.001",
        )
        for k, spring_zero in enumerate(springs):
            joint.set("stiffness", repr(float(friction[i, len(parameters) + k])))
            joint.set("springref", repr(float(spring_zero)))
        low, high = robot.limits.lower[i], robot.limits.upper[i]
        if np.isfinite(low) and np.isfinite(high):
            joint.set("range", numbers([low, high]))
        parent = body
    ET.SubElement(
        parent, "site", name="tip", pos=numbers(tip[:3, 3]), quat=numbers(quaternion(tip[:3, :3]))
    )
    actuators = ET.SubElement(root, "actuator")
    for name, constant in zip(joints, offset, strict=True):
        # The joint moves by the torque of the drive minus the offset.
        motor = ET.SubElement(actuators, "general", name=name, joint=name, gainprm="1")
        if constant:
            motor.set("biastype", "affine")
            motor.set("biasprm", numbers([-constant, 0.0, 0.0]))
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n", reduced.dropped


def mjcf_model(model: FittedModel) -> ReducedModel:
    """Model with the terms of MJCF: links, rotors, friction, damping, springs, offsets."""
    return reduce_to_format(model, MJCF_TERMS)
