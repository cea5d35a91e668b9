"""Robots from MJCF: the chain of hinge and slide joints of one body tree."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RobotError
from taufit.core.extras import missing_extra
from taufit.robot.checks import validate_robot
from taufit.robot.inertia import from_centre_of_mass, transform_parameters
from taufit.robot.robot import Drives, JointLimits, Link, Robot

# Shapes are not needed and their mesh files may be missing; inertias must then be given.
_SHAPES = ("geom", "mesh", "texture", "material", "hfield", "skin", "exclude", "pair", "camera")
_SECTIONS = ("asset", "contact", "sensor", "tendon", "equality", "actuator", "keyframe", "visual")


def from_mjcf(text: str, *, tip: str | None = None, source: str = "MJCF") -> Robot:
    """Create a robot from MJCF text; the longest chain of joints, or the chain to body `tip`.

    Bodies beside the chain are counted to the link that carries them, their joints at zero.
    """
    try:
        import mujoco
    except ImportError:
        raise missing_extra("sim", "an MJCF file", "convert it to URDF") from None
    if re.search(r"<!DOCTYPE|<!ENTITY|<include\b", text):
        raise RobotError("this MJCF declares entities or includes files: give one complete file.")
    try:
        model = mujoco.MjModel.from_xml_string(_without_shapes(text))
    except ValueError as error:
        raise RobotError(f"MuJoCo cannot read this MJCF: {str(error)[:200]}") from None
    bodies = _chain(model, tip)
    links, limits = _links(model, bodies)
    lower, upper = np.array(limits).T
    unknown = np.full(len(links), np.inf)
    last = bodies[-1]
    pose = np.eye(4)
    sites = [s for s in range(model.nsite) if model.site_bodyid[s] == last]
    if sites:
        pose[:3, 3] = model.site_pos[sites[-1]]
    name = re.search(r'<mujoco[^>]*\bmodel="([^"]+)"', text)
    return validate_robot(
        Robot(
            name[1] if name else "robot",
            tuple(links),
            JointLimits(lower, upper, unknown, unknown, unknown),
            Drives.direct_drive(len(links)),
            tip=pose,
            source=source,
        )
    )


def _without_shapes(text: str) -> str:
    """MJCF without shapes and sections that name them."""
    from taufit.robot.urdf import parse_xml

    root = parse_xml(text, "mujoco")
    for section in root.findall("*"):
        if section.tag in _SECTIONS:
            root.remove(section)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in _SHAPES:
                parent.remove(child)
    from xml.etree import ElementTree

    return ElementTree.tostring(root, encoding="unicode")


def _chain(model: Any, tip: str | None) -> list[int]:
    """Bodies with one joint each from the base to the tip."""
    jointed = [b for b in range(1, model.nbody) if model.body_jntnum[b]]
    parents = model.body_parentid

    def path(body: int) -> list[int]:
        out = []
        while body:
            if body in jointed:
                out.append(body)
            body = int(parents[body])
        return out[::-1]

    if tip is not None:
        names = {model.body(b).name: b for b in range(1, model.nbody)}
        if tip not in names:
            raise RobotError(f"body {tip!r} not found. Available: {', '.join(list(names)[:40])}.")
        chain = path(names[tip])
    else:
        chain = max((path(b) for b in jointed), key=len, default=[])
    if not chain:
        raise RobotError("this MJCF has no joints: nothing can move.")
    for body in chain:
        if model.body_jntnum[body] != 1 or model.jnt_type[model.body_jntadr[body]] < 2:
            raise RobotError(
                f"body {model.body(body).name!r} has a free, ball or more than one joint: "
                "taufit needs one hinge or slide per body."
            )
    return chain


def _links(model: Any, chain: list[int]) -> tuple[list[Link], list[tuple[float, float]]]:
    """Links of a chain with the bodies they carry, and their position limits."""
    import mujoco

    data = mujoco.MjData(model)
    data.qpos[:] = 0.0
    mujoco.mj_kinematics(model, data)
    poses = {0: np.eye(4)}
    for body in range(1, model.nbody):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = data.xmat[body].reshape(3, 3), data.xpos[body]
        poses[body] = pose
    links, limits, before = [], [], np.eye(4)
    for body in chain:
        joint = int(model.body_jntadr[body])
        axis, anchor = model.jnt_axis[joint], model.jnt_pos[joint]
        hinge = model.jnt_type[joint] == 3
        screw = np.concatenate([axis, -np.cross(axis, anchor)] if hinge else [0 * axis, axis])
        parameters = np.zeros(10)
        for carried in range(1, model.nbody):
            if _carrier(model, carried, chain) == body:
                relative = np.linalg.inv(poses[body]) @ poses[carried]
                parameters += transform_parameters(_body_parameters(model, carried), relative)
        placement = np.linalg.inv(before) @ poses[body]
        links.append(
            Link(model.body(body).name, model.joint(joint).name, placement, screw, parameters)
        )
        has_range = bool(model.jnt_limited[joint])
        low, high = model.jnt_range[joint] if has_range else (-np.inf, np.inf)
        limits.append((float(low), float(high)))
        before = poses[body]
    return links, limits


def _carrier(model: Any, body: int, chain: list[int]) -> int:
    """Body of the chain that carries a body; 0 for the base."""
    while body and body not in chain:
        body = int(model.body_parentid[body])
    return body


def _body_parameters(model: Any, body: int) -> Float[Array, " 10"]:
    import mujoco

    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[body])
    rotation = turn.reshape(3, 3)
    tensor = rotation @ np.diag(model.body_inertia[body]) @ rotation.T
    mass, centre = float(model.body_mass[body]), model.body_ipos[body]
    return from_centre_of_mass(mass, centre, tensor)
