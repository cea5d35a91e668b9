"""Simulated servo arms with known parameters."""

from __future__ import annotations

import numpy as np

import taufit
from taufit.recording import Recording
from taufit.servo import CommandedMotion, Floor, ServoParameters
from taufit.servo.joint_axes import JointAxes
from taufit.servo.rollout import replay

STEP = 2 * np.pi / 4096


def truth(joints=5, limit=0.0, delay=0.02):
    ones = np.ones(joints)
    return ServoParameters(
        kp=11.0 * ones,
        damping=0.7 * ones,
        coulomb=np.linspace(0.1, 0.3, joints),
        armature=0.006 * ones,
        offset=-0.5 * STEP * ones,
        delay=delay * ones,
        acceleration_limit=limit,
    )


def commands(seed, joints=5, seconds=40.0, rate=50.0, scale=0.5):
    """Sums of sinusoids around a pose with gravity, from rest."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 1.0 / rate)
    out = np.zeros((len(time), joints))
    for frequency in (0.07, 0.19, 0.41, 0.9):
        amplitude = scale * rng.uniform(0.3, 1.0, joints) / (1 + 4 * frequency)
        phase = rng.uniform(0, 2 * np.pi, joints)
        out += amplitude * (np.sin(2 * np.pi * frequency * time[:, None] + phase) - np.sin(phase))
    return time, out * np.minimum(time / 2.0, 1.0)[:, None]


def measure(robot, servo, time, command, floor=None, step=STEP, mass=None):
    """Recording of a simulated arm: encoder steps, fine integration."""
    axes = JointAxes.of_robot(robot)
    motion = CommandedMotion.from_arrays(time, command, np.zeros_like(command))
    motion.position[0] = command[0]
    position = replay(axes, servo, motion, floor, max_step=1e-3)
    return np.floor(position / step) * step


def recording(seed, servo=None, floor=None, name="run", **settings):
    """Recording of the SO-101 with known servos."""
    robot = taufit.read_robot("so101")
    time, command = commands(seed, **settings)
    position = measure(robot, servo or truth(), time, command, floor)
    return Recording(
        time,
        position,
        np.zeros_like(position),
        torque_source="none",
        commanded_position=command,
        meta={"name": f"{name}_{seed}"},
    )


__all__ = ["Floor", "commands", "measure", "recording", "truth"]
