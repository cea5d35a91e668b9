"""Fitted model as SDF, the format of Gazebo: links, damping, Coulomb friction, springs."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.export.consistency_check import require_feasible
from taufit.export.format_reduction import SDF_TERMS, ReducedModel, reduce_to_format
from taufit.export.friction_parts import friction_coefficients
from taufit.export.joint_frames import JointFrame, joint_frames, numbers
from taufit.export.unique_names import unique_names
from taufit.model.fitted_model import FittedModel
from taufit.robot.urdf import roll_pitch_yaw
from taufit.terms import LEVEL

_UNLIMITED = 1e16  # the value that SDF documents for a joint without limits


def to_sdf(model: FittedModel) -> tuple[str, tuple[str, ...]]:
    """SDF text and the parts of the model it cannot represent.

    The values are those of `sdf_model(model)`: if SDF lacks terms of the model, the others are
    refitted. The base is fixed to the world, in the robot's mounting.
    """
    require_feasible(model.robot)
    reduced = sdf_model(model)
    robot = reduced.model.robot
    require_feasible(robot)
    frames, (tip,) = joint_frames(robot)
    friction = friction_coefficients(reduced.model)
    parameters = SDF_TERMS.friction.parameters
    damping = next(k for k, parameter in enumerate(parameters) if parameter.power == 1)
    coulomb = next(k for k, parameter in enumerate(parameters) if parameter.group == LEVEL)
    springs = [getattr(term, "rest", 0.0) for term in reduced.model.terms]
    links = unique_names((link.name for link in robot.links), "link", ("world", "__model__"))
    joints = unique_names((link.joint for link in robot.links), "joint", links)
    base, tip_name = unique_names(("base_link", "tip"), "", links)

    root = ET.Element("sdf", version="1.9")
    arm = ET.SubElement(root, "model", name=robot.name.strip() or "arm")
    _add(arm, "pose", numbers([0.0, 0.0, 0.0, *robot.mounting]))
    ET.SubElement(arm, "link", name=base)
    (fixture,) = unique_names(("fixed_to_world",), "", joints)
    _add_joint(arm, fixture, "fixed", "world", base)
    parent = base
    for i, frame in enumerate(frames):
        _add_link(arm, links[i], parent, frame)
        kind = "prismatic" if frame.prismatic else "revolute"
        axis = ET.SubElement(_add_joint(arm, joints[i], kind, parent, links[i]), "axis")
        _add(axis, "xyz", numbers(frame.axis))
        limit = ET.SubElement(axis, "limit")
        limits = robot.limits
        for name, value in (
            ("lower", limits.lower[i]),
            ("upper", limits.upper[i]),
            ("effort", limits.torque[i]),
            ("velocity", limits.velocity[i]),
        ):
            _add(limit, name, repr(float(np.clip(value, -_UNLIMITED, _UNLIMITED))))
        dynamics = ET.SubElement(axis, "dynamics")
        _add(dynamics, "damping", repr(float(friction[i, damping])))
        _add(dynamics, "friction", repr(float(friction[i, coulomb])))
        for k, rest in enumerate(springs):
            _add(dynamics, "spring_reference", repr(float(rest)))
            _add(dynamics, "spring_stiffness", repr(float(friction[i, len(parameters) + k])))
        parent = links[i]
    mark = ET.SubElement(arm, "frame", name=tip_name, attached_to=parent)
    _add(mark, "pose", _pose_text(tip.pose))
    ET.indent(root, " ")
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n", reduced.dropped


def sdf_model(model: FittedModel) -> ReducedModel:
    """Model with the terms of SDF: links, damping, Coulomb friction and springs."""
    return reduce_to_format(model, SDF_TERMS)


def _add(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, name)
    element.text = text
    return element


def _add_link(arm: ET.Element, name: str, parent: str, frame: JointFrame) -> None:
    link = ET.SubElement(arm, "link", name=name)
    _add(link, "pose", _pose_text(frame.placement)).set("relative_to", parent)
    inertial = ET.SubElement(link, "inertial")
    _add(inertial, "pose", numbers([*frame.centre, 0.0, 0.0, 0.0]))
    _add(inertial, "mass", repr(float(frame.mass)))
    inertia = ET.SubElement(inertial, "inertia")
    for entry, i, k in (
        ("ixx", 0, 0),
        ("ixy", 0, 1),
        ("ixz", 0, 2),
        ("iyy", 1, 1),
        ("iyz", 1, 2),
        ("izz", 2, 2),
    ):
        _add(inertia, entry, repr(float(frame.tensor[i, k])))


def _add_joint(arm: ET.Element, name: str, kind: str, parent: str, child: str) -> ET.Element:
    joint = ET.SubElement(arm, "joint", name=name, type=kind)
    _add(joint, "parent", parent)
    _add(joint, "child", child)
    return joint


def _pose_text(placement: Float[Array, "4 4"]) -> str:
    return numbers([*placement[:3, 3], *roll_pitch_yaw(placement[:3, :3])])
