"""Fitted model as URDF: the original file with its inertials replaced, or a new file."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from taufit.core.errors import InfeasibleError
from taufit.export.consistency_check import require_feasible
from taufit.export.format_reduction import URDF_TERMS, ReducedModel, reduce_to_format
from taufit.export.friction_parts import friction_coefficients
from taufit.export.joint_frames import JointFrame, joint_frames, numbers
from taufit.export.unique_names import unique_names
from taufit.model.fitted_model import FittedModel
from taufit.robot import Robot
from taufit.robot.inertia import to_centre_of_mass
from taufit.robot.pose import pose_from_rpy, screw_motion
from taufit.robot.urdf import roll_pitch_yaw
from taufit.terms import LEVEL

# Joint limit for a joint without limits [rad]; "continuous" would change the joint type.
_WIDE_LIMIT = 1e3


def to_urdf(model: FittedModel) -> tuple[str, tuple[str, ...]]:
    """URDF text and the parts of the model it cannot represent.

    The values are those of `urdf_model(model)`: if URDF lacks terms of the model, the others are
    refitted. A robot that was read from a URDF keeps the rest of its file: meshes, limits,
    comments. Links behind fixed joints were fitted together with their moving link, so their
    inertials are removed and that link has the total.
    """
    require_feasible(model.robot)
    reduced = urdf_model(model)
    require_feasible(reduced.model.robot)
    friction = friction_coefficients(reduced.model)
    parameters = URDF_TERMS.friction.parameters
    damping = friction[:, next(k for k, term in enumerate(parameters) if term.power == 1)]
    coulomb = friction[:, next(k for k, term in enumerate(parameters) if term.group == LEVEL)]
    is_described = model.robot.urdf is not None
    if is_described and not (model.robot.is_tree and model.robot.joint_zeros):
        text = _edit_urdf(reduced.model, damping, coulomb)
    else:
        text = _make_urdf(reduced.model, damping, coulomb)
    return text, reduced.dropped


def urdf_model(model: FittedModel) -> ReducedModel:
    """Model with the terms of URDF: links, damping and Coulomb friction."""
    return reduce_to_format(model, URDF_TERMS)


def _edit_urdf(model: FittedModel, damping: np.ndarray, coulomb: np.ndarray) -> str:
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    assert model.robot.urdf is not None
    root = ET.fromstring(model.robot.urdf, parser=parser)
    links = {link.get("name"): link for link in root.findall("link")}
    joint_names = {link.joint for link in model.robot.links}
    fixed: dict[str | None, list[tuple[ET.Element, str | None]]] = {}
    for joint in root.findall("joint"):
        is_held = model.robot.is_tree and joint.get("name") not in joint_names
        parent, child = joint.find("parent"), joint.find("child")
        if (is_held or joint.get("type") == "fixed") and parent is not None and child is not None:
            fixed.setdefault(parent.get("link"), []).append((joint, child.get("link")))
    for i, link in enumerate(model.robot.links):
        _set_inertial(links[link.name], *to_centre_of_mass(link.parameters))
        fixed_links, visited = list(fixed.get(link.name, ())), set[str | None]({link.name})
        while fixed_links:
            joint, name = fixed_links.pop()
            if name in visited:
                continue
            visited.add(name)
            fixed_links += fixed.get(name, ())
            joint.set("type", "fixed")
            for inertial in links[name].findall("inertial"):
                links[name].remove(inertial)
        for joint in root.findall("joint"):
            if joint.get("name") == link.joint and link.joint in model.robot.joint_names:
                j = model.robot.joint_names.index(link.joint)
                _set_dynamics(joint, damping[j], coulomb[j])
                if model.robot.joint_zeros:
                    _set_origin_zero(joint, link.screw, model.robot.joint_zeros[i])
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _make_urdf(model: FittedModel, damping: np.ndarray, coulomb: np.ndarray) -> str:
    robot = model.robot
    frames, tips = joint_frames(robot)
    links = unique_names((link.name for link in robot.links), "link")
    joints = unique_names((link.joint for link in robot.links), "joint")
    base, *tip_names = unique_names(("base_link", *(tip.name for tip in tips)), "", links)
    tip_joints = unique_names((f"{tip.name}_joint" for tip in tips), "", joints)
    leaders = {frame.joint: name for frame, name in zip(frames, joints, strict=True)}
    root = ET.Element("robot", name=robot.name.strip() or "arm")
    ET.SubElement(root, "link", name=base)
    for b, frame in enumerate(frames):
        element = ET.SubElement(root, "link", name=links[b])
        _set_inertial(element, frame.mass, frame.centre, frame.tensor)
        kind = "prismatic" if frame.prismatic else "revolute"
        joint = ET.SubElement(root, "joint", name=joints[b], type=kind)
        _add_origin(joint, frame.placement)
        ET.SubElement(joint, "parent", link=base if frame.parent < 0 else links[frame.parent])
        ET.SubElement(joint, "child", link=links[b])
        ET.SubElement(joint, "axis", xyz=numbers(frame.axis))
        if frame.joint is None:
            ET.SubElement(joint, "limit", _limit(np.inf, np.inf, -np.inf, np.inf))
            ET.SubElement(joint, "mimic", _mimic(robot, joints[b], frame, leaders))
        else:
            j, limits = frame.joint, robot.limits
            values = (limits.torque[j], limits.velocity[j], limits.lower[j], limits.upper[j])
            ET.SubElement(joint, "limit", _limit(*values))
            _set_dynamics(joint, damping[j], coulomb[j])
    for tip, tip_name, tip_joint in zip(tips, tip_names, tip_joints, strict=True):
        ET.SubElement(root, "link", name=tip_name)
        joint = ET.SubElement(root, "joint", name=tip_joint, type="fixed")
        _add_origin(joint, tip.pose)
        ET.SubElement(joint, "parent", link=links[tip.link])
        ET.SubElement(joint, "child", link=tip_name)
    ET.indent(root, " ")
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _limit(effort: float, velocity: float, lower: float, upper: float) -> dict[str, str]:
    return {
        "effort": repr(float(effort if np.isfinite(effort) else 1e6)),
        "velocity": repr(float(velocity if np.isfinite(velocity) else 1e6)),
        "lower": repr(float(lower if np.isfinite(lower) else -_WIDE_LIMIT)),
        "upper": repr(float(upper if np.isfinite(upper) else _WIDE_LIMIT)),
    }


def _mimic(
    robot: Robot, name: str, frame: JointFrame, leaders: dict[int | None, str]
) -> dict[str, str]:
    """Attributes of the `<mimic>` of a joint that follows one recorded joint."""
    if len(frame.binding) != 1:
        followed = ", ".join(robot.joint_names[j] for j in frame.binding) or "none"
        raise InfeasibleError(
            f"joint {name!r} follows {len(frame.binding)} recorded joints ({followed}); <mimic> of "
            "URDF holds one. Export as MJCF, C or JSON instead."
        )
    ((leader, factor),) = frame.binding.items()
    values = {"multiplier": factor, "offset": frame.offset}
    return {"joint": leaders[leader]} | {key: repr(x) for key, x in values.items()}


def _set_origin_zero(joint: ET.Element, screw: np.ndarray, zero: float) -> None:
    """Set the joint origin with its zero offset: origin exp([axis] zero)."""
    old = joint.find("origin")
    attributes = {} if old is None else old.attrib
    xyz, rpy = (
        np.array([float(x) for x in attributes.get(key, "0 0 0").split()]) for key in ("xyz", "rpy")
    )
    if old is not None:
        joint.remove(old)
    _add_origin(joint, pose_from_rpy(xyz, rpy) @ screw_motion(screw, zero))


def _add_origin(element: ET.Element, placement: np.ndarray) -> None:
    ET.SubElement(
        element,
        "origin",
        xyz=numbers(placement[:3, 3]),
        rpy=numbers(roll_pitch_yaw(placement[:3, :3])),
    )


def _set_inertial(link: ET.Element, mass: float, centre: np.ndarray, tensor: np.ndarray) -> None:
    old = link.find("inertial")
    position = list(link).index(old) if old is not None else 0
    for inertial in link.findall("inertial"):
        link.remove(inertial)
    new = ET.Element("inertial")
    ET.SubElement(new, "origin", xyz=numbers(centre), rpy="0 0 0")
    ET.SubElement(new, "mass", value=repr(float(mass)))
    entries = {
        name: repr(float(tensor[i, k]))
        for name, i, k in (
            ("ixx", 0, 0),
            ("ixy", 0, 1),
            ("ixz", 0, 2),
            ("iyy", 1, 1),
            ("iyz", 1, 2),
            ("izz", 2, 2),
        )
    }
    ET.SubElement(new, "inertia", entries)
    new.tail = old.tail if old is not None else "\n"
    link.insert(position, new)


def _set_dynamics(joint: ET.Element, damping: float, coulomb: float) -> None:
    element = joint.find("dynamics")
    if element is None:
        element = ET.SubElement(joint, "dynamics")
    element.set("damping", repr(float(damping)))
    element.set("friction", repr(float(coulomb)))
