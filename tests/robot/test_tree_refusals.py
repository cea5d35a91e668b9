"""Trees are refused by name wherever a serial chain is assumed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.dynamics.random_trees import random_tree

import taufit
from taufit.core.errors import RobotError

ROBOT = random_tree(3).with_tip(random_tree(3).tips[0].name)
MODEL = taufit.TorqueModel(ROBOT)
VALUES = np.concatenate([ROBOT.parameters, np.ones(len(MODEL.names) - 10 * ROBOT.bodies)])
FITTED = MODEL.with_values(VALUES)


def _contact():
    from taufit.contact import ContactDetector

    ContactDetector(FITTED)


def _force():
    from taufit.contact import find_force

    ones = np.ones(ROBOT.joints)
    find_force(ROBOT, ones, ones, ones)


def _scene():
    from taufit.excitation import scene_for

    scene_for(ROBOT)


def _fleet():
    from taufit.fleet import study_fleet

    study_fleet(ROBOT, "no_folder")


def _live():
    from taufit.live.page_data import kinematic_chain

    kinematic_chain(ROBOT)


def _controller():
    from taufit.virtual.controllers.kinematics import Kinematics

    Kinematics(ROBOT)


def _dh():
    from taufit.virtual.controllers.dh_table import dh_table

    dh_table(ROBOT)


def _servo():
    from taufit.servo.joint_axes import _require_revolute

    _require_revolute(ROBOT)


CASES = {
    "contact detection": _contact,
    "a force at a link": _force,
    "a scene with bodies": _scene,
    "a fleet study": _fleet,
    "the live page": _live,
    "a simulated controller": _controller,
    "a DH table": _dh,
    "a servo model": _servo,
}


@pytest.mark.parametrize("task", CASES)
def test_task_for_serial_arms_is_refused(task):
    with pytest.raises(RobotError, match=f"tree or has bound joints: {task}"):
        CASES[task]()


@pytest.mark.parametrize("ending", ["sdf", "casadi"])
def test_format_for_serial_arms_is_refused(ending, tmp_path):
    with pytest.raises(RobotError, match=f"export as .{ending} is for serial arms"):
        taufit.export_model(FITTED, tmp_path / f"arm.{ending}")
