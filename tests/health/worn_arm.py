"""Runs of a three-joint arm at any temperature and state of wear, without a simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording
from taufit.robot import Robot, read_robot
from taufit.signals import Samples
from taufit.terms.friction import Linear, TemperatureDependent

RATE = 50.0
REFERENCE = 30.0


def three_joints() -> Robot:
    """The first three joints of a UR5."""
    robot = read_robot("ur5")
    limits, drives = robot.limits, robot.drives
    return replace(
        robot,
        name="ur5-three",
        links=robot.links[:3],
        limits=replace(
            limits,
            **{k: getattr(limits, k)[:3] for k in ("lower", "upper", "velocity")},
            acceleration=limits.acceleration[:3],
            torque=limits.torque[:3],
        ),
        drives=replace(
            drives,
            gain=drives.gain[:3],
            gain_std=drives.gain_std[:3],
            gear_ratio=drives.gear_ratio[:3],
            torque_constant=drives.torque_constant[:3],
            coupling=np.eye(3),
        ),
        tip=np.eye(4),
        lengths=(),
        length_slopes=np.zeros((0, 0, 9)),
        urdf=None,
    )


def truth() -> TorqueModel:
    robot = three_joints()
    friction = TemperatureDependent(Linear(0.02), "linear", REFERENCE, ("viscous",))
    terms = np.array([[6.0, 10.0, -0.09], [8.0, 14.0, -0.25], [5.0, 9.0, -0.15]])
    values = np.concatenate([robot.parameters, [1.0, 1.0, 0.8], terms.ravel(), [0.1, -0.2, 0.3]])
    return TorqueModel(robot, friction).with_values(values)


def motion(seed: int = 0, seconds: float = 10.0):
    """A Fourier motion that starts and ends at rest, and stands still for half a second."""
    rng = np.random.default_rng((seed, 3))
    t = np.arange(int((seconds + 1.0) * RATE)) / RATE - 0.5
    phase = np.clip(t / seconds, 0.0, 1.0)
    slow = phase - np.sin(2 * np.pi * phase) / (2 * np.pi)
    q = np.zeros((len(t), 3))
    for j in range(3):
        for k in (2, 3, 5):
            angle = rng.uniform(0, 2 * np.pi)
            q[:, j] += rng.uniform(0.4, 1.0) / k * 1.5 * np.sin(2 * np.pi * k * slow + angle)
    q += [0.0, -1.2, 0.8]
    v = np.gradient(q, 1 / RATE, axis=0)
    return t + 0.5, q, v, np.gradient(v, 1 / RATE, axis=0)


def run(
    temperature,
    seed: int = 0,
    *,
    wear=(0.0, 0.0, 0.0),
    model: TorqueModel | None = None,
    path: int = 0,
    noise: float = 0.3,
    name: str = "run",
) -> Recording:
    """One recording at a joint temperature; `wear` is the relative rise of friction."""
    model = model or truth()
    rng = np.random.default_rng((seed, 4))
    t, q, v, a = motion(path)
    warm = (
        np.broadcast_to(np.asarray(temperature, float), (3,)) + np.linspace(0, 0.5, len(t))[:, None]
    )
    values = np.array(model.values)
    factor = (1.0 + np.asarray(wear)) * (1.0 + 0.003 * rng.normal(size=3))
    values[33:42] = (values[33:42].reshape(3, 3) * factor[:, None]).ravel()
    torque = model.with_values(values).torque(q, v, a, temperature=warm)
    torque += noise * rng.normal(size=torque.shape)
    return Recording(
        t, q, torque, velocity=v, temperature=np.round(warm, 1), meta={"file": name, "robot": "x"}
    )


def samples(temperature, seed: int = 0, **settings) -> Samples:
    """The same, conditioned by nobody: motion and torque as they are."""
    one = run(temperature, seed, **settings)
    _, q, v, a = motion(settings.get("path", 0))
    made = Samples.from_arrays(q, v, a, one.signal, rate_hz=RATE)
    moving = np.any(np.abs(v) > 1e-6, axis=1)
    return replace(
        made.with_channels(temperature=one.temperature),
        motion=moving,
        keep=made.keep & moving[:, None],
        names=(one.meta["file"],),
    )
