"""scikit-learn's histogram gradient boosting on (q, v, a), joint by joint."""

from __future__ import annotations

import time

import numpy as np
from peer_scripts.common import given
from sklearn.ensemble import HistGradientBoostingRegressor

data = given()


def features(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.concatenate([q, v, a], -1)


start = time.process_time()
torque = data.runs[0][3]
x = features(*data.runs[0][:3])
models = [
    HistGradientBoostingRegressor(random_state=0).fit(x, torque[:, j])
    for j in range(torque.shape[1])
]
cpu = time.process_time() - start
data.show(lambda q, v, a: np.stack([m.predict(features(q, v, a)) for m in models], -1), cpu)
