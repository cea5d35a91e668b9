"""A plain script: Pinocchio's regressor, tanh(v / 0.02), viscous, rotor, offset; weighted."""

from __future__ import annotations

import time

import numpy as np
import pinocchio
from peer_scripts.common import beside, given, weighted
from pinocchio_arm import pinocchio_model

data = given()
model = pinocchio_model(data.arm)
memory = model.createData()


def rows(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    links = [
        pinocchio.computeJointTorqueRegressor(model, memory, *x).copy()
        for x in zip(q, v, a, strict=True)
    ]
    own = np.stack([np.tanh(v / 0.02), v, a, np.ones_like(v)], -1)
    return beside(np.stack(links), own)


start = time.process_time()
theta = weighted(rows(*data.runs[0][:3]), data.runs[0][3], data.keep)
cpu = time.process_time() - start
data.show(lambda q, v, a: rows(q, v, a) @ theta, cpu)
