"""FIGAROH's regressor with its own friction terms, weighted least squares."""

from __future__ import annotations

import time
import types

import numpy as np
from figaroh.tools.regressor import build_regressor_basic
from peer_scripts.common import given, weighted
from pinocchio_arm import pinocchio_model

data = given()
model = pinocchio_model(data.arm)
robot = types.SimpleNamespace(model=model, data=model.createData())
settings = {
    "has_friction": True,
    "has_actuator_inertia": True,
    "has_joint_offset": True,
    "is_joint_torques": True,
    "act_idxv": list(range(model.nv)),
}


def rows(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    whole = build_regressor_basic(robot, q, v, a, settings)
    return whole.reshape(model.nv, len(q), -1).transpose(1, 0, 2)


start = time.process_time()
theta = weighted(rows(*data.runs[0][:3]), data.runs[0][3], data.keep)
cpu = time.process_time() - start
data.show(lambda q, v, a: rows(q, v, a) @ theta, cpu)
