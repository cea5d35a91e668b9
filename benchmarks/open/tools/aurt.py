"""AURT's joint dynamics (sign(v) and viscous powers) and its two rounds of least squares.

The links' columns are Pinocchio's, which span the same space as AURT's symbolic ones: compiling
those for six joints does not end within the time of a cell, which is what its export shows.
"""

from __future__ import annotations

import logging
import math
import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import sympy
from aurt.caching import PersistentPickleCache
from aurt.data_processing import ModifiedDH
from aurt.joint_dynamics import JointDynamics
from aurt.rigid_body_dynamics import RigidBodyDynamics

from benchmarks.open.linear_fit import LinearModel, beside, fit_linear
from benchmarks.open.run import Run
from benchmarks.pinocchio_arm import link_columns

TITLE = "AURT 0.0.4"
PACKAGES = ("aurt==0.0.4", "pin")
SETTINGS = "its friction and two rounds of weights beside Pinocchio's columns"
# The UR10e's modified DH table, as Universal Robots publishes it: d, a and alpha before the joint.
D = (0.0, 0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655)
A = (0.0, 0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0)
ALPHA = (0.0, math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0)
COMPILE_S = 60


def fit(arm: Any, runs: list[Run]) -> LinearModel:
    links, count = link_columns(arm), len(arm["screws"])
    cache = PersistentPickleCache(tempfile.mkdtemp(dir=Path.cwd()))
    logger = logging.getLogger("aurt")
    joints = JointDynamics(logger, cache, count, load_model="none", viscous_powers=[1])

    def rows(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        # Its states are velocity and load, joint by joint; without load-dependent friction no load.
        states = np.stack([v.T, np.zeros_like(v.T)], 1).reshape(-1, len(v))
        columns = [
            joints.observation_matrix_joint_parameters_for_joint(j, j, states) for j in range(count)
        ]
        return beside(links(q, v, a), np.stack(columns, 1))

    return fit_linear(rows, runs, count, rounds=2)


def predict(model: LinearModel, run: Run) -> np.ndarray:
    return model.predict(run)


def export(model: LinearModel, arm: Any, folder: Path) -> str:
    """Its FMU needs its own rigid-body dynamics, compiled symbolically from a modified DH table."""
    if str(arm["name"]) != "ur10e":
        raise NotImplementedError("tried on the UR10e only: the export needs its symbolic compiler")
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (COMPILE_S, COMPILE_S))
        compile_arm(folder)
        os._exit(0)
    if os.wait4(child, 0)[1]:
        raise TimeoutError(f"compile-rbd of six joints did not end within {COMPILE_S} CPU s")
    raise NotImplementedError("compile-rbd ended; its FMU is not scored here")


def compile_arm(folder: Path) -> None:
    """Symbolic rigid-body dynamics of the UR10e."""
    angles = [sympy.Integer(0), *(sympy.symbols(f"q{j}") for j in range(1, len(D)))]
    table = ModifiedDH(list(D), list(A), list(ALPHA), angles)
    cache = PersistentPickleCache(str(folder))
    RigidBodyDynamics(logging.getLogger("aurt"), table, cache, multi_processing=False)
