"""URDF and MJCF of trees: the torque is the model's where the file holds the binding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from tests.dynamics.random_trees import random_tree

import taufit
from taufit.core.errors import TaufitError
from taufit.dynamics import inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.robot import Drives
from taufit.robot.robot import Robot

ARMS = Path(__file__).parents[2] / "examples" / "arms"


def _model(robot: Robot, offset: bool = False):
    """Model of the links alone, plus rotors, friction and offsets if asked."""
    model = TorqueModel(robot, None if not offset else taufit.Linear(), offset, offset)
    values = np.zeros(len(model.names))
    values[model.layout.links] = robot.parameters
    if offset:
        rest = slice(model.layout.links.stop, None)
        values[rest] = np.random.default_rng(0).uniform(0.1, 0.5, len(values[rest]))
    return model.with_values(values)


def _single_bindings(seed: int) -> Robot:
    """Random tree whose bound joints follow one recorded joint each."""
    robot = random_tree(seed, 9)
    binding = np.asarray(robot.binding).copy()
    for b in np.flatnonzero(np.count_nonzero(binding, axis=1) > 1):
        binding[b, np.flatnonzero(binding[b])[1:]] = 0.0
    return replace(robot, binding=binding)


@pytest.mark.parametrize("seed", range(6))
def test_urdf_keeps_bindings_that_mimic_holds(tmp_path, seed):
    robot = _single_bindings(seed)
    path = tmp_path / "tree.urdf"
    taufit.export_model(_model(robot), path)
    again = taufit.read_robot(path, joints=robot.joint_names, mounting=robot.mounting)
    q, v, a = np.random.default_rng(seed).normal(size=(3, 20, robot.joints))
    expected = inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(
        inverse_dynamics(again, q, v, a), expected, atol=1e-11 * np.abs(expected).max()
    )
    # Once more through the file that was read, which is edited.
    taufit.export_model(_model(again), path)
    edited = taufit.read_robot(path, joints=robot.joint_names, mounting=robot.mounting)
    np.testing.assert_allclose(
        inverse_dynamics(edited, q, v, a), expected, atol=1e-11 * np.abs(expected).max()
    )


def test_urdf_refuses_two_recorded_joints_by_name(tmp_path):
    palletiser = taufit.read_robot(ARMS / "palletiser.yaml")
    with pytest.raises(
        TaufitError, match=r"'rod_joint' follows 2 recorded joints \(lower, crank\)"
    ):
        taufit.export_model(_model(palletiser), tmp_path / "arm.urdf")


def test_a_recorded_joint_without_a_link_of_its_own_is_named(tmp_path):
    robot = random_tree(1, 9)
    binding = np.asarray(robot.binding) * 2.0
    with pytest.raises(TaufitError, match="moves one to one with"):
        taufit.export_model(_model(replace(robot, binding=binding)), tmp_path / "arm.urdf")


@pytest.mark.parametrize("name", ["palletiser", "psm", *range(4)])
def test_mujoco_needs_the_torque_of_the_model(tmp_path, name):
    robot = (
        random_tree(name, 9) if isinstance(name, int) else taufit.read_robot(ARMS / f"{name}.yaml")
    )
    if name == "psm":  # its links have no masses
        links = replace(random_tree(0, len(robot.links))).parameters
        robot = replace(robot.with_parameters(links), drives=Drives.direct_drive(7))
    model = _model(robot)
    path = tmp_path / "tree.xml"
    taufit.export_model(model, path)
    spec = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(spec)
    order = [spec.joint(link.joint).id for link in robot.links]
    assert spec.nu == robot.joints
    q, v, a = 0.5 * np.random.default_rng(2).normal(size=(3, 10, robot.joints))
    worst = 0.0
    for k in range(10):
        data.qpos[order], data.qvel[order] = robot.binding @ q[k], robot.binding @ v[k]
        data.qacc[order] = robot.binding @ a[k]
        mujoco.mj_inverse(spec, data)
        # Bound joints have no drive: their constraint carries what they need.
        torque = robot.binding.T @ (data.qfrc_inverse + data.qfrc_constraint)[order]
        expected = model.torque(q[k], v[k], a[k])
        worst = max(worst, np.abs(torque - expected).max() / np.abs(expected).max())
    assert worst < 1e-9


def test_mujoco_moves_a_palletiser_as_the_model_says(tmp_path):
    robot = taufit.read_robot(ARMS / "palletiser.yaml")
    model = _model(robot)
    path = tmp_path / "tree.xml"
    taufit.export_model(model, path)
    spec = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(spec)
    rng = np.random.default_rng(3)
    order = [spec.joint(link.joint).id for link in robot.links]
    for _ in range(5):
        q, v = rng.uniform(-0.3, 0.8, (2, 4))
        torque = model.gravity(q) + rng.normal(0.0, 100.0, 4)
        data.qpos[order], data.qvel[order] = robot.binding @ q, robot.binding @ v
        data.ctrl[:] = torque
        mujoco.mj_forward(spec, data)
        joints = [spec.joint(name).id for name in ("turn", "lower", "crank", "flange")]
        expected = model.acceleration(q, v, torque)
        np.testing.assert_allclose(data.qacc[joints], expected, atol=2e-3 * np.abs(expected).max())
