"""The regressor's adjoint against differences, a complex step and the chain rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from lagrange import lagrange_regressor
from random_arms import random_arm, random_states

from taufit.dynamics import RegressorEngine, adjoint, regressor, regressor_adjoint
from taufit.robot import bundled_robots, read_robot

LAW = settings(deadline=None, derandomize=True, database=None, max_examples=30)


def numpy_adjoint(robot, q, v, a, gradient):
    return adjoint.regressor_adjoint(robot, q, v, a, gradient)


@pytest.mark.parametrize("derive", [regressor_adjoint, numpy_adjoint])
@LAW
@given(seed=st.integers(0, 2**32 - 1), joints=st.integers(1, 8))
def test_adjoint_is_a_complex_step_through_lagrange(derive, seed, joints):
    """f(x + ih)/h has f's slope as its imaginary part, to the last digit; and the differentiated
    function is a derivation of its own (see lagrange.py)."""
    robot = random_arm(seed, joints, helical=True)
    state = np.stack(random_states(seed, 1, joints))[:, 0]
    gradient = np.random.default_rng(seed).normal(size=(1, joints, 10 * joints))
    found = np.stack(derive(robot, *state[:, None], gradient))[:, 0]
    expected = np.empty_like(found)
    for kind, joint in np.ndindex(expected.shape):
        moved = state.astype(complex)
        moved[kind, joint] += 1e-30j
        expected[kind, joint] = np.sum(gradient[0] * lagrange_regressor(robot, *moved)).imag / 1e-30
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("name", bundled_robots())
def test_adjoint_is_the_limit_of_differences(name):
    robot = read_robot(name)
    joints, n, h = robot.joints, 6, 1e-5
    states = np.stack(random_states(3, n, joints))
    gradient = np.random.default_rng(3).normal(size=(n, joints, 10 * joints))
    found = np.stack(regressor_adjoint(robot, *states, gradient))
    expected = np.empty_like(found)
    for kind in range(3):
        for joint in range(joints):
            step = np.zeros_like(states)
            step[kind, :, joint] = h
            difference = regressor(robot, *(states + step)) - regressor(robot, *(states - step))
            expected[kind, :, joint] = np.sum(gradient * difference, (1, 2)) / (2 * h)
    # Central differences themselves are good to h^2.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@LAW
@given(seed=st.integers(0, 2**32 - 1), joints=st.integers(1, 10))
def test_adjoint_is_linear_in_the_gradient(seed, joints):
    robot = random_arm(seed, joints)
    states = random_states(seed, 3, joints)
    rng = np.random.default_rng(seed)
    one, two = rng.normal(size=(2, 3, joints, 10 * joints))
    sum_of = np.stack(regressor_adjoint(robot, *states, one - 2.0 * two))
    parts = np.stack(regressor_adjoint(robot, *states, one)) - 2.0 * np.stack(
        regressor_adjoint(robot, *states, two)
    )
    np.testing.assert_allclose(sum_of, parts, rtol=0, atol=1e-11 * max(np.abs(parts).max(), 1.0))


def test_the_first_joint_of_a_weightless_arm_turns_for_free():
    """Without gravity the torque does not depend on the first joint's position."""
    robot = random_arm(2, 5)
    states = random_states(2, 4, 5)
    gradient = np.random.default_rng(2).normal(size=(4, 5, 50))
    for compiled in (None, False):
        still = RegressorEngine(robot, gravity=np.zeros(3), compiled=compiled)
        dq, _, _ = still.regressor_adjoint(*states, gradient)
        assert np.abs(dq[:, 0]).max() < 1e-11 * np.abs(dq).max()
