"""Servo model as MJCF: position actuators, friction that sticks, and a command filter beside it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.export.command_filter import CommandFilter
from taufit.export.consistency_check import require_feasible
from taufit.export.joint_frames import joint_frames, numbers, quaternion
from taufit.export.unique_names import unique_names
from taufit.servo.model import ServoModel
from taufit.servo.motion import LEAD_S, CommandedMotion
from taufit.servo.parameters import ServoParameters
from taufit.servo.score import ReplayScore, contact_rows, score_positions

TIMESTEP = 2e-3
_FILTER_STEP = 1e-3  # step of the servo's own reference, as in the roll-outs [s]
# MuJoCo's default friction (solimp 0.9) lets a loaded joint creep by milliradians per second.
_SOLIMP = "0.9999 0.9999"


def servo_mjcf(model: ServoModel) -> str:
    """MJCF text: links, position actuators with kp, joint damping, friction and armature.

    `ls_iterations` stays at MuJoCo's default of 50: with 20 stiff friction does not converge.
    Delay and acceleration limit have no MJCF element: `command_filter` applies them to commands.
    """
    robot, servo = model.robot, model.servo
    require_feasible(robot)
    frames, (tip,) = joint_frames(robot)
    joints = unique_names((link.joint for link in robot.links), "joint")
    bodies = unique_names((link.name for link in robot.links), "link", ("world",))
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true")
    ET.SubElement(
        root,
        "option",
        gravity=numbers(robot.gravity),
        timestep=repr(TIMESTEP),
        integrator="implicitfast",
        ls_iterations="50",
    )
    parent = ET.SubElement(root, "worldbody")
    for i, frame in enumerate(frames):
        t = frame.tensor
        parent = ET.SubElement(
            parent,
            "body",
            name=bodies[i],
            pos=numbers(frame.placement[:3, 3]),
            quat=numbers(quaternion(frame.placement[:3, :3])),
        )
        ET.SubElement(
            parent,
            "inertial",
            pos=numbers(frame.centre),
            mass=repr(float(frame.mass)),
            fullinertia=numbers([t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]),
        )
        ET.SubElement(
            parent,
            "joint",
            name=joints[i],
            axis=numbers(frame.axis),
            damping=repr(float(servo.damping[i])),
            frictionloss=repr(float(servo.coulomb[i])),
            armature=repr(float(servo.armature[i])),
            solimpfriction=_SOLIMP,
        )
    ET.SubElement(parent, "site", name="tip", pos=numbers(tip.pose[:3, 3]))
    actuators = ET.SubElement(root, "actuator")
    for name, kp in zip(joints, servo.kp, strict=True):
        ET.SubElement(actuators, "position", name=name, joint=name, kp=repr(float(kp)))
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n"


def command_filter(
    servo: ServoParameters, motion: CommandedMotion, step: float
) -> Float[Array, "n j"]:
    """Commands behind delay, offset and acceleration limit, one row per simulation step."""
    parts = max(1, round(step / _FILTER_STEP))
    substep, count = step / parts, parts * round(motion.seconds / step)
    grid = np.arange(len(motion.integral)) * motion.grid_step - LEAD_S
    edges = np.arange(count + 1)[:, None] * substep - servo.delay
    integral = np.column_stack(
        [np.interp(edges[:, j], grid, motion.integral[:, j]) for j in range(servo.joints)]
    )
    command = np.diff(integral, axis=0) / substep
    run = CommandFilter(command[0], substep, 0.0, servo.offset, servo.acceleration_limit)
    filtered = np.array([run(row) for row in command])
    return filtered.reshape(-1, parts, servo.joints).mean(axis=1)


def replay_in_mujoco(
    model: ServoModel, motion: CommandedMotion, *, filtered: bool = True, text: str | None = None
) -> Float[Array, "n j"]:
    """Positions of the exported model in MuJoCo, without floor.

    Args:
        model: Servo model.
        motion: Motion to replay.
        filtered: Whether commands pass `command_filter`.
        text: MJCF text in place of `servo_mjcf(model)`.
    """
    import mujoco
    from mujoco import rollout

    simulator = mujoco.MjModel.from_xml_string(servo_mjcf(model) if text is None else text)
    step = float(simulator.opt.timestep)
    servo = model.servo
    if not filtered:
        zero = np.zeros(servo.joints)
        servo = servo.replace(delay=zero - 0.5 * step, offset=zero, acceleration_limit=0.0)
    # MuJoCo applies the control at the start of its step: its mean is centred there.
    servo = servo.replace(delay=servo.delay + 0.5 * step)
    control = command_filter(servo, motion, step)
    size = mujoco.mj_stateSize(simulator, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.zeros((1, size))
    start[0, 1 : 1 + servo.joints] = motion.position[0]
    states, _ = rollout.rollout(simulator, mujoco.MjData(simulator), start, control[None])
    positions = np.vstack([motion.position[:1], states[0, :, 1 : 1 + servo.joints]])
    time, rows = np.arange(len(positions)) * step, np.arange(len(motion.position)) * motion.step
    return np.column_stack([np.interp(rows, time, column) for column in positions.T])


def score_in_mujoco(
    model: ServoModel, motions: Sequence[CommandedMotion], *, filtered: bool = True
) -> list[ReplayScore]:
    """Replay scores of the exported model in MuJoCo."""
    axes, text = model.axes, servo_mjcf(model)
    return [
        score_positions(
            motion,
            replay_in_mujoco(model, motion, filtered=filtered, text=text),
            contact_rows(axes, motion, model.floor),
        )
        for motion in motions
    ]
