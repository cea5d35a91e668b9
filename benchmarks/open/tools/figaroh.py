"""FIGAROH's regressor with its own friction terms, weighted least squares."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
from figaroh.tools.regressor import build_regressor_basic

from benchmarks.open.linear_fit import LinearModel, fit_linear
from benchmarks.open.run import Run
from benchmarks.pinocchio_arm import pinocchio_model

TITLE = "FIGAROH 1.0.2"
PACKAGES = ("figaroh==1.0.2",)
SETTINGS = "sign(v), v, rotor inertia and offset switched on; weighted least squares"
REASONS = {"export": "its URDF writer belongs to a class that needs a configuration per robot"}


def fit(arm: Any, runs: list[Run]) -> LinearModel:
    model = pinocchio_model(arm)
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

    return fit_linear(rows, runs, model.nv)


def predict(model: LinearModel, run: Run) -> np.ndarray:
    return model.predict(run)
