"""Loads on two tips at once: each is weighed by the joints of its arm alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.dynamics.random_trees import random_tree

import taufit
from taufit.core.errors import RobotError
from taufit.dynamics import inverse_dynamics
from taufit.robot import Drives, JointLimits, Link, Robot, Tip, build_tree, read_robot
from taufit.robot.inertia import from_centre_of_mass

LOADS = {"left": 1.5, "right": 3.0}


def two_arms():
    """Three joints of a UR5e on either side of a turning torso."""
    body = from_centre_of_mass(20.0, np.array([0.0, 0.0, 0.2]), np.diag([1.0, 1.0, 0.5]))
    links = [Link("torso", "waist", np.eye(4), np.array([0.0, 1, 0, 0, 0, 0]), body, 0.5)]
    parents = [-1]
    for side, y in (("left", 0.2), ("right", -0.2)):
        shoulder = np.eye(4)
        shoulder[:3, 3] = 0.0, y, 0.4
        for i, link in enumerate(read_robot("ur5e").links[:3]):
            placement = link.placement if i else shoulder @ link.placement
            names = {"name": f"{side}_{i}", "joint": f"{side}_joint_{i}"}
            links.append(replace(link, placement=placement, rotor_inertia=0.3, **names))
            parents.append(len(links) - 2 if i else 0)
    robot = Robot("two arms", tuple(links), JointLimits.unlimited(7), Drives.direct_drive(7))
    tips = [Tip("left", 3, np.eye(4)), Tip("right", 6, np.eye(4))]
    names = [link.joint for link in links]
    return build_tree(robot, parents, np.eye(7), np.zeros(7), names, tips)


def recording(robot, seed, loads=()):
    rng = np.random.default_rng(seed)
    values = robot.parameters.copy()
    for tip in robot.tips:
        body = from_centre_of_mass(
            dict(loads).get(tip.name, 0.0), np.full(3, 0.1), np.zeros((3, 3))
        )
        values[10 * tip.link : 10 * tip.link + 10] += body
    t, w = np.arange(0, 20, 0.01), 2 * np.pi * np.arange(1, 5) / 10
    q, v, a = np.zeros((3, len(t), robot.joints))
    for j in range(robot.joints):
        for k, phase, size in zip(w, rng.uniform(0, 6.3, 4), rng.normal(size=4), strict=True):
            q[:, j] += 0.2 * size / k * np.sin(k * t + phase)
            v[:, j] += 0.2 * size * np.cos(k * t + phase)
            a[:, j] -= 0.2 * size * k * np.sin(k * t + phase)
    torque = inverse_dynamics(robot.with_parameters(values), q, v, a) + robot.rotor_inertias * a
    torque += 2.0 * np.tanh(v / 0.005) + 3.0 * v + 0.1 * rng.normal(size=q.shape)
    return taufit.Recording(t, position=q, velocity=v, signal=torque, signal_unit="N m")


@pytest.fixture(scope="module")
def model():
    robot = two_arms()
    return taufit.identify(robot, [recording(robot, 1), recording(robot, 2)]).model


@pytest.mark.parametrize("name", LOADS)
def test_each_tip_is_weighed_while_both_carry(model, name):
    robot = two_arms()
    others = robot.with_tip(name).other_tip_joints.tolist()
    assert others == [True, *([name == "right"] * 3), *([name == "left"] * 3)]
    result = taufit.identify_payload(model.with_tip(name), recording(robot, 5, LOADS.items()))
    estimate = result.estimate
    assert estimate.ready and not result.refusal and not result.warnings
    assert abs(estimate.mass - LOADS[name]) < 0.02 * LOADS[name]
    assert abs(estimate.mass - LOADS[name]) < 2.0 * estimate.mass_std
    assert np.abs(estimate.centre - 0.1).max() < 0.02


def test_a_tip_has_to_be_named(model):
    loaded = recording(two_arms(), 5, LOADS.items())
    with pytest.raises(RobotError, match="several tips"):
        taufit.identify_payload(model, loaded)
    with pytest.raises(RobotError, match="the method khalil is for serial arms"):
        taufit.identify_payload(model.with_tip("left"), loaded, method="khalil")


def test_a_link_that_carries_is_weighed_by_all_of_its_joints(model):
    """The tip behind the link carries nothing then; the other arm may."""
    upper = two_arms().with_tip("left_1")
    assert [tip.name for tip in upper.tips] == ["right", "left_1"]
    assert upper.other_tip_joints.tolist() == [True, *[False] * 3, *[True] * 3]
    robot = replace(two_arms(), tips=(*two_arms().tips[:1], Tip("left_1", 2, np.eye(4))))
    loaded = recording(robot, 6, {"left_1": 2.0}.items())
    result = taufit.identify_payload(
        model.with_tip("left_1"),
        loaded,
        settings=taufit.PayloadSettings(place=(0.1, 0.1, 0.1), com_std=0.002),
    )
    assert not result.refusal and abs(result.estimate.mass - 2.0) < 0.05
    moment = result.details["first_moment"]
    assert all(a < 0.2 < b for a, b in zip(moment["low"], moment["high"], strict=True))


def test_a_single_arm_of_a_tree_shares_no_joint_with_its_own_link():
    robot = random_tree(3, 9)
    robot = robot.with_tip(robot.tips[0].name)
    single = replace(robot, tips=robot.tips[:1])
    behind = single.path(single.tips[0].link)[-2]
    assert not single.with_tip(single.link_names[behind]).other_tip_joints.any()


def test_the_command_for_one_tip_advises_nothing_that_trees_refuse(model, tmp_path, capsys):
    from taufit.cli.app import main

    taufit.write_model(model, tmp_path / "model.json")
    loaded = recording(two_arms(), 5, LOADS.items())
    taufit.write_recording(loaded, tmp_path / "run.parquet")
    with pytest.raises(SystemExit) as stop:
        main(["payload", f"{tmp_path}/model.json", f"{tmp_path}/run.parquet", "--at", "right"])
    printed = capsys.readouterr().out
    assert stop.value.code == 0
    assert "Give the controller that line." in printed and "taufit design" not in printed
