"""Laws of trees with bound joints, against Pinocchio, differences and singular values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.dynamics.random_arms import random_states
from tests.dynamics.random_trees import pinocchio_tree, random_tree

from taufit.core.errors import RobotError
from taufit.dynamics import (
    base_parameters,
    engine,
    forward_kinematics,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    recursion,
    regressor,
    regressor_adjoint,
    regressor_tiles,
)
from taufit.dynamics.base_parameters import random_regressor
from taufit.robot import Robot, read_robot
from taufit.robot.inertia import transform_parameters
from taufit.robot.tree import build_tree

TREES = range(40)


def _reference(robot, q, v, a):
    """Regressor and torque C' Y, C' tau by Pinocchio, with the parameters of each link's frame."""
    pin = pytest.importorskip("pinocchio")
    model, places, frames = pinocchio_tree(robot)
    # Pinocchio's parameters are those at its joint frame: P theta.
    blocks = [
        np.stack([transform_parameters(unit, frames[b][1].homogeneous) for unit in np.eye(10)], 1)
        for b in range(robot.bodies)
    ]
    # Symmetric entries come in Pinocchio's order, which is that of the links here.
    for b, link in enumerate(robot.links):
        values = blocks[b] @ link.parameters
        model.inertias[places[b]] = pin.Inertia.FromDynamicParameters(values)
    data, at = model.createData(), [model.joints[i].idx_v for i in places]
    rows, torques = [], []
    for state in zip(q, v, a, strict=True):
        full = [np.empty(robot.bodies) for _ in state]
        for target, x in zip(full, state, strict=True):
            target[at] = robot.binding @ x
        full[0][at] += robot.binding_offset
        y = pin.computeJointTorqueRegressor(model, data, *full)[at]
        y = np.hstack(
            [y[:, 10 * (i - 1) : 10 * i] @ p for i, p in zip(places, blocks, strict=True)]
        )
        rows.append(robot.binding.T @ y)
        torques.append(robot.binding.T @ pin.rnea(model, data, *full)[at])
    return np.array(rows), np.array(torques)


@pytest.mark.parametrize("seed", TREES)
def test_regressor_and_torque_equal_pinocchio(seed):
    robot = random_tree(seed)
    states = random_states(seed, 4, robot.joints)
    rows, torque = _reference(robot, *states)
    # Worst of 40 trees: 1e-14.
    assert np.abs(regressor(robot, *states) - rows).max() < 1e-12 * np.abs(rows).max()
    assert np.abs(inverse_dynamics(robot, *states) - torque).max() < 1e-12 * np.abs(torque).max()
    moved = np.repeat(robot.support.T, 10, axis=1)
    assert not regressor(robot, *states)[:, ~moved].any()
    turned = replace(robot, binding=-robot.binding)
    assert np.abs(inverse_dynamics(turned, *states) - torque).max() > 1e-3 * np.abs(torque).max()


@pytest.mark.parametrize("seed", TREES)
def test_adjoint_equals_differences(seed):
    robot = random_tree(seed)
    states = random_states(seed, 3, robot.joints)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, robot.joints, robot.layout.size))
    gradients = regressor_adjoint(robot, *states, weights)
    for k, gradient in enumerate(gradients):
        direction = rng.normal(size=states[k].shape)
        values = []
        for step in (1e-6, -1e-6):
            moved = list(states)
            moved[k] = states[k] + step * direction
            values.append(np.sum(weights * regressor(robot, *moved)))
        expected = (values[0] - values[1]) / 2e-6
        # Central differences of 1e-6 are exact to 1e-6 of the function's size at best.
        assert abs(np.sum(gradient * direction) - expected) < 1e-6 * (1 + abs(expected))


@pytest.mark.parametrize("seed", TREES)
def test_base_parameters_have_the_rank_of_the_regressor(seed):
    robot = random_tree(seed)
    base = base_parameters(robot)
    w = random_regressor(robot, seed=1)
    norms = np.linalg.norm(w, axis=0)
    singular = np.linalg.svd(w / np.where(norms > 0, norms, 1.0), compute_uv=False)
    gap = np.argmax(singular[:-1] / np.maximum(singular[1:], 1e-17 * singular[0]))
    assert base.rank == gap + 1
    theta = np.random.default_rng(seed).normal(size=w.shape[1])
    torque = w @ theta
    assert np.abs(w[:, base.columns] @ base.base_values(theta) - torque).max() < (
        1e-8 * np.abs(torque).max()
    )


@pytest.mark.parametrize("name", ["ur10e", "panda"])
def test_serial_arm_as_a_tree_is_the_same(name):
    arm = read_robot(name)
    joints = arm.joints
    chain = build_tree(
        arm, range(-1, joints - 1), np.eye(joints), np.zeros(joints), arm.joint_names
    )
    states = random_states(3, 50, joints)
    assert np.array_equal(recursion.regressor(chain, *states), recursion.regressor(arm, *states))
    expected = recursion.inverse_dynamics(arm, *states)
    assert (
        np.abs(recursion.inverse_dynamics(chain, *states) - expected).max()
        < 1e-12 * np.abs(expected).max()
    )
    weights = np.random.default_rng(0).normal(size=(50, joints, 10 * joints))
    for mine, other in zip(
        regressor_adjoint(chain, *states, weights),
        regressor_adjoint(arm, *states, weights),
        strict=True,
    ):
        assert np.abs(mine - other).max() < 1e-11 * np.abs(other).max()
    np.testing.assert_allclose(
        forward_kinematics(chain, states[0]), forward_kinematics(arm, states[0]), atol=1e-14
    )
    np.testing.assert_allclose(jacobian(chain, states[0]), jacobian(arm, states[0]), atol=1e-13)
    assert chain.with_joint_zeros([0.1] * joints).placements[2] == pytest.approx(
        arm.with_joint_zeros([0.1] * joints).placements[2]
    )


def test_tip_twist_follows_the_recorded_joints():
    robot = random_tree(4)
    robot = robot.with_tip(robot.tips[-1].name)
    q = random_states(1, 1, robot.joints)[0]
    step = 1e-6 * np.random.default_rng(0).normal(size=q.shape)
    ends = [forward_kinematics(robot, q + sign * step)[0, -1, :3, 3] for sign in (1, -1)]
    expected = jacobian(robot, q)[0, 3:] @ (2 * step[0])
    assert np.abs(ends[0] - ends[1] - expected).max() < 1e-4 * np.abs(expected).max()


def test_tiles_hold_every_column_that_a_joint_moves():
    robot = random_tree(5)
    states = random_states(5, 30, robot.joints)
    rows = regressor(robot, *states)
    rebuilt = np.zeros_like(rows)
    for j, (columns, tile) in enumerate(regressor_tiles(robot, *states)):
        rebuilt[:, j, columns] = tile.T
    np.testing.assert_allclose(rebuilt, rows, atol=1e-12 * np.abs(rows).max())
    assert np.all(np.linalg.eigvalsh(mass_matrix(robot, states[0])) > 0.0)


def test_tree_returns_from_a_file_unchanged():
    robot = random_tree(6)
    again = Robot.from_dict(robot.to_dict())
    states = random_states(6, 3, robot.joints)
    assert np.array_equal(regressor(again, *states), regressor(robot, *states))
    assert [tip.name for tip in again.tips] == [tip.name for tip in robot.tips]
    broken = robot.to_dict() | {"parents": [5] * robot.bodies}
    with pytest.raises(RobotError, match="after its parent"):
        Robot.from_dict(broken)


def test_several_tips_need_a_name():
    robot = next(r for r in map(random_tree, TREES) if len(r.tips) > 1)
    with pytest.raises(RobotError, match="several tips"):
        forward_kinematics(robot, np.zeros((1, robot.joints)))
    with pytest.raises(RobotError, match=r"no tip 'hand'. Available"):
        robot.with_tip("hand")
    assert engine(robot.with_tip(robot.tips[0].name)).forward_kinematics(
        np.zeros((1, robot.joints))
    ).shape == (1, robot.bodies + 1, 4, 4)


def test_link_poses_of_a_serial_arm_are_those_of_its_kinematics():
    arm = read_robot("ur5e")
    q = np.random.default_rng(4).uniform(-1.0, 1.0, (5, arm.joints))
    np.testing.assert_array_equal(recursion.link_poses(arm, q), forward_kinematics(arm, q)[:, :-1])


def test_a_link_of_a_tree_may_carry_a_load():
    robot = random_tree(3, 9)
    name = robot.link_names[4]
    loaded = robot.with_tip(name)
    assert loaded.tip_link == 4 and loaded.layout.link(-1) == robot.layout.link(4)
    np.testing.assert_array_equal(loaded.tip, np.eye(4))
    with pytest.raises(RobotError, match=r"no tip 'hook'.*Available: .*" + name):
        robot.with_tip("hook")
