"""Fitted model as URDF: the original file with its inertials replaced, or a new file."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from taufit.export.feasible import require_feasible
from taufit.export.format_reduction import URDF_TERMS, ReducedModel, reduce_to_format
from taufit.export.friction_parts import friction_coefficients
from taufit.export.joint_frames import joint_frames, numbers, roll_pitch_yaw
from taufit.export.unique_names import unique_names
from taufit.model.fitted_model import FittedModel
from taufit.robot.inertia import to_centre_of_mass
from taufit.robot.pose import pose_from_rpy, screw_motion
from taufit.terms import LEVEL

# Joint limit for a joint without limits [rad]; "continuous" would change the joint type.
_WIDE = 1e3


def to_urdf(model: FittedModel) -> tuple[str, tuple[str, ...]]:
    """URDF text and the parts of the model it cannot represent.

    The values are those of `urdf_form(model)`: if URDF lacks terms of the model, the others are
    refitted. A robot that was read from a URDF keeps the rest of its file: meshes, limits,
    comments. Links behind fixed joints were fitted together with their moving link, so their
    inertials are removed and that link has the total.
    """
    require_feasible(model.robot)
    form = urdf_form(model)
    require_feasible(form.model.robot)
    friction = friction_coefficients(form.model)
    known = URDF_TERMS.friction.parameters
    damping = friction[:, next(k for k, one in enumerate(known) if one.power == 1)]
    dry = friction[:, next(k for k, one in enumerate(known) if one.group == LEVEL)]
    if model.robot.urdf is not None:
        text = _edited(form.model, damping, dry)
    else:
        text = _fresh(form.model, damping, dry)
    return text, form.dropped


def urdf_form(model: FittedModel) -> ReducedModel:
    """Model with the terms of URDF: links, damping and Coulomb friction."""
    return reduce_to_format(model, URDF_TERMS)


def _edited(model: FittedModel, damping: np.ndarray, dry: np.ndarray) -> str:
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    assert model.robot.urdf is not None
    root = ET.fromstring(model.robot.urdf, parser=parser)
    links = {link.get("name"): link for link in root.findall("link")}
    fixed: dict[str | None, list[str | None]] = {}
    for joint in root.findall("joint[@type='fixed']"):
        parent, child = joint.find("parent"), joint.find("child")
        if parent is not None and child is not None:
            fixed.setdefault(parent.get("link"), []).append(child.get("link"))
    for i, link in enumerate(model.robot.links):
        _set_inertial(links[link.name], *to_centre_of_mass(link.parameters))
        behind, seen = list(fixed.get(link.name, ())), set[str | None]({link.name})
        while behind:
            name = behind.pop()
            if name in seen:
                continue
            seen.add(name)
            behind += fixed.get(name, ())
            for inertial in links[name].findall("inertial"):
                links[name].remove(inertial)
        for joint in root.findall("joint"):
            if joint.get("name") == link.joint:
                _set_dynamics(joint, damping[i], dry[i])
                if model.robot.joint_zeros:
                    _turn_origin(joint, link.screw, model.robot.joint_zeros[i])
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _fresh(model: FittedModel, damping: np.ndarray, dry: np.ndarray) -> str:
    robot = model.robot
    frames, tip = joint_frames(robot)
    links = unique_names((link.name for link in robot.links), "link")
    joints = unique_names((link.joint for link in robot.links), "joint")
    base, last = unique_names(("base_link", "tip"), "", links)
    (to_last,) = unique_names(("tip_joint",), "", joints)
    root = ET.Element("robot", name=robot.name.strip() or "arm")
    ET.SubElement(root, "link", name=base)
    parent = base
    for i, frame in enumerate(frames):
        element = ET.SubElement(root, "link", name=links[i])
        _set_inertial(element, frame.mass, frame.centre, frame.tensor)
        kind = "prismatic" if frame.prismatic else "revolute"
        low, high = robot.limits.lower[i], robot.limits.upper[i]
        joint = ET.SubElement(root, "joint", name=joints[i], type=kind)
        _origin(joint, frame.placement)
        ET.SubElement(joint, "parent", link=parent)
        ET.SubElement(joint, "child", link=links[i])
        ET.SubElement(joint, "axis", xyz=numbers(frame.axis))
        effort, velocity = robot.limits.torque[i], robot.limits.velocity[i]
        limit = {
            "effort": repr(float(effort if np.isfinite(effort) else 1e6)),
            "velocity": repr(float(velocity if np.isfinite(velocity) else 1e6)),
        }
        limit["lower"] = repr(float(low if np.isfinite(low) else -_WIDE))
        limit["upper"] = repr(float(high if np.isfinite(high) else _WIDE))
        ET.SubElement(joint, "limit", limit)
        _set_dynamics(joint, damping[i], dry[i])
        parent = links[i]
    ET.SubElement(root, "link", name=last)
    joint = ET.SubElement(root, "joint", name=to_last, type="fixed")
    _origin(joint, tip)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=last)
    ET.indent(root, " ")
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _turn_origin(joint: ET.Element, screw: np.ndarray, zero: float) -> None:
    """Set the joint origin with its zero offset: origin exp([axis] zero)."""
    old = joint.find("origin")
    given = {} if old is None else old.attrib
    xyz, rpy = (
        np.array([float(x) for x in given.get(key, "0 0 0").split()]) for key in ("xyz", "rpy")
    )
    if old is not None:
        joint.remove(old)
    _origin(joint, pose_from_rpy(xyz, rpy) @ screw_motion(screw, zero))


def _origin(element: ET.Element, placement: np.ndarray) -> None:
    ET.SubElement(
        element,
        "origin",
        xyz=numbers(placement[:3, 3]),
        rpy=numbers(roll_pitch_yaw(placement[:3, :3])),
    )


def _set_inertial(link: ET.Element, mass: float, centre: np.ndarray, tensor: np.ndarray) -> None:
    old = link.find("inertial")
    place = list(link).index(old) if old is not None else 0
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
    link.insert(place, new)


def _set_dynamics(joint: ET.Element, damping: float, dry: float) -> None:
    element = joint.find("dynamics")
    if element is None:
        element = ET.SubElement(joint, "dynamics")
    element.set("damping", repr(float(damping)))
    element.set("friction", repr(float(dry)))
