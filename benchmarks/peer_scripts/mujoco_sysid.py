"""MuJoCo's sysid toolbox: its parameters and optimiser on the torque of MuJoCo's inverse dynamics.

Each body has a pseudo-inertia (10 parameters), each joint armature, damping, frictionloss and a
constant torque: residuals are those of the torque at every third sample in motion, scaled by each
joint's spread, so that what is minimised is what is scored. After
ITERATIONS steps it moves no more.
"""

from __future__ import annotations

import functools
import time

import mujoco
import numpy as np
from mujoco import sysid
from peer_scripts.common import given

ITERATIONS = 60
EVERY = 3
data = given()
JOINTS = len(data.arm["screws"])


def described() -> mujoco.MjSpec:
    """The arm as MuJoCo has it: one body and hinge per joint."""

    def text(values: np.ndarray) -> str:
        return " ".join(f"{value:.12g}" for value in values)

    lines = []
    for i in range(JOINTS):
        pose, screw, theta = (data.arm[name][i] for name in ("placements", "screws", "parameters"))
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, pose[:3, :3].ravel())
        mass = max(theta[0], 0.1)
        c = theta[1:4] / mass
        xx, xy, yy, xz, yz, zz = theta[4:]
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        about -= mass * (c @ c * np.eye(3) - np.outer(c, c))
        full = about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        w, u = screw[:3], screw[3:]
        lines += [
            f'<body name="link_{i + 1}" pos="{text(pose[:3, 3])}" quat="{text(quaternion)}">',
            f'<inertial mass="{mass}" pos="{text(c)}" fullinertia="{text(full)}"/>',
            f'<joint name="joint_{i + 1}" axis="{text(w)}" pos="{text(np.cross(w, u))}"/>',
        ]
    tree = "".join(lines) + "</body>" * JOINTS
    gravity = text(data.arm["gravity"])
    return mujoco.MjSpec.from_string(
        f'<mujoco><option gravity="{gravity}"/><worldbody>{tree}</worldbody></mujoco>'
    )


def set_joints(what: str, spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    for joint, value in zip(spec.joints, parameter.value, strict=True):
        old = getattr(joint, what)
        setattr(joint, what, value if np.ndim(old) == 0 else [value, *np.ravel(old)[1:]])


def set_body(name: str, spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    """Its own way to write a pseudo-inertia back gives bodies that 4.0.0 cannot compile."""
    ten = sysid.model_modifier.pi_from_theta(parameter.value)
    c = ten[1:4] / ten[0]
    about = ten[4:].reshape(3, 3) - ten[0] * (c @ c * np.eye(3) - np.outer(c, c))
    principal, axes = np.linalg.eigh(about)
    axes[:, 0] *= np.linalg.det(axes)
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, axes.ravel())
    body = spec.body(name)
    body.explicitinertial = True
    body.fullinertia = np.full(6, np.nan)
    body.mass, body.ipos, body.inertia, body.iquat = ten[0], c, principal, quaternion


def parameters(spec: mujoco.MjSpec, scale: np.ndarray) -> sysid.ParameterDict:
    model = spec.compile()
    out = sysid.ParameterDict()
    for i in range(JOINTS):
        name = f"link_{i + 1}"
        change = functools.partial(set_body, name)
        kind = sysid.InertiaType.Pseudo
        out.add(sysid.body_inertia_param(spec, model, name, kind, modifier=change))
    one = np.ones(JOINTS)
    for what, start, most in (
        ("armature", 0.1 * one, 20.0 * one),
        ("damping", 0.1 * scale, 5.0 * scale),
        ("frictionloss", 0.1 * scale, 2.0 * scale),
    ):
        change = functools.partial(set_joints, what)
        out.add(sysid.Parameter(what, start, 0.0 * one, most, modifier=change))
    out.add(sysid.Parameter("bias", 0.0 * one, -scale, scale))
    return out


def torque(model: mujoco.MjModel, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    memory = mujoco.MjData(model)
    out = np.empty_like(q)
    for k in range(len(q)):
        memory.qpos[:], memory.qvel[:], memory.qacc[:] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, memory)
        out[k] = memory.qfrc_inverse
    return out


def predicted(
    known: sysid.ParameterDict, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    model = sysid.apply_param_modifiers(known, spec)
    return torque(model, q, v, a) + known["bias"].value


start = time.process_time()
spec = described()
q, v, a, aim = (part[::EVERY] for part in data.runs[0])
keep = data.keep[::EVERY]
scale = aim.std(0)
initial = parameters(spec, scale)


def residual(x: np.ndarray, known: sysid.ParameterDict) -> tuple[list[np.ndarray], None, None]:
    """One column per parameter set, as its optimiser asks for them."""
    columns = []
    for one in np.atleast_2d(np.asarray(x).T):
        known.update_from_vector(one)
        left = (predicted(known, q, v, a) - aim) / scale
        columns.append(left[keep])
    out = np.stack(columns, -1)
    return [out if np.ndim(x) == 2 else out[:, 0]], None, None


found, _ = sysid.optimize(initial, residual, verbose=False, max_iters=ITERATIONS)
cpu = time.process_time() - start
data.show(functools.partial(predicted, found), cpu)
