"""Bundled trees: lengths as their makers publish them, parallelograms that close."""

from __future__ import annotations

import numpy as np
import pytest

import taufit
from taufit.dynamics import forward_kinematics, link_poses
from taufit.robot.checks import description_warnings


def test_trees_are_bundled_beside_serial_robots():
    assert set(taufit.bundled_robots(trees=True)) - set(taufit.bundled_robots()) == {
        "baxter",
        "uarm_swift_pro",
    }


def test_links_of_baxter_have_the_published_lengths():
    """Shoulder to elbow, elbow to wrist and wrist to hand of the maker's hardware page [mm]."""
    robot = taufit.read_robot("baxter")
    poses = link_poses(robot, np.zeros((1, 14)))[0]
    for side in ("left", "right"):
        origin = {name: poses[robot.link_names.index(f"{side}_{name}"), :3, 3]
                  for name in ("upper_shoulder", "lower_shoulder", "lower_elbow", "wrist",
                               "lower_forearm")}  # fmt: skip
        hand = forward_kinematics(robot.with_tip(f"{side}_hand"), np.zeros((1, 14)))[0]
        reach = origin["lower_elbow"] - origin["lower_shoulder"]
        horizontal = np.linalg.norm(reach[:2])
        assert np.isclose(1e3 * horizontal, 364.35, atol=0.1) and np.isclose(reach[2], -0.069)
        forearm = origin["lower_forearm"] - origin["lower_elbow"]
        assert np.isclose(1e3 * np.linalg.norm(forearm[:2]), 374.29, atol=0.1)
        flange = hand[robot.with_tip(f"{side}_hand").tip_link]
        assert flange.shape == (4, 4)
        tip = flange[:3, 3] + flange[:3, :3] @ robot.tips[0].pose[:3, 3]
        length = np.linalg.norm(tip - origin["lower_forearm"])
        assert np.isclose(1e3 * length, 229.525, atol=0.1)


def test_arms_of_baxter_mirror_each_other():
    robot = taufit.read_robot("baxter")
    rng = np.random.default_rng(0)
    left = rng.uniform(-1.0, 1.0, (20, 7))
    # Joints about the vertical of the stretched arm turn the other way.
    right = left * [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    poses = link_poses(robot, np.hstack([left, right]))
    ends = [robot.link_names.index(f"{side}_wrist") for side in ("left", "right")]
    mirrored = poses[:, ends[0], :3, 3] * [1.0, -1.0, 1.0]
    np.testing.assert_allclose(poses[:, ends[1], :3, 3], mirrored, atol=1e-6)
    assert not description_warnings(robot)


def test_the_parallelograms_of_the_palletiser_close_over_its_range():
    robot = taufit.read_robot("uarm_swift_pro")
    q = np.random.default_rng(1).uniform(robot.limits.lower, robot.limits.upper, (500, 4))
    poses = link_poses(robot, q)

    def point(link: str, *xyz: float) -> np.ndarray:
        return poses[:, robot.link_names.index(link)] @ [*xyz, 1.0]

    pairs = (
        (point("rod", 0.14207, 0, 0), point("forearm", -0.045, 0, 0)),
        (point("level_rod", 0.14207, 0, 0), point("plate", 0, 0, 0.035)),
        (point("tie_rod", 0.15881, 0, 0), point("wrist_link", 0, 0, 0.035)),
    )
    assert max(np.abs(a - b).max() for a, b in pairs) < 1e-9


def test_the_hand_of_the_palletiser_is_where_the_makers_formula_puts_it():
    """stretch = 142.07 cos l + 158.81 cos u + 13.2 + 56.55; height = 142.07 sin l - 158.81 sin u
    + 106.6, less 74.55 to the end of the hand [mm]."""
    robot = taufit.read_robot("uarm_swift_pro")
    q = np.random.default_rng(2).uniform(robot.limits.lower, robot.limits.upper, (100, 4))
    base, lower, upper, _ = q.T
    stretch = 142.07 * np.cos(lower) + 158.81 * np.cos(upper) + 13.2 + 56.55
    height = 142.07 * np.sin(lower) - 158.81 * np.sin(upper) + 106.6 - 74.55
    expected = 1e-3 * np.column_stack([stretch * np.cos(base), stretch * np.sin(base), height])
    poses = link_poses(robot, q)[:, robot.tip_link]
    np.testing.assert_allclose((poses @ robot.tip)[:, :3, 3], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["baxter", "uarm_swift_pro"])
def test_bundled_trees_are_read_by_name_and_written_again(name):
    from taufit.robot.from_yaml import from_yaml
    from taufit.robot.to_yaml import to_yaml

    robot = taufit.read_robot(name)
    again = from_yaml(to_yaml(robot))
    np.testing.assert_allclose(again.parameters, robot.parameters)
    np.testing.assert_allclose(again.binding, robot.binding)
