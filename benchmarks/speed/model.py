"""CPU time of a fitted model in Python: torque, gradient, forward dynamics, six joints.

Friction has five pre-sliding elements, load dependence and nonlinear viscous friction, as a fit's
default. Pinocchio's functions of links alone are beside them, in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from benchmarks import Row
from benchmarks.pinocchio_arm import arrays_of, pinocchio_model
from benchmarks.speed.regressor import best
from taufit.model import TorqueModel
from taufit.robot import read_robot
from taufit.terms.friction import Presliding

BATCH = 4000


def rows() -> Iterator[Row]:
    robot = read_robot("ur10e")
    structure = TorqueModel(robot, Presliding())
    values = np.full(len(structure.names), 0.05)
    values[structure.layout.links] = robot.parameters
    model = structure.with_values(values)
    q, v, a = np.random.default_rng(0).normal(size=(3, BATCH, 6))
    tau = model.torque(q, v, a)
    one = q[0], v[0], a[0]
    step = model.stepper(500.0)
    times = best(
        lambda: model.torque(*one),
        lambda: model.torque(q, v, a),
        lambda: model.torque(q, v, a, step=0.002),
        lambda: model.torque_gradient(*one),
        lambda: model.acceleration(q[0], v[0], tau[0]),
        lambda: step(*one),
        rounds=5,
        clock=time.process_time,
    )
    note = "UR10e, pre-sliding friction, CPU time of a call from Python"
    batch = f"batch of {BATCH}, UR10e, pre-sliding friction, CPU time"
    single, many, run, gradient, forward, following = (1e6 * t for t in times)
    yield Row("torque of one sample", single, "us", "<= 8", note)
    yield Row("torque in a batch, per sample", many / BATCH, "us", "<= 1", batch)
    yield Row("torque of a run, per sample", run / BATCH, "us", "<= 1", f"{batch}, with memory")
    yield Row("gradient of one sample", gradient, "us", "<= 8", note)
    yield Row("forward dynamics of one sample", forward, "us", "<= 5", note)
    yield Row("stepper, one sample", following, "us", "", f"{note}, with memory")
    if find_spec("pinocchio") is None:
        return
    import pinocchio as pin

    reference = pinocchio_model(arrays_of(robot))
    data = reference.createData()
    times = best(
        lambda: pin.rnea(reference, data, *one),
        lambda: pin.computeRNEADerivatives(reference, data, *one),
        lambda: pin.aba(reference, data, q[0], v[0], tau[0]),
        rounds=5,
        clock=time.process_time,
    )
    for name, seconds in zip(("rnea", "computeRNEADerivatives", "aba"), times, strict=True):
        yield Row(f"Pinocchio {name}", 1e6 * seconds, "us", "", "links alone, a call from Python")
