"""Friction curves from forward/backward pairs: how often each method finds the optimum.

Speeds are those of the Franka friction tests (0.1 to 30 deg/s); loads 0 to 40 N m, noise 0.03 N m,
40 pairs per speed; random truths over a decade in every shape.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import Row
from taufit.calibration import FrictionPairs, fit_friction
from taufit.calibration.friction_curve import refine_shape
from taufit.terms import TermInput
from taufit.terms.friction import Stribeck, StribeckLoad

SPEEDS = np.radians(
    [0.1, 0.2, 0.4, 0.5, 0.8, 1, 1.2, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5]
    + [5, 6, 8, 10, 12, 15, 16, 20, 25, 30]
)
SETS = 50
NOISE = 0.03


def simulated(seed: int, loaded: bool) -> tuple[FrictionPairs, np.ndarray]:
    """One joint's pairs and the shape behind them."""
    rng = np.random.default_rng(seed)
    model = StribeckLoad() if loaded else Stribeck()
    velocity = np.repeat(SPEEDS, 40)
    load = rng.uniform(0.5, 40.0, velocity.shape)
    shape = [0.03 * np.exp(rng.uniform(-1, 1)), 0.05 * np.exp(rng.uniform(-1, 1))]
    terms = [rng.uniform(0.2, 0.8), rng.uniform(-0.2, 0.5), rng.uniform(-0.3, 0.3)]
    terms += [rng.uniform(0.3, 1.0), rng.uniform(0.5, 1.5)]
    if loaded:
        shape.append(0.004 * np.exp(rng.uniform(-1, 1)))
        terms += [rng.uniform(0.005, 0.03), rng.uniform(0.1, 0.5)]
    torque = model.columns(TermInput(velocity, load=load), np.array(shape)) @ np.array(terms)
    noisy = torque + NOISE * rng.normal(size=torque.shape)
    return FrictionPairs(velocity, noisy, load), np.array(shape)


def rows() -> Iterator[Row]:
    for loaded in (False, True):
        model = StribeckLoad() if loaded else Stribeck()
        name = "Stribeck with load" if loaded else "Stribeck"
        live = np.ones(len(model.parameters), bool)
        hits = {"variable_projection": 0, "levenberg_marquardt": 0}
        seconds = 0.0
        for seed in range(SETS):
            pairs, shape = simulated(seed, loaded)
            found = {}
            for method in hits:
                start = time.process_time()
                found[method] = fit_friction(pairs, model, method=method, drop=False).cost
                if method == "variable_projection":
                    seconds += time.process_time() - start
            # The truth is as good a start as there is: its valley counts as the optimum.
            best = min(refine_shape(pairs, model, shape, live)[1], *found.values())
            for method, cost in found.items():
                hits[method] += cost <= best * (1 + 1e-5)
        yield Row(
            f"{name}: optimum found by variable projection",
            100 * hits["variable_projection"] / SETS,
            "%",
            ">= 98",
            f"{SETS} random truths, 28 speeds x 40 pairs, {seconds / SETS:.2f} CPU s each",
        )
        yield Row(
            f"{name}: by Levenberg-Marquardt on all parameters",
            100 * hits["levenberg_marquardt"] / SETS,
            "%",
            "",
            "one start in the middle of the grid",
        )
