"""scikit-learn's histogram gradient boosting on (q, v, a), joint by joint."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.open.run import Run

TITLE = "gradient boosting"
PACKAGES = ("scikit-learn",)
SETTINGS = "scikit-learn's defaults, one regressor per joint, seed 0"


def features(run: Run) -> np.ndarray:
    return np.concatenate([run.q, run.v, run.a], -1)


def fit(arm: Any, runs: list[Run]) -> list[Any]:
    x = np.concatenate([features(run)[run.moving] for run in runs])
    torque = np.concatenate([run.torque[run.moving] for run in runs if run.torque is not None])
    return [HistGradientBoostingRegressor(random_state=0).fit(x, column) for column in torque.T]


def predict(model: list[Any], run: Run) -> np.ndarray:
    return np.stack([regressor.predict(features(run)) for regressor in model], -1)
