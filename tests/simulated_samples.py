"""Samples of a small arm with any friction model, and the truth behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.dynamics import inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.robot import from_dh
from taufit.robot.inertia import from_centre_of_mass
from taufit.signals.samples import Samples
from taufit.terms import start_shape
from taufit.terms.friction import StribeckLoadSmooth

ROWS = np.array(
    [[0, 0.3, 0.0, np.pi / 2], [0.1, 0.1, 0.4, 0], [0, 0.05, 0.1, -np.pi / 2], [0, 0.3, 0, 0.4]]
)
RATE = 50.0


def arm(seed: int = 0, joints: int = 4):
    rng = np.random.default_rng(seed)
    links = [
        from_centre_of_mass(m, rng.normal(size=3) * 0.05, np.diag(rng.uniform(0.02, 0.03, 3)))
        for m in (6.0, 4.0, 2.0, 1.0)[:joints]
    ]
    return from_dh(ROWS[:joints], parameters=np.array(links), name="test arm")


def fourier(n: int, speed: float, seed: int, joints: int = 4):
    """A lively motion in its first half and one a tenth as fast in its second."""
    rng = np.random.default_rng(seed)
    parts = []
    for share, w in ((1.0, 2 * np.pi * 0.1), (0.1, 2 * np.pi * 0.05)):
        t = np.arange(n // 2)[:, None] / RATE
        q, v, a = np.zeros((3, n // 2, joints))
        for k in range(1, 6):
            x, y = rng.normal(size=(2, joints))
            q += (x * np.sin(k * w * t) - y * np.cos(k * w * t)) / (k * w)
            v += x * np.cos(k * w * t) + y * np.sin(k * w * t)
            a += k * w * (y * np.cos(k * w * t) - x * np.sin(k * w * t))
        gain = share * speed / np.abs(v).max(axis=0)
        parts.append((q * gain, v * gain, a * gain))
    return tuple(np.concatenate(both) for both in zip(*parts, strict=True))


def simulated(friction, *, seed: int = 0, n: int = 1200, noise: float = 0.0, joints: int = 4):
    """A model, its true parameters and shape, and samples of it."""
    rng = np.random.default_rng(seed)
    model = TorqueModel(arm(joints=joints), friction=friction)
    shape = None
    if friction.shapes:
        spread = rng.uniform(-0.3, 0.3, (joints, len(friction.shapes)))
        shape = start_shape(friction) * np.exp(spread)
    theta = model.nominal
    for i, name in enumerate(model.names):
        term = name.rsplit(".", 1)[1]
        if name.startswith("joint"):
            theta[i] = {
                "rotor": 0.0,
                "offset": rng.normal() * 0.5,
                "load": rng.uniform(0.02, 0.06),
                "viscous2": rng.uniform(-0.1, 0.1),
                "viscous3": rng.uniform(-0.1, 0.1),
                "viscous_per_degree": -0.01,
            }.get(term, rng.uniform(0.3, 1.0))
    if isinstance(friction, StribeckLoadSmooth):
        theta[[name.endswith("load_static") for name in model.names]] = 0.05
    q, v, a = fourier(n, 1.2, seed, joints)
    half = np.arange(n) // (n // 2)
    temperature = 25 + 15 * np.sin(np.arange(n)[:, None] / 200 + np.arange(joints))
    true = replace(model, shape=shape).with_values(theta)
    rigid = true.robot
    load = inverse_dynamics(rigid, q, v, a)
    torque = np.empty_like(q)
    for k in (0, 1):
        at = half == k
        torque[at] = (
            true.structure.regressor(
                q[at], v[at], a[at], load=load[at], temperature=temperature[at], step=1.0 / RATE
            )
            @ theta
        )
    torque = torque + noise * rng.normal(size=torque.shape)
    samples = replace(
        Samples.from_arrays(q, v, a, torque, rate_hz=RATE).with_channels(temperature=temperature),
        run=half,
        names=("fast", "slow"),
    )
    return model, theta, shape, samples
