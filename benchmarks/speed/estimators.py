"""CPU time of the estimators, each from `Information`, and WLS against OLS on 22,500 x 52 rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks import Row
from taufit.dynamics import base_parameters
from taufit.estimators import ConsistentSdp, EstimationProblem, Ols, Pbpr, Tls, Wls
from taufit.fitting.fit_samples import solve_rows
from taufit.model.torque_model import TorqueModel
from taufit.regression import ArrayRows, SampleRows
from taufit.regression.regression import RowsInMemory
from taufit.regression.weights import Weights
from taufit.robot import read_robot
from taufit.signals.samples import Samples
from taufit.terms.friction import Linear


def cpu(work: Callable[[], object], repeats: int = 7) -> float:
    """Best CPU time of several [s]."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def noisy_samples(model: TorqueModel, n: int, noise: float = 0.2) -> Samples:
    """Random smooth motion with noise of a share of each torque's deviation."""
    joints = model.robot.joints
    rng = np.random.default_rng(0)
    t, w = np.arange(n)[:, None] / 100.0, 0.2 * np.pi
    q, v, a = np.zeros((3, n, joints))
    for k in range(1, 6):
        x, y = rng.normal(size=(2, joints))
        q += (x * np.sin(k * w * t) - y * np.cos(k * w * t)) / (k * w)
        v += x * np.cos(k * w * t) + y * np.sin(k * w * t)
        a += k * w * (y * np.cos(k * w * t) - x * np.sin(k * w * t))
    theta = model.nominal
    theta[10 * joints :] = rng.uniform(0.1, 1.0, len(theta) - 10 * joints)
    torque = model.with_values(theta).torque(q, v, a)
    torque += noise * torque.std(axis=0) * rng.normal(size=torque.shape)
    return Samples.from_arrays(q, v, a, torque)


def rows() -> Iterator[Row]:
    for name, target in (("ur10e", "<= 20"), ("panda", "<= 25")):
        model = TorqueModel(read_robot(name), friction=Linear(), offset=False)
        source = SampleRows(model, noisy_samples(model, 2000))
        problem = EstimationProblem(model, base_parameters(model))
        _, _, information = solve_rows(RowsInMemory(source, problem.base), model, Wls())
        for estimator in (Ols(), Tls(), ConsistentSdp(), ConsistentSdp(prior_weight=1.0), Pbpr()):
            spent = 1e3 * cpu(partial(estimator.solve, information, problem))
            label = type(estimator).__name__
            prior = getattr(estimator, "prior_weight", 0.0)
            consistent = label == "ConsistentSdp" and not prior
            yield Row(
                f"{label}{' with prior' if prior else ''}, {model.robot.joints} joints",
                spent,
                "ms",
                target if consistent else "",
                f"{name}, {len(model.names)} parameters, from information; 20 % noise",
            )
    rng = np.random.default_rng(1)
    names = tuple(f"p{i}" for i in range(52))
    regressor, torque = rng.normal(size=(3750, 6, 52)), rng.normal(size=(3750, 6))
    scale = Weights(rng.uniform(0.5, 2.0, 6))

    def ols() -> object:
        return ArrayRows(names, regressor, torque).information()

    def wls() -> object:
        return ArrayRows(names, regressor, torque).information(scale)

    plain = cpu(ols)
    yield Row("OLS on 22,500 x 52", 1e3 * plain, "ms", "", "to information")
    yield Row("WLS over OLS on 22,500 x 52", cpu(wls) / plain, "x", "<= 1.3", "weights given")
    full = cpu(lambda: _weighted_twice(names, regressor, torque)) / plain
    yield Row("WLS with weights found, over OLS", full, "x", "", "three rounds of weights")


def _weighted_twice(names: tuple[str, ...], regressor: np.ndarray, torque: np.ndarray) -> object:
    """Weights from residual variances, which the information of each joint knows already."""
    source = ArrayRows(names, regressor, torque)
    weights = Weights.equal(6)
    for _ in range(3):
        information = source.information(weights)
        theta = np.linalg.solve(information.factor, information.target)
        variance = np.array([part.cost(theta) / part.count for part in source.by_joint])
        weights = Weights(1.0 / np.sqrt(variance))
    return source.information(weights)
