"""AURT's joint dynamics (sign(v) and viscous powers) and its two rounds of least squares.

The links' columns are Pinocchio's, which span the same space as AURT's symbolic ones: compiling
those for six joints is what `aurt_compile` measures.
"""

from __future__ import annotations

import logging
import tempfile
import time

import numpy as np
import pinocchio
from aurt.caching import PersistentPickleCache
from aurt.joint_dynamics import JointDynamics
from peer_scripts.common import beside, given, weighted
from pinocchio_arm import pinocchio_model

data = given()
model = pinocchio_model(data.arm)
memory = model.createData()


def rows(joints: JointDynamics, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    links = [
        pinocchio.computeJointTorqueRegressor(model, memory, *x).copy()
        for x in zip(q, v, a, strict=True)
    ]
    # Its states are velocity and load, joint by joint; without load-dependent friction no load.
    states = np.stack([v.T, np.zeros_like(v.T)], 1).reshape(-1, len(v))
    own = [
        joints.observation_matrix_joint_parameters_for_joint(j, j, states) for j in range(model.nv)
    ]
    return beside(np.stack(links), np.stack(own, 1))


with tempfile.TemporaryDirectory() as place:
    start = time.process_time()
    joints = JointDynamics(
        logging.getLogger("aurt"),
        PersistentPickleCache(place),
        model.nv,
        load_model="none",
        viscous_powers=[1],
    )
    theta = weighted(rows(joints, *data.runs[0][:3]), data.runs[0][3], data.keep, rounds=2)
    cpu = time.process_time() - start
    data.show(lambda q, v, a: rows(joints, q, v, a) @ theta, cpu)
