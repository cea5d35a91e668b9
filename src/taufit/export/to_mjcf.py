"""Fitted model as MJCF: bodies, armature, Coulomb friction, damping, actuator offsets."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

import numpy as np

from taufit.export.consistency_check import require_feasible
from taufit.export.format_reduction import MJCF_TERMS, ReducedModel, reduce_to_format
from taufit.export.friction_parts import friction_coefficients, offsets
from taufit.export.joint_frames import JointFrame, joint_frames, numbers, quaternion
from taufit.export.unique_names import unique_names
from taufit.model.fitted_model import FittedModel
from taufit.robot.pose import screw_motion
from taufit.terms import LEVEL

# Constraints of bound joints hardly give way; two time steps are the shortest stable time constant.
_STIFF = {"solref": "0.002 1", "solimp": "0.9999 0.9999 0.001"}


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
    frames, tips = joint_frames(robot)
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
    elements: list[ET.Element] = []
    parents = {frame.parent for frame in frames}
    for b, frame in enumerate(frames):
        # Bound joints are zero where the recorded ones are: their offset is in the placement.
        offset_axis = np.zeros(6)
        offset_axis[slice(3, 6) if frame.prismatic else slice(0, 3)] = frame.axis
        placement = frame.placement @ screw_motion(offset_axis, frame.offset)
        body = ET.SubElement(
            world if frame.parent < 0 else elements[frame.parent],
            "body",
            name=bodies[b],
            pos=numbers(placement[:3, 3]),
            quat=numbers(quaternion(placement[:3, :3])),
        )
        elements.append(body)
        t = frame.tensor
        is_end = b not in parents
        if frame.mass > 0 or is_end or np.any(t):
            ET.SubElement(
                body,
                "inertial",
                pos=numbers(frame.centre),
                mass=repr(float(frame.mass)),
                fullinertia=numbers([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]),
            )
        kind = "slide" if frame.prismatic else "hinge"
        joint = ET.SubElement(body, "joint", name=joints[b], type=kind, axis=numbers(frame.axis))
        j = frame.joint
        if j is None:
            continue
        joint.set("armature", repr(float(rotor[j])))
        joint.set("damping", numbers(viscous[j] if np.any(viscous[j, 1:]) else viscous[j, :1]))
        joint.set("frictionloss", repr(float(coulomb[j])))
        # With MuJoCo's default of 0.02 s friction reaches its full value and right sign only
        # at speeds above 1 % of the acceleration; hence a tenth of that.
        joint.set("solreffriction", "0.002 1")
        # MuJoCo's default of 0.9 lets a light joint creep: full friction only at speeds that
        # grow with friction over inertia.
        joint.set("solimpfriction", "0.99 0.99 0.001")
        for k, spring_zero in enumerate(springs):
            joint.set("stiffness", repr(float(friction[j, len(parameters) + k])))
            joint.set("springref", repr(float(spring_zero)))
        low, high = robot.limits.lower[j], robot.limits.upper[j]
        if np.isfinite(low) and np.isfinite(high):
            joint.set("range", numbers([low, high]))
    for tip in tips:
        pose = {"pos": numbers(tip.pose[:3, 3]), "quat": numbers(quaternion(tip.pose[:3, :3]))}
        ET.SubElement(elements[tip.link], "site", {"name": tip.name} | pose)
    leaders = {frame.joint: name for frame, name in zip(frames, joints, strict=True)}
    _bind_joints(root, frames, joints, leaders)
    actuators = ET.SubElement(root, "actuator")
    for j, constant in enumerate(offset):
        # The joint moves by the torque of the drive minus the offset.
        name = leaders[j]
        motor = ET.SubElement(actuators, "general", name=name, joint=name, gainprm="1")
        if constant:
            motor.set("biastype", "affine")
            motor.set("biasprm", numbers([-constant, 0.0, 0.0]))
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n", reduced.dropped


def _bind_joints(
    root: ET.Element,
    frames: Sequence[JointFrame],
    names: Sequence[str],
    leaders: Mapping[int | None, str],
) -> None:
    """Equality constraints of bound joints: of two joints, or of a tendon over several."""
    bound_links = [b for b, frame in enumerate(frames) if frame.joint is None]
    if not bound_links:
        return
    tendons, equality = ET.Element("tendon"), ET.Element("equality")
    for b in bound_links:
        factors = frames[b].binding
        if len(factors) == 1:
            ((leader, factor),) = factors.items()
            values = {"joint1": names[b], "joint2": leaders[leader]}
            values["polycoef"] = numbers([0.0, factor, 0.0, 0.0, 0.0])
            ET.SubElement(equality, "joint", values | _STIFF)
            continue
        tendon = ET.SubElement(tendons, "fixed", name=f"{names[b]}_binding")
        ET.SubElement(tendon, "joint", joint=names[b], coef="1")
        for leader, factor in factors.items():
            ET.SubElement(tendon, "joint", joint=leaders[leader], coef=repr(-factor))
        ET.SubElement(equality, "tendon", {"tendon1": f"{names[b]}_binding"} | _STIFF)
    root.extend([part for part in (tendons, equality) if len(part)])


def mjcf_model(model: FittedModel) -> ReducedModel:
    """Model with the terms of MJCF: links, rotors, friction, damping, springs, offsets."""
    return reduce_to_format(model, MJCF_TERMS)
