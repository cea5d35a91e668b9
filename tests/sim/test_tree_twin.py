"""Simulated trees: mass matrix and torque of the twin are those of Python."""

from __future__ import annotations

import numpy as np
import pytest
from tests.dynamics.random_arms import random_states
from tests.dynamics.random_trees import random_tree

from taufit.dynamics import inverse_dynamics, mass_matrix

pytest.importorskip("mujoco")
from taufit.sim.mujoco_arm import build_arm


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_projection_is_the_dynamics_of_the_recorded_joints(seed):
    robot = random_tree(seed, 8)
    q, v, a = random_states(seed, 5, robot.joints)
    rotor = np.linspace(0.1, 0.5, robot.joints)
    arm = build_arm(robot, rotor=rotor)
    torque = inverse_dynamics(robot, q, v, a) + rotor * a
    assert np.abs(arm.torque(q, v, a) - torque).max() < 1e-9 * np.abs(torque).max()
    expected = mass_matrix(robot, q) + np.diag(rotor)
    assert np.abs(arm.mass_matrix(q) - expected).max() < 1e-9 * np.abs(expected).max()
    arm.state.qpos[:], arm.state.qvel[:], arm.state.qfrc_applied[:] = q[0], v[0], torque[0]
    for stage in ("Position", "Velocity", "Acceleration"):
        arm.forward(stage)
    np.testing.assert_allclose(arm.state.qacc_smooth, a[0], atol=1e-8 * np.abs(a[0]).max())


def test_payload_is_at_the_tip_in_use():
    robot = random_tree(3, 8)
    robot = robot.with_tip(robot.tips[-1].name)
    q, v, a = random_states(3, 4, robot.joints)
    payload = np.array([2.0, 0.1, 0.0, 0.2, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1])
    links = robot.parameters.copy()
    links[robot.layout.link(-1)] += payload
    expected = inverse_dynamics(robot.with_parameters(links), q, v, a)
    arm = build_arm(robot, rotor=np.zeros(robot.joints), payload=payload)
    assert np.abs(arm.torque(q, v, a) - expected).max() < 1e-9 * np.abs(expected).max()
