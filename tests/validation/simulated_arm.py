"""Recordings of an arm known exactly: links unlike the nominal ones, friction with memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording
from taufit.robot import Robot
from taufit.robot.inertia import from_pseudo_inertia, pseudo_inertia
from taufit.terms.friction import Presliding

RATE = 100.0
FRICTION = Presliding()


def true_robot(robot: Robot, seed: int = 0, spread: float = 0.15) -> Robot:
    """The arm with every link's mass distribution stretched by about `spread`."""
    rng = np.random.default_rng(seed)
    rows = robot.parameters.reshape(-1, 10)
    out = []
    for row in rows:
        turn = np.eye(4) + spread * rng.normal(size=(4, 4)) * 0.5
        turn[3, :3] = 0.0
        out.append(from_pseudo_inertia(turn @ pseudo_inertia(row) @ turn.T))
    return robot.with_parameters(np.concatenate(out))


def true_model(robot: Robot, *, load: float = 0.05, seed: int = 0) -> TorqueModel:
    """Links, rotors, friction and offsets, all physically possible."""
    joints = robot.joints
    rng = np.random.default_rng((seed, 7))
    size = np.linspace(1.0, 0.2, joints)
    arm = true_robot(robot, seed)
    friction = []
    for j in range(joints):
        values = {
            "coulomb": 5.0 * size[j],
            "presliding_3": 2.0 * size[j],
            "viscous": 4.0 * size[j],
            "viscous2": 0.5 * size[j],
            "load": load,
        }
        friction += [values.get(term.name, 0.0) for term in FRICTION.parameters]
    values = np.concatenate(
        [arm.parameters, 0.5 * size**2, friction, 0.3 * size * rng.normal(size=joints)]
    )
    return TorqueModel(arm, FRICTION).with_values(values)


def motion(joints: int, seconds: float, seed: int, amplitude: float = 0.9):
    """Position, velocity and acceleration of a random Fourier motion that starts at rest."""
    rng = np.random.default_rng((seed, 1))
    t = np.arange(int(seconds * RATE)) / RATE
    ramp = np.clip(t / 1.0, 0.0, 1.0)
    ramp = ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp**2)
    q = np.zeros((len(t), joints))
    for j in range(joints):
        for harmonic in range(1, 6):
            phase = rng.uniform(0, 2 * np.pi)
            q[:, j] += (
                np.sin(2 * np.pi * 0.08 * harmonic * t + phase) * rng.uniform(0.3, 1.0) / (harmonic)
            )
        q[:, j] *= amplitude
    start = np.linspace(-1.2, 0.6, joints)
    q = start + ramp[:, None] * q
    v = np.gradient(q, 1.0 / RATE, axis=0)
    a = np.gradient(v, 1.0 / RATE, axis=0)
    return t, q, v, a


def recording(
    model: TorqueModel,
    seconds: float = 25.0,
    seed: int = 0,
    *,
    noise: float = 0.02,
    name: str = "run",
    amplitude: float = 0.9,
) -> Recording:
    """What a logger would have written: `noise` is relative to each joint's torque."""
    t, q, v, a = motion(model.robot.joints, seconds, seed, amplitude)
    rigid = model.structure.regressor(q, v, a, load=np.zeros_like(q))[
        ..., : 10 * model.robot.joints
    ]
    rigid = rigid @ model.robot.parameters
    rest = model.structure.joint_columns(v, a, load=rigid, travel=v / RATE)
    torque = rigid + rest @ model.values[10 * model.robot.joints :]
    rng = np.random.default_rng((seed, 2))
    torque = torque + noise * torque.std(axis=0) * rng.normal(size=torque.shape)
    return Recording(t, q, torque, velocity=v, meta={"file": name})


def in_amperes(one: Recording, gain, *, known: bool) -> Recording:
    """The same run as motor current, with or without the gain it takes."""
    gain = np.asarray(gain, float)
    return replace(
        one,
        signal=one.signal / gain,
        signal_unit="A",
        torque_source="motor_current",
        gain=gain if known else None,
    )
