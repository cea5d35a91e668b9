"""One arm, several derivations: taufit, Pinocchio, MuJoCo and Lagrange give one torque."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from lagrange import lagrange_regressor
from random_arms import (
    axis_point,
    mujoco_model,
    pinocchio_model,
    random_arm,
    random_states,
    to_axis_frames,
)

from taufit.dynamics import (
    coriolis_torque,
    gravity_torque,
    inverse_dynamics,
    mass_matrix,
    recursion,
    regressor,
)
from taufit.robot import Robot, bundled_robots, read_robot

SEEDS = st.integers(0, 2**32 - 1)
JOINTS = st.integers(1, 10)
LAW = settings(deadline=None, derandomize=True, database=None, max_examples=40)


def close(found: np.ndarray, expected: np.ndarray, relative: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * np.abs(expected).max())


def like_pinocchio(robot: Robot, states: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    model = pinocchio_model(robot)
    data = model.createData()
    torque = np.stack([pin.rnea(model, data, *x) for x in zip(*states, strict=True)])
    # Pinocchio returns vectors where a matrix has one row.
    rows = np.stack(
        [
            pin.computeJointTorqueRegressor(model, data, *x).reshape(robot.joints, -1).copy()
            for x in zip(*states, strict=True)
        ]
    )
    close(inverse_dynamics(robot, *states), torque, 1e-9)
    close(regressor(robot, *states), rows @ to_axis_frames(robot), 1e-9)
    close(regressor(robot, *states) @ robot.parameters, torque, 1e-9)
    matrix = np.stack(
        [np.reshape(pin.crba(model, data, q), (robot.joints, -1)).copy() for q in states[0]]
    )
    upper = np.triu(matrix)
    close(mass_matrix(robot, states[0]), upper + np.swapaxes(np.triu(matrix, 1), 1, 2), 1e-9)


def like_mujoco(robot: Robot, states: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    model = mujoco_model(robot)
    data = mujoco.MjData(model)
    torque = np.empty_like(states[0])
    for k, (q, v, a) in enumerate(zip(*states, strict=True)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        torque[k] = data.qfrc_inverse
    close(inverse_dynamics(robot, *states), torque, 1e-9)
    close(regressor(robot, *states) @ robot.parameters, torque, 1e-9)


@LAW
@given(seed=SEEDS, joints=JOINTS)
def test_regressor_times_parameters_is_inverse_dynamics(seed, joints):
    robot = random_arm(seed, joints, helical=True)
    states = random_states(seed, 5, joints)
    torque = recursion.inverse_dynamics(robot, *states)
    # Worst of 2,000 seeds: 3e-15.
    close(regressor(robot, *states) @ robot.parameters, torque, 1e-12)
    close(recursion.regressor(robot, *states) @ robot.parameters, torque, 1e-12)


@LAW
@given(seed=SEEDS, joints=JOINTS)
def test_random_arm_has_pinocchios_torque_regressor_and_mass_matrix(seed, joints):
    like_pinocchio(random_arm(seed, joints, helical=True), random_states(seed, 3, joints))


@LAW
@given(seed=SEEDS, joints=JOINTS)
def test_random_arm_has_mujocos_torque(seed, joints):
    like_mujoco(random_arm(seed, joints), random_states(seed, 3, joints))


@LAW
@given(seed=SEEDS, joints=JOINTS)
def test_newton_euler_is_lagrange(seed, joints):
    robot = random_arm(seed, joints, helical=True)
    states = random_states(seed, 2, joints)
    expected = np.stack([lagrange_regressor(robot, *x) for x in zip(*states, strict=True)])
    close(regressor(robot, *states), expected, 1e-11)


@LAW
@given(seed=SEEDS, joints=JOINTS)
def test_torque_is_mass_coriolis_and_gravity(seed, joints):
    robot = random_arm(seed, joints)
    q, v, a = random_states(seed, 4, joints)
    parts = (
        np.einsum("nij,nj->ni", mass_matrix(robot, q), a)
        + coriolis_torque(robot, q, v)
        + gravity_torque(robot, q)
    )
    close(parts, inverse_dynamics(robot, q, v, a), 1e-11)
    # The NumPy recursion, column by column.
    zero = np.zeros_like(q)
    gravity = recursion.inverse_dynamics(robot, q, zero, zero)
    close(gravity_torque(robot, q), gravity, 1e-12)
    units = [np.broadcast_to(unit, q.shape).copy() for unit in np.eye(joints)]
    columns = [recursion.inverse_dynamics(robot, q, zero, unit) - gravity for unit in units]
    close(mass_matrix(robot, q), np.stack(columns, axis=-1), 1e-11)


@pytest.mark.parametrize("mounting", ["ground", "ceiling", "wall", "20,-35,70"])
@pytest.mark.parametrize("name", bundled_robots())
def test_bundled_arm_agrees_with_pinocchio_mujoco_and_lagrange(name, mounting):
    robot = read_robot(name).with_mounting(mounting)
    masses = robot.parameters.reshape(-1, 10)[:, 0]
    if np.any(masses <= 0.0):
        # The description has no inertias: any feasible ones will do.
        donor = random_arm(1, robot.joints)
        robot = robot.with_parameters(donor.parameters)
    states = random_states(7, 5, robot.joints)
    like_pinocchio(robot, states)
    like_mujoco(robot, states)
    expected = np.stack([lagrange_regressor(robot, *x) for x in zip(*states, strict=True)])
    close(regressor(robot, *states), expected, 1e-11)


def test_axis_point_lies_on_the_axis():
    link = next(link for link in random_arm(3, 6).links if not link.is_prismatic)
    point = axis_point(link)
    np.testing.assert_allclose(np.cross(point, link.screw[:3]), link.screw[3:], atol=1e-15)
