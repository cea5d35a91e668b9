"""Plain script: Pinocchio's regressor, tanh(v / 0.02), viscous, rotor, offset; weighted."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.open.linear_fit import LinearModel, beside, fit_linear
from benchmarks.open.run import Run
from benchmarks.pinocchio_arm import link_columns

TITLE = "plain script"
PACKAGES = ("pin",)
SETTINGS = "weighted least squares; payload by the last link's columns"


def fit(arm: Any, runs: list[Run]) -> LinearModel:
    links = link_columns(arm)

    def rows(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return beside(links(q, v, a), np.stack([np.tanh(v / 0.02), v, a, np.ones_like(v)], -1))

    return fit_linear(rows, runs, len(arm["screws"]))


def predict(model: LinearModel, run: Run) -> np.ndarray:
    return model.predict(run)


def payload_mass(model: LinearModel, run: Run) -> float:
    return model.payload_mass(run)
