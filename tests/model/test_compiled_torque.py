"""One kernel call gives the model's torque, its derivatives and its inverse, for every term."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from tests.dynamics.random_arms import pinocchio_model, random_arm, random_states
from tests.model.test_columns import arm

from taufit.core.errors import TaufitError
from taufit.model import TorqueModel, compiled_torque as module
from taufit.model.fitted_model import FittedModel, compiled_torque
from taufit.robot import read_robot
from taufit.terms import DISSIPATIVE, TERMS
from taufit.terms.friction import FRICTION_MODELS

FRICTION = sorted(FRICTION_MODELS)


def fitted(robot, friction="presliding", terms=(), seed=1) -> FittedModel:
    structure = TorqueModel(robot, friction=FRICTION_MODELS[friction](), terms=terms)
    values = 0.2 * np.abs(np.random.default_rng(seed).normal(size=structure.layout.size))
    values[structure.layout.links] = robot.parameters
    return structure.with_values(values)


def states(joints: int, n: int = 30, seed: int = 2):
    rng = np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, n, joints))
    # Off standstill, where Coulomb friction jumps.
    v = np.sign(v) * (0.05 + np.abs(v))
    return q, v, a, 30.0 + rng.normal(size=(n, joints))


def differences(function, x: np.ndarray, step: float = 2e-4) -> np.ndarray:
    """Derivatives by differences of fourth order, joint by joint."""
    columns = []
    for k in range(x.shape[-1]):
        d = np.zeros(x.shape[-1])
        d[k] = step
        near, far = function(x + d) - function(x - d), function(x + 2 * d) - function(x - 2 * d)
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.stack(columns, -1)


@pytest.mark.unchecked
def test_lists_are_taken_for_arrays():
    model = fitted(arm(False), "linear")
    q, v, a, _ = states(model.robot.joints, 3)
    expected = model.torque(q[1], v[1], a[1])
    assert np.array_equal(model.torque(q[1].tolist(), v[1].tolist(), a[1].tolist()), expected)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("friction", FRICTION)
def test_the_kernel_gives_columns_times_parameters(friction, coupled):
    model = fitted(arm(coupled), friction)
    q, v, a, warm = states(model.robot.joints, 70)
    v[20:30] *= 1e-4
    for step in (None, 0.002):
        expected = model.torque_by_columns(q, v, a, temperature=warm, step=step)
        computed = compiled_torque(model).torque(q, v, a, warm, step)
        np.testing.assert_allclose(computed, expected, atol=1e-12 * np.abs(expected).max())
        np.testing.assert_array_equal(model.torque(q, v, a, temperature=warm, step=step), computed)
    one = model.torque(q[3], v[3], a[3], temperature=warm[3])
    np.testing.assert_allclose(one, model.torque(q, v, a, temperature=warm)[3], rtol=1e-12)


@pytest.mark.parametrize("friction", FRICTION)
def test_a_stepper_follows_a_run(friction):
    model = fitted(read_robot("ur5e"), friction)
    q, v, a, warm = states(6, 70)
    expected = model.torque_by_columns(q, v, a, temperature=warm, step=0.002)
    step = model.stepper(500.0)
    for _ in range(2):
        rows = zip(q, v, a, warm, strict=True)
        torque = [step(*row, temperature=temperature) for *row, temperature in rows]
        np.testing.assert_allclose(torque, expected, atol=1e-12 * np.abs(expected).max())
        step.reset()


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("friction", FRICTION)
def test_the_gradient_is_that_of_central_differences(friction, coupled):
    terms = (TERMS["spring"](),)
    model = fitted(arm(coupled), friction, () if coupled else terms)
    q, v, a, warm = states(model.robot.joints, 20)
    gradient = model.torque_gradient(q, v, a, temperature=warm)

    def torque(q=q, v=v, a=a):
        return model.torque_by_columns(q, v, a, temperature=warm)

    # Torque of a load bends where the load changes sign: not within a step of it.
    load = model.columns.links(q, v, a) @ model.values[model.layout.links]
    load = np.abs(load @ np.linalg.inv(model.robot.drives.coupling))
    smooth = np.all(load > 0.05 * load.max(0), axis=1)
    assert smooth.sum() > 5
    for found, function, x in (
        (gradient.position, lambda x: torque(q=x), q),
        (gradient.velocity, lambda x: torque(v=x), v),
        (gradient.acceleration, lambda x: torque(a=x), a),
    ):
        expected = differences(function, x)[smooth]
        np.testing.assert_allclose(found[smooth], expected, atol=1e-8 * np.abs(expected).max())
    one = model.torque_gradient(q[0], v[0], a[0], temperature=warm[0])
    np.testing.assert_array_equal(one.velocity, gradient.velocity[0])


@pytest.mark.parametrize("joints", [1, 3, 7, 10])
def test_the_rigid_gradient_and_acceleration_are_those_of_pinocchio(joints):
    robot = random_arm(joints, joints, helical=True)
    structure = TorqueModel(robot, friction=None, rotor_inertia=False, offset=False)
    model = structure.with_values(robot.parameters)
    reference = pinocchio_model(robot)
    data = reference.createData()
    for q, v, a in zip(*random_states(joints, 5, joints), strict=True):
        expected = pin.computeRNEADerivatives(reference, data, q, v, a)
        mass = np.triu(np.reshape(expected[2], (joints, joints)))
        expected = *expected[:2], mass + np.triu(mass, 1).T
        for part, derivative in zip(model.torque_gradient(q, v, a), expected, strict=True):
            derivative = np.reshape(derivative, (joints, joints))
            np.testing.assert_allclose(part, derivative, atol=1e-9 * np.abs(derivative).max())
        forward = np.ravel(pin.aba(reference, data, q, v, 3.0 * v))
        found = model.acceleration(q, v, 3.0 * v)
        np.testing.assert_allclose(found, forward, atol=1e-8 * np.abs(forward).max())


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("friction", FRICTION)
def test_acceleration_inverts_torque(friction, coupled):
    model = fitted(arm(coupled), friction)
    q, v, a, warm = states(model.robot.joints, 40)
    v[:5] = 0.0
    torque = model.torque(q, v, a, temperature=warm)
    found = model.acceleration(q, v, torque, temperature=warm)
    np.testing.assert_allclose(found, a, atol=1e-9)
    rigid = (
        model.gravity(q) + model.coriolis(q, v) + np.einsum("nij,nj->ni", model.mass_matrix(q), a)
    )
    np.testing.assert_allclose(model.acceleration(q, v, rigid, friction=False), a, atol=1e-9)


@pytest.mark.parametrize("friction", ["presliding", "linear", "stribeck"])
def test_without_the_kernel_gradient_and_acceleration_are_the_same(friction, monkeypatch):
    model = fitted(read_robot("ur5e"), friction)
    q, v, a, _ = states(6, 10)
    gradient, forward = model.torque_gradient(q, v, a), model.acceleration(q, v, a)
    monkeypatch.setattr(module, "_kernel", None)
    plain = replace(model)
    for part, expected in zip(plain.torque_gradient(q, v, a), gradient, strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(plain.acceleration(q, v, a), forward, rtol=1e-8, atol=1e-8)
    free = plain.acceleration(q, v, a, friction=False)
    np.testing.assert_allclose(free, model.acceleration(q, v, a, friction=False), rtol=1e-9)


def test_the_gradient_at_standstill_is_the_slope_beside_it():
    model = fitted(read_robot("ur5e"), "linear")
    zeros = np.zeros(6)
    gradient = model.torque_gradient(zeros, zeros, zeros)
    viscous = model.layout.split(model.values).drive[:, 1]
    np.testing.assert_allclose(np.diag(gradient.velocity), viscous, rtol=1e-12)


def test_missing_temperature_and_wrong_shapes_are_named():
    names = [name for name in FRICTION if "temperature" in FRICTION_MODELS[name]().needs]
    model = fitted(read_robot("ur5e"), names[0])
    zeros = np.zeros(6)
    for call in (model.torque, model.torque_gradient, model.acceleration):
        with pytest.raises(TaufitError, match="temperature"):
            call(zeros, zeros, zeros)
    with pytest.raises(ValueError, match="6 joints"):
        fitted(read_robot("ur5e")).torque(np.zeros(5), np.zeros(5), np.zeros(5))


def test_a_turned_sign_shows():
    model = fitted(read_robot("ur5e"))
    q, v, a, _ = states(6)
    turned = model.with_values(np.where(model.layout.of_kind(DISSIPATIVE), -1, 1) * model.values)
    difference = model.torque_gradient(q, v, a).velocity - turned.torque_gradient(q, v, a).velocity
    assert np.abs(difference).max() > 0.1
