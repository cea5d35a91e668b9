"""Description of the robot as it is, without any fit; a servo arm follows its commands exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio

from benchmarks.open.run import Run
from benchmarks.pinocchio_arm import pinocchio_model

TITLE = "description, no fit"
PACKAGES = ("pin",)
SETTINGS = "masses and inertias of the URDF or DH file, no friction"


def fit(arm: Any, runs: list[Run]) -> Any:
    if not np.any(arm["parameters"]):
        raise ValueError("the description has no masses")
    return pinocchio_model(arm)


def predict(model: Any, run: Run) -> np.ndarray:
    memory = model.createData()
    rows = zip(run.q, run.v, run.a, strict=True)
    return np.array([pinocchio.rnea(model, memory, *row) for row in rows])


def fit_servo(arm: Any, runs: list[Run]) -> None:
    return None


def replay(model: None, run: Run) -> np.ndarray:
    assert run.recorded_command is not None
    return run.recorded_command
