"""MuJoCo's sysid toolbox: its parameters and optimiser on the torque of MuJoCo's inverse dynamics.

Each body has a pseudo-inertia (10 parameters), each joint armature, damping, frictionloss and a
constant torque. Residuals are those of the torque at SAMPLES samples in motion, scaled by each
joint's standard deviation, so that what is minimised is what is scored. ITERATIONS steps bound the
time of a cell.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout, sysid

from benchmarks.open.run import Run

TITLE = "MuJoCo sysid 4.0"
PACKAGES = ("mujoco[sysid]==4.0.0",)
SETTINGS = (
    "pseudo-inertias, armature, damping, frictionloss, bias; 20 iterations on 300 samples; "
    "servos: roll-outs of 20 s of each run, 15 iterations"
)
ITERATIONS = 20
SAMPLES = 300
# Roll-outs of servo arms: seconds of each run, steps of the optimiser, step of the simulation [s].
SERVO_S = 20.0
SERVO_ITERATIONS = 15
SERVO_STEP_S = 0.005
# Published values of the SO-101's MuJoCo model: where the search starts.
SERVO_START = {"kp": 998.22, "damping": 3.33, "frictionloss": 0.052, "armature": 0.028}


@dataclass(frozen=True, slots=True, eq=False)
class SysidModel:
    """Fitted parameters and the specification that they change."""

    spec: mujoco.MjSpec
    parameters: sysid.ParameterDict

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Inverse dynamics and constant torque."""
        model = sysid.apply_param_modifiers(self.parameters, self.spec)
        return inverse_dynamics(model, q, v, a) + self.parameters["bias"].value


def fit(arm: Any, runs: list[Run]) -> SysidModel:
    parts = [np.stack([r.q, r.v, r.a, r.torque])[:, r.moving] for r in runs if r.torque is not None]
    samples = np.concatenate(parts, 1)
    q, v, a, aim = samples[:, :: max(1, samples.shape[1] // SAMPLES)]
    scale = np.maximum(aim.std(0), 1e-3)
    spec = described(arm)
    initial = start_values(spec, scale)

    def residual(x: np.ndarray, known: sysid.ParameterDict) -> tuple[list[np.ndarray], None, None]:
        """One column per parameter set, as its optimiser asks for them."""
        columns = []
        for values in np.atleast_2d(np.asarray(x).T):
            known.update_from_vector(values)
            columns.append(((SysidModel(spec, known).torque(q, v, a) - aim) / scale).ravel())
        out = np.stack(columns, -1)
        return [out if np.ndim(x) == 2 else out[:, 0]], None, None

    best, _ = sysid.optimize(initial, residual, verbose=False, max_iters=ITERATIONS)
    return SysidModel(spec, best)


def predict(model: SysidModel, run: Run) -> np.ndarray:
    return model.torque(run.q, run.v, run.a)


def export(model: SysidModel, arm: Any, folder: Path) -> str:
    """MJCF, without the constant torque, for which it has no place."""
    sysid.apply_param_modifiers(model.parameters, model.spec)
    file = folder / "arm.xml"
    file.write_text(model.spec.to_xml())
    return str(file)


def described(arm: Any) -> mujoco.MjSpec:
    """The arm as MuJoCo has it: one body and joint per axis."""

    def text(values: np.ndarray) -> str:
        return " ".join(f"{value:.12g}" for value in values)

    lines = []
    for i, (pose, screw, theta) in enumerate(
        zip(arm["placements"], arm["screws"], arm["parameters"], strict=True)
    ):
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, pose[:3, :3].ravel())
        mass = max(theta[0], 0.1)
        c = theta[1:4] / mass
        xx, xy, yy, xz, yz, zz = theta[4:]
        about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        about -= mass * (c @ c * np.eye(3) - np.outer(c, c))
        if np.linalg.eigvalsh(about)[0] <= 0.0:  # a description without inertia
            about = 1e-3 * mass * np.eye(3)
        full = about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        w, u = screw[:3], screw[3:]
        lines += [
            f'<body name="link_{i + 1}" pos="{text(pose[:3, 3])}" quat="{text(quaternion)}">',
            f'<inertial mass="{mass}" pos="{text(c)}" fullinertia="{text(full)}"/>',
            f'<joint name="joint_{i + 1}" axis="{text(w)}" pos="{text(np.cross(w, u))}"/>',
        ]
    tree = "".join(lines) + "</body>" * len(arm["screws"])
    gravity = text(arm["gravity"])
    return mujoco.MjSpec.from_string(
        f'<mujoco><compiler balanceinertia="true"/><option gravity="{gravity}"/>'
        f"<worldbody>{tree}</worldbody></mujoco>"
    )


def set_joints(attribute: str, spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    for joint, value in zip(spec.joints, parameter.value, strict=True):
        old = getattr(joint, attribute)
        setattr(joint, attribute, value if np.ndim(old) == 0 else [value, *np.ravel(old)[1:]])


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


def start_values(spec: mujoco.MjSpec, scale: np.ndarray) -> sysid.ParameterDict:
    """All parameters, at the description's values where it has some."""
    model = spec.compile()
    out = sysid.ParameterDict()
    for i in range(len(scale)):
        name = f"link_{i + 1}"
        change = functools.partial(set_body, name)
        kind = sysid.InertiaType.Pseudo
        out.add(sysid.body_inertia_param(spec, model, name, kind, modifier=change))
    unit = np.ones(len(scale))
    for attribute, start, most in (
        ("armature", 0.1 * unit, 20.0 * unit),
        ("damping", 0.1 * scale, 5.0 * scale),
        ("frictionloss", 0.1 * scale, 2.0 * scale),
    ):
        change = functools.partial(set_joints, attribute)
        out.add(sysid.Parameter(attribute, start, 0.0 * unit, most, modifier=change))
    out.add(sysid.Parameter("bias", 0.0 * unit, -scale, scale))
    return out


def inverse_dynamics(
    model: mujoco.MjModel, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    memory = mujoco.MjData(model)
    out = np.empty_like(q)
    for k in range(len(q)):
        memory.qpos[:], memory.qvel[:], memory.qacc[:] = q[k], v[k], a[k]
        mujoco.mj_inverse(model, memory)
        out[k] = memory.qfrc_inverse
    return out


def fit_servo(arm: Any, runs: list[Run]) -> SysidModel:
    """Gain, damping, frictionloss and armature of every joint, from roll-outs."""
    spec = servo_spec(arm)
    count = len(arm["screws"])
    unit = np.ones(count)
    initial = sysid.ParameterDict()
    for name, start in SERVO_START.items():
        change = set_gains if name == "kp" else functools.partial(set_joints, name)
        most = 10.0 * start * unit
        initial.add(
            sysid.Parameter(name, start * unit, 0.005 * start * unit, most, modifier=change)
        )
    parts = [first_seconds(run) for run in runs]

    def residual(x: np.ndarray, known: sysid.ParameterDict) -> tuple[list[np.ndarray], None, None]:
        columns = []
        for values in np.atleast_2d(np.asarray(x).T):
            known.update_from_vector(values)
            model = SysidModel(spec, known)
            left = [replay(model, run) - run.recorded_position[:, :count] for run in parts]
            columns.append(np.concatenate(left).ravel())
        out = np.stack(columns, -1)
        return [out if np.ndim(x) == 2 else out[:, 0]], None, None

    best, _ = sysid.optimize(initial, residual, verbose=False, max_iters=SERVO_ITERATIONS)
    return SysidModel(spec, best)


def replay(model: SysidModel, run: Run) -> np.ndarray:
    """Positions at recorded times, from rest in the first pose."""
    compiled = sysid.apply_param_modifiers(model.parameters, model.spec)
    memory = mujoco.MjData(compiled)
    count = compiled.nv
    assert run.recorded_command is not None
    time = run.recorded_time - run.recorded_time[0]
    steps = np.arange(0.0, time[-1] + SERVO_STEP_S, SERVO_STEP_S)
    command = np.stack([np.interp(steps, time, c) for c in run.recorded_command.T[:count]], 1)
    memory.qpos[:] = run.recorded_position[0, :count]
    state = np.empty(mujoco.mj_stateSize(compiled, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(compiled, memory, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, _ = rollout.rollout(compiled, memory, state[None], command[None])
    start = run.recorded_position[:1, :count]
    positions = np.concatenate([start, states[0, :, 1 : 1 + count]])[:-1]
    return np.stack([np.interp(time, steps, column) for column in positions.T], 1)


def first_seconds(run: Run) -> Run:
    """Beginning of a run."""
    rows = run.recorded_time < run.recorded_time[0] + SERVO_S
    names = ("recorded_time", "recorded_position", "recorded_command")
    return replace(run, **{name: getattr(run, name)[rows] for name in names})


def servo_spec(arm: Any) -> mujoco.MjSpec:
    """The arm with a position servo at every joint."""
    spec = described(arm)
    spec.option.timestep = SERVO_STEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for joint in spec.joints:
        actuator = spec.add_actuator(name=f"{joint.name}_servo", target=joint.name)
        actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
        actuator.set_to_position(kp=SERVO_START["kp"])
    return spec


def set_gains(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    for actuator, value in zip(spec.actuators, parameter.value, strict=True):
        actuator.set_to_position(kp=float(value))
