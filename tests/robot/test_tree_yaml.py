"""Trees in YAML: a parallelogram, a dual arm, and errors that name their place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.dynamics.random_arms import random_states
from tests.dynamics.random_trees import random_tree

from taufit.core.errors import RobotError
from taufit.dynamics import inverse_dynamics, recursion
from taufit.robot import from_yaml, to_yaml

FRAME = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
Y_AXIS = "[0, 1, 0, 0, 0, 0]"
# Crank and lower arm at one shoulder; the rod meets the forearm behind the elbow.
PARALLELOGRAM = f"""
name: parallelogram
convention: frames
coordinates: [crank, shoulder]
joints:
  - {{name: shoulder, link: lower_arm, screw: {Y_AXIS}, placement: {FRAME}, lower: -1, upper: 1}}
  - {{name: crank, link: crank, parent: base, screw: {Y_AXIS}, placement: {FRAME}, torque: 9}}
  - name: knee
    link: rod
    screw: {Y_AXIS}
    placement: [[1, 0, 0, -0.2], [0, 1, 0, 0], [0, 0, 1, 0]]
    moves_with: {{shoulder: 1, crank: -1}}
  - name: elbow
    link: forearm
    parent: lower_arm
    screw: {Y_AXIS}
    placement: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.7]]
    moves_with: {{crank: 1, shoulder: -1}}
tips:
  hand: {{link: forearm, xyz: [0.6, 0, 0]}}
"""


def test_parallelogram_closes():
    robot = from_yaml(PARALLELOGRAM)
    assert robot.joint_names == ("crank", "shoulder") and robot.bodies == 4
    assert robot.limits.torque.tolist() == [9.0, np.inf]
    assert robot.limits.upper.tolist() == [np.inf, 1.0]
    poses = recursion.link_poses(robot, np.random.default_rng(0).uniform(-1, 1, (200, 2)))
    rod = poses[:, 2] @ [0, 0, 0.7, 1]
    forearm = poses[:, 3] @ [-0.2, 0, 0, 1]
    assert np.abs(rod - forearm).max() < 1e-12
    unbound = from_yaml(PARALLELOGRAM.replace("crank: 1, shoulder: -1", "crank: 1, shoulder: 1"))
    moved = recursion.link_poses(unbound, np.full((1, 2), 0.5))
    assert np.abs(moved[:, 2] @ [0, 0, 0.7, 1] - moved[:, 3] @ [-0.2, 0, 0, 1]).max() > 0.01


@pytest.mark.parametrize("seed", [1, 2])
def test_trees_return_from_yaml(seed):
    robot = random_tree(seed).with_joint_zeros(np.full(random_tree(seed).joints, 0.1))
    again = from_yaml(to_yaml(robot))
    states = random_states(seed, 5, robot.joints)
    expected = inverse_dynamics(robot, *states)
    assert np.abs(inverse_dynamics(again, *states) - expected).max() < 1e-12 * abs(expected).max()
    assert again.joint_names == robot.joint_names
    assert [tip.name for tip in again.tips] == [tip.name for tip in robot.tips]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("parent: base", "parent: elbow", "parent 'elbow' of joint 'crank' not found.*base"),
        ("crank: -1", "wheel: -1", "names no recorded joint. Available: crank, shoulder"),
        ("[crank, shoulder]", "[crank]", "'shoulder' is neither in coordinates"),
        ("link: forearm, xyz", "link: hand, xyz", "tip 'hand' needs a link. Available: lower_arm"),
        ("frames", "screws", "use frames for a tree"),
    ],
)
def test_errors_name_their_place(old, new, message):
    text = PARALLELOGRAM.replace(old, new)
    if new == "screws":
        text = "\n".join(line for line in text.splitlines() if "placement: [[" not in line)
        text = text.replace(f", placement: {FRAME}", "")
    with pytest.raises(RobotError, match=message):
        from_yaml(text)


def test_both_parallelograms_of_the_example_close_over_its_range():
    path = Path(__file__).parents[2] / "examples" / "arms" / "palletiser.yaml"
    robot = from_yaml(path.read_text("utf-8"))
    low, high = robot.limits.lower, robot.limits.upper
    poses = recursion.link_poses(robot, np.random.default_rng(1).uniform(low, high, (500, 4)))
    at = {name: poses[:, b] for b, name in enumerate(robot.link_names)}
    assert np.abs(at["rod"] @ [0, 0, 0.9, 1] - at["forearm"] @ [-0.25, 0, 0, 1]).max() < 1e-9
    assert np.abs(at["tie_rod"] @ [1, 0, 0, 1] - at["wrist"] @ [0, 0, 0.2, 1]).max() < 1e-9
    # The flange stays level.
    assert np.abs(at["flange"][:, 2, :2]).max() < 1e-12
