"""Friction of one joint from runs at constant velocity, forwards and backwards.

Run it: python examples/04_friction_test.py
The runs are simulated here; with a robot, record them and use `pairs_in(samples, joint)`.
"""

from __future__ import annotations

import numpy as np

from taufit.calibration import FrictionPairs, fit_friction, pairs_of
from taufit.terms import TermInput
from taufit.terms.friction import Stribeck, StribeckLoad

SPEEDS = np.radians([0.1, 0.2, 0.5, 1, 2, 3, 5, 8, 12, 20, 30])


def drive(speed: float, payload: float, rng: np.random.Generator) -> FrictionPairs:
    """One interval of the elbow at one speed, both ways, with a payload in the hand."""
    true, shape = StribeckLoad(), np.array([0.02, 0.06, 0.004])
    terms = np.array([0.5, 0.0, 0.0, 0.6, 1.0, 0.02, 0.2])
    q = np.linspace(-0.5, 0.5, 300)
    load = (12.0 + 5.0 * payload) * np.cos(q)
    runs = []
    for direction in (1.0, -1.0):
        v = np.full(len(q), direction * speed)
        friction = true.columns(TermInput(v, load=load), shape) @ terms
        noise = 0.05 * rng.normal(size=len(q))
        runs.append((q, v, load + friction + noise))
    return pairs_of(*runs, joint=4)


def main() -> None:
    rng = np.random.default_rng(0)
    parts = [drive(speed, payload, rng) for speed in SPEEDS for payload in (0.0, 1.5, 3.0)]
    pairs = FrictionPairs(
        np.concatenate([one.velocity for one in parts]),
        np.concatenate([one.torque for one in parts]),
        np.concatenate([one.load for one in parts]),
        joint=4,
    )
    for model in (Stribeck(), StribeckLoad()):
        fit = fit_friction(pairs, model)
        print(f"{type(model).__name__}: {fit.rms:.4f} N m left, correlation {fit.correlation:.4f}")
        for term, value, std in zip(
            model.parameters, fit.coefficients, fit.coefficient_std, strict=True
        ):
            print(f"  {term.name:<12} {value:8.4f} +- {1.96 * std:.4f} {term.unit}")
        for shape, value in zip(model.shapes, fit.shape, strict=True):
            print(f"  {shape.name:<18} {value:.4f} {shape.unit}")
        for text in fit.warnings:
            print(f"  note: {text}")


if __name__ == "__main__":
    main()
