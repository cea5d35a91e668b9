"""Trees from URDF against Pinocchio, which reads the same file with all joints free."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.core.errors import RobotError
from taufit.dynamics import inverse_dynamics
from taufit.robot import from_urdf, read_robot
from taufit.robot.urdf_tree import tree_from_urdf

INERTIA = (
    '<inertial><origin xyz="0.02 -0.03 0.1" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial>'
)
# name, kind, parent, child, axis, further elements
JOINTS = (
    ("neck", "revolute", "torso", "head", "0 0 1", ""),
    ("waist", "revolute", "pelvis", "torso", "0 0 1", ""),
    ("left_shoulder", "revolute", "torso", "left_upper", "0 1 0", ""),
    ("left_elbow", "revolute", "left_upper", "left_lower", "1 0 0", ""),
    ("left_slide", "prismatic", "left_lower", "left_hand", "0 0 1", ""),
    ("left_finger", "revolute", "left_hand", "left_tip", "0 1 0",
     '<mimic joint="left_slide" multiplier="-1.5" offset="0.2"/>'),
    ("left_thumb", "revolute", "left_hand", "left_nail", "1 0 0",
     '<mimic joint="left_finger" multiplier="2" offset="-0.1"/>'),
    ("right_shoulder", "revolute", "torso", "right_upper", "0 1 0", ""),
    ("right_elbow", "revolute", "right_upper", "right_lower", "0 1 0", ""),
    ("leg", "revolute", "pelvis", "foot", "0 1 0", ""),
)  # fmt: skip


def _urdf(joints=JOINTS) -> str:
    links = {"pelvis": 9.0}
    text = ""
    for k, (name, kind, parent, child, axis, further) in enumerate(joints):
        lower = "0.3" if name == "leg" else "-2"
        links[child] = 1.0 + 0.3 * k
        text += (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="0.1 {0.02 * k} 0.3" rpy="0.3 {0.1 * k} -0.2"/><axis xyz="{axis}"/>'
            f'<limit lower="{lower}" upper="2" velocity="3" effort="{10 + k}"/>{further}</joint>'
        )
    bodies = (
        f'<link name="{name}">{INERTIA.format(mass=mass)}</link>' for name, mass in links.items()
    )
    return f'<robot name="whole">{"".join(bodies)}{text}</robot>'


def _pinocchio_torque(text: str, values: dict[str, np.ndarray], binding) -> dict[str, float]:
    """Torque of every joint, others at rest, bound ones moved and added to their leaders."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(text)
    state = np.zeros((3, model.nv))
    index = {model.names[i]: model.joints[i].idx_v for i in range(1, model.njoints)}
    for name, motion in values.items():
        state[:, index[name]] = motion
    state[0, index["leg"]] = 0.3
    for name, (leader, factor, offset) in binding.items():
        state[:, index[name]] = factor * values[leader]
        state[0, index[name]] += offset
    torque = pin.rnea(model, model.createData(), *state)
    return {
        name: torque[index[name]]
        + sum(f * torque[index[b]] for b, (leader, f, _) in binding.items() if leader == name)
        for name in values
    }


BOUND = {"left_finger": ("left_slide", -1.5, 0.2), "left_thumb": ("left_slide", -3.0, 0.3)}


@pytest.mark.parametrize(
    ("names", "bound"),
    [
        (
            ("right_elbow", "left_slide", "waist", "left_elbow", "right_shoulder", "left_shoulder"),
            1,
        ),
        (("left_shoulder", "left_elbow"), 0),
        (("right_shoulder", "left_elbow", "left_shoulder"), 0),
    ],
)
def test_part_that_recorded_joints_move(names, bound):
    robot = tree_from_urdf(_urdf(), recorded=names)
    assert robot.joint_names == names
    rng = np.random.default_rng(1)
    motion = {name: rng.normal(size=3) for name in names}
    states = [np.array([[motion[name][k] for name in names]]) for k in range(3)]
    expected = _pinocchio_torque(_urdf(), motion, BOUND if bound else {})
    torque = inverse_dynamics(robot, *states)[0]
    np.testing.assert_allclose(torque, [expected[n] for n in names], atol=1e-11)
    assert robot.is_tree == (len(names) != 2)
    assert "held at zero: neck" in robot.source
    wrong = _pinocchio_torque(_urdf(), motion, {} if bound else {"neck": (names[0], 1.0, 0.0)})
    if bound:
        assert abs(torque - [wrong[n] for n in names]).max() > 1e-3


def test_union_of_two_chains(tmp_path):
    (tmp_path / "whole.urdf").write_text(_urdf())
    robot = read_robot(tmp_path / "whole.urdf", tip="left_upper,right_lower")
    assert robot.joint_names == ("waist", "left_shoulder", "right_shoulder", "right_elbow")
    assert [tip.name for tip in robot.tips] == ["left_upper", "right_lower"]
    assert robot.with_tip("right_lower").layout.link(-1).start == 30
    by_names = read_robot(tmp_path / "whole.urdf", joints=robot.joint_names)
    assert by_names.parents == robot.parents


def test_mimic_joint_of_the_chain_is_bound():
    text = _urdf([*JOINTS[1:4], ("wrist", "revolute", "left_lower", "left_hand", "0 0 1",
                                  '<mimic joint="left_elbow" multiplier="-1"/>')])  # fmt: skip
    robot = from_urdf(text)
    assert robot.joint_names == ("waist", "left_shoulder", "left_elbow")
    assert robot.binding[3].tolist() == [0.0, 0.0, -1.0]
    assert robot.limits.torque.tolist() == [10.0, 11.0, 12.0]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("left_finger",), "mimics 'left_slide': record that one"),
        (("ankle",), "'ankle' not found in this URDF. Available: neck, waist"),
        (("shoulder",), "may be left_shoulder, right_shoulder"),
    ],
)
def test_recorded_names_that_do_not_fit(names, message):
    with pytest.raises(RobotError, match=message):
        tree_from_urdf(_urdf(), recorded=names)


def test_mimic_in_a_circle_is_refused():
    text = _urdf().replace('<mimic joint="left_slide"', '<mimic joint="left_thumb"')
    with pytest.raises(RobotError, match="mimics it in turn"):
        tree_from_urdf(text, recorded=("left_slide",))


def test_unique_ending_is_enough():
    robot = tree_from_urdf(_urdf(), recorded=("robot/left_elbow", "waist"))
    assert robot.joint_names == ("left_elbow", "waist")


def test_branch_that_ends_in_bound_joints_has_a_tip_before_them():
    robot = tree_from_urdf(_urdf(), recorded=("left_slide", "right_shoulder"))
    assert [tip.name for tip in robot.tips] == ["left_hand", "right_upper"]


def test_draft_of_two_arms_prints_a_fit_of_both(tmp_path, capsys):
    from taufit.cli import main

    (tmp_path / "whole.urdf").write_text(_urdf())
    names = ("waist", "left_shoulder", "left_elbow", "right_shoulder", "right_elbow")
    time = np.arange(0.0, 8.0, 0.01)
    columns = {"time": time}
    for k, name in enumerate(names):
        columns[f"{name}_position"] = np.sin((k + 1) * time)
        columns[f"{name}_effort"] = np.cos((k + 1) * time)
    path = tmp_path / "log.csv"
    table = np.column_stack([*columns.values()])
    np.savetxt(path, table, "%.9g", ",", header=",".join(columns), comments="")
    with pytest.raises(SystemExit):
        main(["convert", str(path), "--draft", str(tmp_path / "map.yaml")])
    out = capsys.readouterr().out
    assert f"--joints {','.join(names)}" in out and "several arms move" in out
