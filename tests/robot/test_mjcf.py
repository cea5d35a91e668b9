"""Robots read from MJCF."""

import numpy as np
import pytest
from tests.servo.servo_arms import truth

import taufit
from taufit.core.errors import RobotError
from taufit.dynamics import forward_kinematics, inverse_dynamics
from taufit.export.servo_mjcf import servo_mjcf


def written(tmp_path, edit=lambda text: text):
    from taufit.servo.model import ServoModel

    robot = taufit.read_robot("so101")
    model = ServoModel(robot, truth(), None, np.zeros(3), (), np.eye(26), np.zeros(5))
    path = tmp_path / "arm.xml"
    path.write_text(edit(servo_mjcf(model)))
    return robot, path


def test_mjcf_gives_the_same_torque_and_tip(tmp_path):
    robot, path = written(tmp_path)
    again = taufit.read_robot(path)
    assert again.joint_names == robot.joint_names
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 20, 5))
    np.testing.assert_allclose(
        inverse_dynamics(again, q, v, a), inverse_dynamics(robot, q, v, a), atol=1e-8
    )
    tips = [forward_kinematics(r, q)[:, -1, :3, 3] for r in (again, robot)]
    np.testing.assert_allclose(*tips, atol=1e-9)


def test_missing_meshes_do_not_matter(tmp_path):
    def add_mesh(text):
        asset = '<asset><mesh name="part" file="nowhere.stl"/></asset><worldbody>'
        geom = '<geom type="mesh" mesh="part"/><inertial'
        return text.replace("<worldbody>", asset, 1).replace("<inertial", geom, 1)

    assert taufit.read_robot(written(tmp_path, add_mesh)[1]).joints == 5


def test_faulty_mjcf_is_named(tmp_path):
    _, path = written(
        tmp_path, lambda text: text.replace("<worldbody>", '<include file="a"/><worldbody>')
    )
    with pytest.raises(RobotError, match="includes files"):
        taufit.read_robot(path)
    _, path = written(tmp_path)
    with pytest.raises(RobotError, match="not found"):
        taufit.read_robot(path, tip="leg")
