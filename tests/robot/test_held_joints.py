"""Arm of a whole robot: the recorded chain, with joints held, against Pinocchio's locked joints."""

from __future__ import annotations

import numpy as np
import pytest

import taufit
from taufit.core.errors import RobotError
from taufit.dynamics import inverse_dynamics
from taufit.robot.held_joints import parse_held, recorded_chain
from taufit.workflow.recorded_chain import chain_of_files


def link(name, mass):
    return (
        f'<link name="{name}"><inertial><origin xyz="0.02 0.01 0.1"/><mass value="{mass}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(name, kind, parent, child, axis, xyz="0 0 0.3"):
    limit = '<limit lower="-2" upper="2" effort="50" velocity="2"/>'
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}" rpy="0.2 0 0.1"/>'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>{limit}</joint>'
    )


LINKS = ("base", "wheel", "torso", "waist", "head", "upper", "fore", "hand", "left", "right")
URDF = (
    '<robot name="humanoid">'
    + "".join(link(name, 1.0 + 0.3 * k) for k, name in enumerate(LINKS))
    + joint("wheel_joint", "continuous", "base", "wheel", "0 1 0")
    + joint("lift_joint", "prismatic", "base", "torso", "0 0 1")
    + joint("waist_joint", "revolute", "torso", "waist", "0 1 0")
    + joint("head_joint", "revolute", "waist", "head", "0 0 1")
    + joint("arm_1_joint", "revolute", "waist", "upper", "0 0 1", "0.2 0 0.1")
    + joint("arm_2_joint", "revolute", "upper", "fore", "0 1 0")
    + joint("arm_3_joint", "revolute", "fore", "hand", "1 0 0")
    + joint("left_joint", "prismatic", "hand", "left", "0 1 0")
    + joint("right_joint", "prismatic", "hand", "right", "0 -1 0")
    + "</robot>"
)
ARM = ("arm_1_joint", "arm_2_joint", "arm_3_joint")


@pytest.fixture
def description(tmp_path):
    (tmp_path / "robot.urdf").write_text(URDF)
    return tmp_path / "robot.urdf"


def positions(*moving, **standing):
    time = np.linspace(0.0, 6.0, 200)
    return {name: np.sin((k + 1) * time) for k, name in enumerate(moving)} | {
        name: np.full(200, value) for name, value in standing.items()
    }


def test_the_chain_is_that_of_the_recorded_joints_that_move():
    chain = recorded_chain(URDF, positions(*ARM, waist_joint=0.4, head_joint=0.1), ARM)
    assert chain.tip == "hand" and chain.recorded_names == ("waist_joint",)
    assert chain.held == {"lift_joint": 0.0, "waist_joint": pytest.approx(0.4)}
    assert "lift_joint at 0 (not recorded)" in chain.description
    fingers = recorded_chain(URDF, positions(*ARM, "left_joint", "right_joint"))
    assert fingers.tip == "hand"
    assert recorded_chain(URDF, positions("q_1", "q_2")) is None


def test_held_joints_give_the_torque_of_pinocchios_locked_joints(description):
    pinocchio = pytest.importorskip("pinocchio")
    held = {"lift_joint": 0.25, "waist_joint": 0.7}
    arm = taufit.read_robot(description, tip="hand", hold=held)
    assert arm.joint_names == ARM
    whole = pinocchio.buildModelFromUrdf(str(description))
    neutral = pinocchio.neutral(whole)
    for name, value in held.items():
        neutral[whole.joints[whole.getJointId(name)].idx_q] = value
    locked = [whole.getJointId(n) for n in whole.names[1:] if n not in ARM]
    model = pinocchio.buildReducedModel(whole, locked, neutral)
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 20, 3))
    expected = [
        pinocchio.rnea(model, model.createData(), *row) for row in zip(q, v, a, strict=True)
    ]
    np.testing.assert_allclose(inverse_dynamics(arm, q, v, a), expected, atol=1e-9)
    other = taufit.read_robot(description, tip="hand", hold={**held, "waist_joint": 0.0})
    assert np.abs(inverse_dynamics(other, q, v, a) - expected).max() > 0.5


def test_a_draft_prints_the_fit_of_the_arm_alone(description, tmp_path, capsys):
    from taufit.cli import main

    time = np.arange(0.0, 8.0, 0.01)
    columns = {"time": time}
    for k, name in enumerate((*ARM, "waist_joint")):
        moves = name in ARM
        columns[f"{name}_position"] = np.sin((k + 1) * time) if moves else np.full(len(time), 0.4)
        columns[f"{name}_effort"] = np.cos((k + 1) * time) if moves else np.zeros(len(time))
    path = tmp_path / "log.csv"
    table = np.column_stack([*columns.values()])
    np.savetxt(path, table, "%.9g", ",", header=",".join(columns), comments="")
    assert chain_of_files(description, [path]).tip == "hand"
    with pytest.raises(SystemExit):
        main(["convert", str(path), "--draft", str(tmp_path / "map.yaml")])
    out = capsys.readouterr().out
    assert "--tip hand --hold lift_joint=0,waist_joint=0.4" in out and "robot.urdf" in out


def test_a_joint_to_hold_that_is_not_there_is_named(description):
    with pytest.raises(RobotError, match=r"'elbow' to hold not found\. Available: wheel_joint"):
        taufit.read_robot(description, tip="hand", hold={"elbow": 0.0})
    with pytest.raises(RobotError, match="NAME=POSITION"):
        parse_held("lift_joint=high")
    assert parse_held("lift_joint=0.2,waist_joint") == {"lift_joint": 0.2, "waist_joint": 0.0}


def test_two_recorded_arms_are_a_tree_of_their_joints():
    """Arms on both sides share no joint, so no chain has most of them."""
    sides = [f"{side}_{k}_joint" for side in ("l", "r") for k in (1, 2)]
    text = URDF.replace(
        "</robot>",
        "".join(link(name.removesuffix("_joint"), 1.0) for name in sides)
        + "".join(
            joint(name, "revolute", "waist" if "1" in name else name[:2] + "1", name[:3], "0 1 0")
            for name in sides
        )
        + "</robot>",
    )
    chain = recorded_chain(text, positions(*sides, waist_joint=0.1), sides)
    assert chain is not None and chain.joints == tuple(sides)
    # Fingers that move without a torque of their own are no arms.
    assert recorded_chain(text, positions(*sides), ()) is None


def test_a_fit_takes_the_arm_that_the_recording_names(description, tmp_path, capsys):
    from taufit.cli import main

    arm = taufit.read_robot(description, tip="hand", hold={"lift_joint": 0.0, "waist_joint": 0.4})
    time = np.arange(0.0, 20.0, 0.01)
    rate = 1.3 + 0.5 * np.arange(3)
    q, v = np.sin(rate * time[:, None]), rate * np.cos(rate * time[:, None])
    tau = inverse_dynamics(arm, q, v, -(rate**2) * q) + 2.0 * np.tanh(v / 0.02)
    tau += np.random.default_rng(0).normal(0.0, 0.05, tau.shape)
    names = [f"{name}_{kind}" for kind in ("position", "effort") for name in ARM]
    table = np.column_stack([time, q, tau, np.full(len(time), 0.4)])
    header = ",".join(["time", *names, "waist_joint_position"])
    path, column_map = tmp_path / "log.csv", tmp_path / "map.yaml"
    np.savetxt(path, table, "%.9g", ",", header=header, comments="")
    model = tmp_path / "m.json"
    for words in (
        ["convert", str(path), "--draft", str(column_map), "--robot", str(description)],
        ["fit", str(description), str(path), "--map", str(column_map), "--holdout", "30%",
         "--friction", "linear", "-o", str(model)],
    ):  # fmt: skip
        with pytest.raises(SystemExit) as end:
            main(words)
        assert not end.value.code
    assert "the arm ends at link hand" in capsys.readouterr().err
    assert taufit.read_model(model).robot.joint_names == ARM
