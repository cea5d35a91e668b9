"""How often 95 % intervals hold the truth, for white and coloured torque noise.

A UR5e with Coulomb and viscous friction, rotor inertia and offset, 40 s at 50 Hz (or 20 s where it
says so); every fit has its own noise, joints differ in level. The regressor is the same in all
fits, so it is built and factorised once. Coverage is the share of (fit, base parameter) pairs
inside.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.signal import lfilter

from benchmarks import Row
from taufit.dynamics import base_parameters
from taufit.estimators import Estimator, Ols, Wls
from taufit.fitting.fit_samples import solve_rows
from taufit.model.torque_model import TorqueModel
from taufit.regression import ArrayRows, Information
from taufit.regression.covariance import base_covariance
from taufit.regression.estimate import NORMAL_95
from taufit.regression.regression import RowsInMemory
from taufit.regression.rows import Weights
from taufit.robot import read_robot

FITS = 120
LEVELS = np.array([1.0, 1.5, 0.8, 0.3, 0.2, 0.25])
COLOURS = {
    "white": (0.0, 40.0),
    "AR(1) 0.8": (0.8, 40.0),
    "AR(1) 0.95": (0.95, 40.0),
    "AR(1) 0.95, 20 s of": (0.95, 20.0),
}


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


class Redrawn(ArrayRows):
    """Rows whose regressor stays while the torque is drawn anew: one factorisation serves all.

    The triangle of each joint is Q'W and its right-hand side Q'y, so only Q'y changes.
    """

    def __init__(self, names: tuple[str, ...], rows: np.ndarray) -> None:
        super().__init__(names, rows, np.zeros(rows.shape[:2]))
        self._factors: dict[bytes, list[tuple[np.ndarray, np.ndarray]]] = {}

    def with_torque(self, torque: np.ndarray) -> Redrawn:
        self.torque = torque
        return self

    def information_by_joint(
        self, first: int, last: int, columns: np.ndarray, weights: Weights | None = None
    ) -> tuple[Information, ...]:
        if weights is not None or last - first < len(self):
            return super().information_by_joint(first, last, columns, weights)
        names = tuple(self.names[c] for c in columns)
        return tuple(
            self._information(names, q[: len(self)], upper, y)
            for (q, upper), y in zip(self._factored(columns), self.torque.T, strict=True)
        )

    def _factored(self, columns: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        key = columns.tobytes()
        if key not in self._factors:
            more = ((0, len(columns)), (0, 0))
            self._factors[key] = [
                np.linalg.qr(np.pad(self.rows[:, i][:, columns], more)) for i in range(self.joints)
            ]
        return self._factors[key]

    @staticmethod
    def _information(
        names: tuple[str, ...], q: np.ndarray, upper: np.ndarray, y: np.ndarray
    ) -> Information:
        target = q.T @ y
        left = y - q @ target
        return Information(names, upper, target, float(left @ left), len(y))


def coverage(estimator: Estimator, rho: float, fits: int, seconds: float = 40.0) -> float:
    """Share of base parameters inside their 95 % intervals."""
    model = TorqueModel(read_robot("ur5e"))
    base = base_parameters(model)
    q, v, a = motion(round(50.0 * seconds), 50.0)
    theta = truth(model)
    rows = Redrawn(model.names, model.regressor(q, v, a))
    clean = rows.rows @ theta
    true = base.mapping @ theta
    inside = []
    for seed in range(fits):
        white = np.random.default_rng(seed).normal(size=(len(q) + 500, 6))
        noise = lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], white, axis=0)[500:] * LEVELS
        rows.with_torque(clean + noise)
        regression = RowsInMemory(rows, base)
        solution, weights, information = solve_rows(regression, model, estimator)
        covariance = base_covariance(
            regression, weights, information, solution.values, estimator.weighting
        )
        error = base.mapping @ solution.values - true
        inside.append(np.abs(error) <= NORMAL_95 * np.sqrt(np.diag(covariance)))
    return 100.0 * float(np.mean(inside))


def rows() -> Iterator[Row]:
    for colour, (rho, seconds) in COLOURS.items():
        for estimator in (Ols(), Wls()):
            value = coverage(estimator, rho, FITS, seconds)
            name = f"{type(estimator).__name__.upper()}, {colour} noise: 95 % intervals hold"
            yield Row(name, value, "%", ">= 93", f"{FITS} fits x 58 base parameters; wanted 93-97")
            yield Row(f"{name}, at most", value, "%", "<= 97", "the same figure")
