"""Which arm is on the wire: real calibrations, twins, mountings, controllers that say nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.accuracy.clearance import calibrations, identities

from taufit.clearance import compare_arms
from taufit.clearance.identity import nearest_models, pose_gap, robot_from_dh_table
from taufit.dynamics import forward_kinematics
from taufit.robot import read_robot
from taufit.virtual.controllers.dh_table import dh_table
from taufit.virtual.controllers.franka import urdf_text
from taufit.wire.controller_report import ControllerReport
from taufit.wire.ur_state import DhTable

URS = ("ur3", "ur3e", "ur5", "ur5e", "ur10", "ur10e")


def table(arm, calibrated=True):
    return DhTable(*dh_table(arm), calibrated)


def report(arm, **values):
    return ControllerReport("Universal Robots", dh_table=table(arm), gravity=arm.gravity, **values)


def test_real_calibrations_are_their_own_model_and_no_other():
    assert len(calibrations()) >= 20
    refused, accepted, own, other = identities()
    assert (refused, accepted) == (0, 0)
    assert own < 0.008 and other > 0.029


@pytest.mark.parametrize(("_", "model", "arm"), calibrations()[::4])
def test_a_calibrated_controller_is_recognised_by_its_table(_, model, arm):
    for name in URS:
        robot = read_robot(name)
        found = compare_arms(robot, report(arm))
        assert found.is_identified and bool(found.reasons) == (name != model)
        if found.reasons:
            assert model in found.reasons[0] and name in found.reasons[0]


def test_single_entries_of_a_table_say_nothing():
    # Lengths along parallel axes trade: a published UR3 has metres in d2, d3 and d4.
    nominal = table(read_robot("ur3"))
    change = {
        "theta": [4.6e-05, -0.0596918, 0.1879825, -0.1284214, 1.9e-05, -3.7e-05],
        "a": [3.7e-05, 0.00043275, 0.00151546, 3.5e-05, 5.1e-05, 0.0],
        "d": [0.00022322, -6.29131988, 8.56941732, -2.27804645, -7.3e-05, 0.00041072],
        "alpha": [0.0001182, 0.00230511, 0.0120016, 0.00046634, -0.00023398, 0.0],
    }
    half = np.pi / 2
    maker = DhTable(
        np.zeros(6),
        np.array([0, -0.24365, -0.21325, 0, 0, 0]),
        np.array([0.1519, 0, 0, 0.11235, 0.08535, 0.0819]),
        np.array([half, 0, 0, half, -half, 0]),
        True,
    )
    moved = replace(maker, **{key: getattr(maker, key) + np.array(x) for key, x in change.items()})
    assert pose_gap(read_robot("ur3"), robot_from_dh_table(moved)) < 0.006
    assert pose_gap(read_robot("ur3e"), robot_from_dh_table(moved)) > 0.02
    assert pose_gap(read_robot("ur3"), robot_from_dh_table(nominal)) < 1e-9


@pytest.mark.parametrize("name", URS)
def test_names_contradict_or_agree(name):
    robot = read_robot(name)
    said = name.upper().rstrip("E")
    assert not compare_arms(robot, report(robot, model=said)).reasons
    other = "UR16" if name != "ur3" else "UR10"
    assert "says it moves" in compare_arms(robot, report(robot, model=other)).reasons[0]
    # By its name alone, where the controller has no table.
    bare = ControllerReport("Universal Robots", model=said, software="5.11.0.0")
    found = compare_arms(robot, bare)
    assert found.is_identified and bool(found.reasons) == (not name.endswith("e"))


def test_twins_are_said():
    robot = read_robot("ur5e")
    found = compare_arms(robot, report(robot, model="UR7e"))
    assert not found.reasons and "ur5e and ur7e" in found.notes[0]
    assert set(nearest_models(robot)) == {"ur5e", "ur7e"}


@pytest.mark.parametrize(
    ("tilt", "refused"), [(0.0, False), (2.5, False), (3.5, True), (180, True)]
)
def test_gravity_is_compared_with_the_mounting(tilt, refused):
    robot = read_robot("ur10")
    told = robot.with_mounting((np.radians(tilt), 0.0, 0.7))
    found = compare_arms(robot, report(told))
    assert bool(found.reasons) == refused
    assert not refused or "mounting" in found.reasons[0]


def test_a_controller_that_reports_nothing_is_not_known():
    found = compare_arms(read_robot("kr5"), ControllerReport("ABB"))
    assert not found.is_identified and not found.reasons


def test_the_flange_is_where_the_controller_reports_it():
    robot, q = read_robot("panda"), np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.5, 0.7])
    flange = forward_kinematics(robot, q[None])[0, -1, :3, 3]
    there = ControllerReport("Franka", position=q, flange=flange)
    assert compare_arms(robot, there).is_identified and not compare_arms(robot, there).reasons
    off = replace(there, flange=flange + [0.0, 0.0, 0.02])
    assert "flange 20 mm" in compare_arms(robot, off).reasons[0]


@pytest.mark.parametrize("name", ["ur10", "panda", "iiwa14"])
def test_a_ros_description_is_compared_as_a_robot(name):
    robot = read_robot(name)
    text = urdf_text(robot).replace("inf", "100")
    for i, joint in enumerate(robot.joint_names, 1):
        text = text.replace(f'name="joint{i}"', f'name="{joint}"')
    found = compare_arms(robot, ControllerReport("ROS 2", urdf=text))
    assert found.is_identified and not found.reasons, found
    other = robot.links[3].placement[:3, 3]
    far, moved = (" ".join(f"{x:.12g}" for x in p) for p in (other, other + [0.05, 0.03, 0.0]))
    assert text.count(f'xyz="{far}"') >= 1
    wrong = ControllerReport("ROS 2", urdf=text.replace(f'xyz="{far}"', f'xyz="{moved}"', 1))
    assert "/robot_description" in compare_arms(robot, wrong).reasons[0]
    unnamed = compare_arms(
        robot, ControllerReport("ROS 2", urdf=urdf_text(robot).replace("inf", "100"))
    )
    assert not unnamed.is_identified and "cannot be compared" in unnamed.notes[0]
    assert "mounting is not compared" in unnamed.notes[-1]
