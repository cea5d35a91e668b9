"""An arm whose motion and torque are known exactly, and how a logger would have seen it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording
from taufit.robot import read_robot


@dataclass(frozen=True)
class Truth:
    """A smooth Fourier motion of a UR10 with rest before and after, at any instant."""

    robot: object
    seed: int = 0
    duration: float = 24.0
    rest: float = 2.0
    harmonics: int = 6
    period: float = 10.0
    coulomb: float = 4.0

    def motion(self, time):
        """Position, velocity, acceleration: q(s(t)), s a ramp that starts and stops smoothly."""
        rng = np.random.default_rng(self.seed)
        k = np.arange(1, self.harmonics + 1)
        a = rng.normal(size=(6, self.harmonics)) / k
        b = rng.normal(size=(6, self.harmonics)) / k
        size = 0.9 / np.sqrt((a**2 + b**2).sum(1, keepdims=True))
        a, b = a * size, b * size
        moving = self.duration - 2 * self.rest
        s, ds, dds = _ramp(time - self.rest, moving, 1.5)
        w = 2 * np.pi * k / self.period
        angle = s[:, None, None] * w
        q = (a * np.sin(angle) + b * np.cos(angle)).sum(2)
        dq = ((a * np.cos(angle) - b * np.sin(angle)) * w).sum(2)
        ddq = -((a * np.sin(angle) + b * np.cos(angle)) * w**2).sum(2)
        offset = np.array([0.0, -1.5, 0.5, -1.5, 0.3, 0.0])
        velocity = dq * ds[:, None]
        return q + offset, velocity, ddq * ds[:, None] ** 2 + dq * dds[:, None]

    def torque(self, time):
        q, v, a = self.motion(time)
        friction = self.coulomb * np.tanh(v / 0.005) + 3.0 * v
        return inverse_dynamics(self.robot, q, v, a) + friction

    def recorded(
        self,
        *,
        rate_hz=100.0,
        jitter_s=0.0,
        delay_s=0.0,
        torque_noise=0.0,
        velocity_noise=0.0,
        position_noise=0.0,
        velocity=True,
        **fields,
    ):
        """The recording of a logger with these faults; torque comes `delay_s` late."""
        rng = np.random.default_rng(self.seed + 1)
        n = int(self.duration * rate_hz)
        time = np.arange(n) / rate_hz + jitter_s * rng.uniform(-1, 1, n)
        q, v, _ = self.motion(time)
        tau = self.torque(time - delay_s)
        return Recording(
            time=time + 100.0,
            position=q + position_noise * rng.normal(size=q.shape),
            velocity=v + velocity_noise * rng.normal(size=q.shape) if velocity else None,
            signal=tau + torque_noise * rng.normal(size=q.shape),
            meta={"file": "simulated.csv"},
            **fields,
        )


def _ramp(t, total, rise):
    """s(t) with s' going 0 -> 1 -> 0 by smooth (quintic) steps, and its two derivatives."""

    def step(x):
        x = np.clip(x, 0.0, 1.0)
        return (
            x**3 * (10 - 15 * x + 6 * x**2),
            30 * x**2 * (1 - x) ** 2,
            2.5 * x**4 - 3 * x**5 + x**6,
        )

    up, dup, area_up = step(t / rise)
    down, ddown, area_down = step((t - total + rise) / rise)
    speed = up - down
    s = rise * (area_up - area_down) + np.maximum(t - rise, 0.0) - np.maximum(t - total, 0.0)
    return s, speed, (dup - ddown) / rise


@pytest.fixture(scope="session")
def ur10():
    return read_robot("ur10")


@pytest.fixture
def truth(ur10):
    return Truth(ur10)


@pytest.fixture(scope="session")
def make_truth(ur10):
    return lambda **settings: Truth(ur10, **settings)
