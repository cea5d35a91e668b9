"""How often 95 % intervals hold the truth, for white and coloured torque noise.

A UR5e with Coulomb and viscous friction, rotor inertia and offset, 40 s at 50 Hz; every fit has its
own noise, joints differ in level. Coverage is the share of (fit, base parameter) pairs inside.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.signal import lfilter

from benchmarks import Row
from taufit.estimation import Ols, Wls, fit_samples
from taufit.robot import read_robot
from taufit.signals.samples import Samples
from taufit.torque_model import TorqueModel

FITS = 500
LEVELS = np.array([1.0, 1.5, 0.8, 0.3, 0.2, 0.25])
COLOURS = {"white": 0.0, "AR(1) 0.8": 0.8, "AR(1) 0.95": 0.95}


def motion(n: int, rate: float, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Five harmonics of 0.1 Hz per joint, up to 1.2 rad/s."""
    rng = np.random.default_rng(seed)
    t, w = np.arange(n)[:, None] / rate, 0.2 * np.pi
    q, v, a = np.zeros((3, n, 6))
    for k in range(1, 6):
        x, y = rng.normal(size=(2, 6))
        q += (x * np.sin(k * w * t) - y * np.cos(k * w * t)) / (k * w)
        v += x * np.cos(k * w * t) + y * np.sin(k * w * t)
        a += k * w * (y * np.cos(k * w * t) - x * np.sin(k * w * t))
    gain = 1.2 / np.abs(v).max(axis=0)
    return q * gain, v * gain, a * gain


def truth(model: TorqueModel) -> np.ndarray:
    rng = np.random.default_rng(1)
    theta = model.nominal
    theta[60:] = rng.uniform(0.1, 1.0, len(theta) - 60)
    return theta


def coverage(estimator: object, rho: float, fits: int) -> float:
    """Share of base parameters inside their 95 % intervals."""
    model = TorqueModel(read_robot("ur5e"))
    q, v, a = motion(2000, 50.0)
    theta = truth(model)
    torque = model.with_values(theta).torque(q, v, a)
    inside = []
    for seed in range(fits):
        white = np.random.default_rng(seed).normal(size=(len(q) + 500, 6))
        noise = lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], white, axis=0)[500:] * LEVELS
        samples = Samples.from_arrays(q, v, a, torque + noise, rate_hz=50.0)
        estimate = fit_samples(model, samples, estimator)
        low, high = estimate.intervals.T
        true = estimate.base.mapping @ theta
        inside.append((low <= true) & (true <= high))
    return 100.0 * float(np.mean(inside))


def rows() -> Iterator[Row]:
    for colour, rho in COLOURS.items():
        for estimator in (Ols(), Wls()):
            value = coverage(estimator, rho, FITS)
            name = f"{type(estimator).__name__.upper()}, {colour} noise: 95 % intervals hold"
            yield Row(name, value, "%", ">= 93", f"{FITS} fits x 58 base parameters; wanted 93-97")
            yield Row(f"{name}, at most", value, "%", "<= 97", "the same figure")
