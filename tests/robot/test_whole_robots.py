"""Whole robots of more than fifty joints: the part that a log names, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

from taufit.core.errors import RobotError
from taufit.dynamics import inverse_dynamics
from taufit.robot import read_robot
from taufit.robot.held_joints import recorded_chain

BODY = (
    '<inertial><origin xyz="0.01 {y} 0.1" rpy="0 0.2 0"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial>'
)


class Description:
    """URDF in writing; a joint is named after its child link."""

    def __init__(self, name: str) -> None:
        self.name, self.links, self.joints = name, ["base"], []
        self.bound: dict[str, tuple[str, float, float]] = {}

    def add(self, parent: str, child: str, kind: str = "revolute", mimic=None) -> str:
        k = len(self.links)
        axis = ("0 0 1", "0 1 0", "1 0 0")[k % 3]
        leader = ""
        if mimic:
            self.bound[f"{child}_joint"] = mimic
            leader = '<mimic joint="{}" multiplier="{}" offset="{}"/>'.format(*mimic)
        self.links.append(child)
        self.joints.append(
            f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/>'
            f'<origin xyz="0.05 {0.01 * (k % 7)} 0.2" rpy="0.2 0 {0.1 * k}"/>'
            f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3" effort="20"/>{leader}'
            "</joint>"
        )
        return child

    def chain(self, parent: str, prefix: str, count: int) -> str:
        for k in range(count):
            parent = self.add(parent, f"{prefix}_{k + 1}")
        return parent

    @property
    def text(self) -> str:
        bodies = "".join(
            f'<link name="{link}">{BODY.format(mass=0.5 + 0.1 * (k % 9), y=0.01 * (k % 4))}</link>'
            for k, link in enumerate(self.links)
        )
        return f'<robot name="{self.name}">{bodies}{"".join(self.joints)}</robot>'


def humanoid() -> Description:
    """Two legs, waist, head, two arms and hands with bound fingers: 73 joints."""
    out = Description("humanoid")
    waist = out.chain("base", "waist", 3)
    out.chain(waist, "head", 2)
    for side in ("left", "right"):
        out.chain("base", f"{side}_leg", 6)
        wrist = out.chain(waist, f"{side}_arm", 7)
        out.add(wrist, f"{side}_camera", "fixed")
        for finger in range(5):
            root = out.add(wrist, f"{side}_finger_{finger}_1")
            for k in (2, 3, 4):
                leader = (f"{side}_finger_{finger}_1_joint", 0.7, 0.1 * k)
                root = out.add(root, f"{side}_finger_{finger}_{k}", mimic=leader)
    return out


def mobile_manipulator() -> Description:
    """Wheels, lift, arm, gripper with bound fingers, and sensors: 56 joints."""
    out = Description("mobile")
    for k in range(12):
        out.add("base", f"wheel_{k}", "continuous")
    for k in range(20):
        out.add("base", f"sensor_{k}", "fixed")
    mast = out.chain(out.add("base", "lift", "prismatic"), "neck", 3)
    out.chain(mast, "display", 4)
    wrist = out.chain("lift", "arm", 7)
    finger = out.add(wrist, "finger", "prismatic")
    out.add(wrist, "finger_mirror", "prismatic", mimic=("finger_joint", -1.0, 0.0))
    for k in range(7):
        out.add(finger, f"pad_{k}", mimic=("finger_mirror_joint", 0.5, 0.02 * k))
    return out


def cell() -> Description:
    """Nine arms of six joints on a gantry: 57 joints, equal names but for the prefix."""
    out = Description("cell")
    beam = out.chain("base", "gantry", 3)
    for k in range(9):
        out.chain(beam, f"robot{k}_axis", 6)
    return out


ARMS = tuple(f"{side}_arm_{k}_joint" for side in ("left", "right") for k in range(1, 8))
WAIST = tuple(f"waist_{k}_joint" for k in (1, 2, 3))
CASES = {
    "both arms and the waist": (humanoid, (*ARMS, *WAIST)),
    "both arms": (humanoid, ARMS),
    "a hand with bound fingers": (
        humanoid,
        (*ARMS[7:], *(f"right_finger_{k}_1_joint" for k in range(5))),
    ),
    "an arm": (mobile_manipulator, tuple(f"arm_{k}_joint" for k in range(1, 8))),
    "lift, arm and gripper": (
        mobile_manipulator,
        ("finger_joint", *(f"arm_{k}_joint" for k in range(7, 0, -1)), "lift_joint"),
    ),
    "one of nine": (cell, tuple(f"robot4_axis_{k}_joint" for k in range(1, 7))),
    "two of nine": (cell, tuple(f"robot{r}_axis_{k}_joint" for r in (7, 2) for k in range(1, 7))),
}


@pytest.mark.parametrize("case", CASES)
def test_the_part_that_a_log_names_has_pinocchios_torque(case, tmp_path):
    pinocchio = pytest.importorskip("pinocchio")
    make, names = CASES[case]
    description = make()
    assert len(description.joints) >= 50
    path = tmp_path / "whole.urdf"
    path.write_text(description.text)
    robot = read_robot(path, joints=names)
    assert set(robot.joint_names) == set(names)

    whole = pinocchio.buildModelFromXML(description.text)
    data = whole.createData()
    index = {n: (whole.joints[i].idx_q, whole.joints[i].idx_v) for i, n in enumerate(whole.names)}

    def lead(name: str) -> tuple[str, float, float]:
        leader, factor, offset = description.bound[name]
        if leader not in description.bound:
            return leader, factor, offset
        first, inner, inner_offset = lead(leader)
        return first, factor * inner, factor * inner_offset + offset

    bound = {n: lead(n) for n in description.bound if lead(n)[0] in names}
    rng = np.random.default_rng(2)
    states = rng.uniform(-1.0, 1.0, (3, 5, len(names)))
    expected = np.zeros((5, len(names)))
    for s in range(5):
        q, v, a = pinocchio.neutral(whole), np.zeros(whole.nv), np.zeros(whole.nv)
        for k, name in enumerate(robot.joint_names):
            for n, (leader, factor, offset) in {name: (name, 1.0, 0.0), **bound}.items():
                if leader == name:
                    at_q, at_v = index[n]
                    q[at_q] = factor * states[0, s, k] + offset
                    v[at_v], a[at_v] = factor * states[1, s, k], factor * states[2, s, k]
        torque = pinocchio.rnea(whole, data, q, v, a)
        for k, name in enumerate(robot.joint_names):
            expected[s, k] = torque[index[name][1]] + sum(
                factor * torque[index[n][1]]
                for n, (leader, factor, _) in bound.items()
                if leader == name
            )
    found = inverse_dynamics(robot, *states)
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def test_names_that_fit_several_arms_lead_to_a_question(tmp_path):
    path = tmp_path / "cell.urdf"
    path.write_text(cell().text)
    with pytest.raises(RobotError, match="may be robot0_axis_1_joint, robot1_axis_1_joint"):
        read_robot(path, joints=[f"axis_{k}_joint" for k in range(1, 7)])
    with pytest.raises(RobotError, match="tip"):
        read_robot(path)
    (tmp_path / "humanoid.urdf").write_text(humanoid().text)
    with pytest.raises(RobotError, match="mimics 'left_finger_0_1_joint': record that one"):
        read_robot(tmp_path / "humanoid.urdf", joints=["left_arm_1_joint", "left_finger_0_2_joint"])


def test_moving_joints_of_a_log_are_the_part():
    time = np.linspace(0.0, 6.0, 200)
    moving = {name: np.sin((k + 1) * time) for k, name in enumerate(ARMS)}
    standing = {name: np.full(200, 0.3) for name in WAIST}
    chain = recorded_chain(humanoid().text, {**moving, **standing}, ARMS)
    assert chain is not None and set(chain.joints) == set(ARMS)
    single = {name: moving[name] for name in ARMS[:7]}
    chain = recorded_chain(humanoid().text, {**single, **standing}, ARMS[:7])
    assert chain is not None and chain.tip == "left_arm_7"
    assert chain.held["waist_2_joint"] == pytest.approx(0.3)
