"""Friction inside a torque model: default shapes, coupled motors, loads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.dynamics import inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.robot import from_dh
from taufit.terms import TermInput
from taufit.terms.friction import FRICTION_MODELS, LinearLoad, PowerLaw

ROWS = np.array([[0, 0.3, 0.1, np.pi / 2], [0, 0, 0.4, 0], [0, 0.1, 0.2, -np.pi / 2]])


def arm(coupling=None):
    rng = np.random.default_rng(1)
    parameters = np.zeros((3, 10))
    parameters[:, 0] = rng.uniform(1, 3, 3)
    parameters[:, [4, 6, 9]] = rng.uniform(0.1, 0.2, (3, 3))
    robot = from_dh(ROWS, parameters=parameters)
    if coupling is not None:
        robot = replace(robot, drives=replace(robot.drives, coupling=coupling))
    return robot


def states(n=20):
    rng = np.random.default_rng(2)
    return tuple(rng.normal(size=(n, 3)) for _ in range(3))


def test_coupled_motors_dissipate_what_their_own_speed_costs():
    coupling = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0.4, 1]])
    model = TorqueModel(arm(coupling), friction=LinearLoad())
    q, v, a = states()
    rng = np.random.default_rng(3)
    values = np.concatenate([model.robot.parameters, rng.uniform(0.1, 1, len(model.names) - 30)])
    model = model.with_values(values)
    rigid = inverse_dynamics(model.robot, q, v, a)
    rotor, friction, offset = values[30:33], values[33:42].reshape(3, 3), values[42:]
    vm, am = v @ coupling.T, a @ coupling.T
    load = np.linalg.solve(coupling.T, rigid.T).T
    motor = (
        rotor * am
        + friction[:, 0] * np.sign(vm)
        + friction[:, 1] * vm
        + friction[:, 2] * np.abs(load) * np.sign(vm)
    )
    np.testing.assert_allclose(model.torque(q, v, a), rigid + motor @ coupling + offset, atol=1e-10)


def test_every_model_gives_regressor_times_parameters_as_torque():
    q, v, a = states()
    temperature = np.full_like(q, 30.0)
    for kind in FRICTION_MODELS.values():
        model = TorqueModel(arm(), friction=kind())
        values = np.random.default_rng(4).uniform(0.1, 1, len(model.names))
        model = model.with_values(values)
        load = inverse_dynamics(model.robot, q, v, a)
        regressor = model.structure.regressor(q, v, a, load=load, temperature=temperature)
        np.testing.assert_allclose(
            regressor @ values, model.torque(q, v, a, temperature=temperature), atol=1e-10
        )


def test_shapes_differ_from_joint_to_joint():
    shape = np.array([[0.5], [1.0], [1.5]])
    model = TorqueModel(arm(), friction=PowerLaw(), shape=shape)
    columns = model.friction_columns(TermInput(np.full((1, 3), 2.0)))
    np.testing.assert_allclose([columns[0, i, 2 * i + 1] for i in range(3)], 2.0 ** shape[:, 0])
    assert TorqueModel(arm(), friction=PowerLaw()).joint_shape.shape == (3, 1)
