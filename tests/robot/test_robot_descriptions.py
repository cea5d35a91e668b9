"""One arm, four descriptions, one torque."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from arm_texts import ur10_urdf, urdf_of
from hypothesis import given, settings, strategies as st

from taufit.dynamics import (
    base_parameters,
    forward_kinematics,
    gravity_torque,
    inverse_dynamics,
)
from taufit.robot import (
    Robot,
    bundled_robots,
    from_dh,
    from_screws,
    from_urdf,
    from_yaml,
    read_robot,
    to_yaml,
    write_robot,
)
from taufit.robot.inertia import from_pseudo_inertia, pseudo_inertia, transform_parameters
from taufit.robot.pose import adjoint, inverse_pose, rotation_about_axis

LAW = settings(deadline=None, derandomize=True, database=None, max_examples=40)
UR10_STANDARD = [
    [0, 0.1273, 0, np.pi / 2],
    [0, 0, -0.612, 0],
    [0, 0, -0.5723, 0],
    [0, 0.163941, 0, np.pi / 2],
    [0, 0.1157, 0, -np.pi / 2],
    [0, 0.0922, 0, 0],
]


def states(robot: Robot, n: int = 20, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (rng.uniform(-2.0, 2.0, (n, robot.joints)) for _ in range(3))


def home_poses(robot: Robot) -> list[np.ndarray]:
    poses, pose = [], np.eye(4)
    for link in robot.links:
        pose = pose @ link.placement
        poses.append(pose)
    return poses


def as_screws(robot: Robot) -> Robot:
    """The same arm by base-frame screws; every body is carried into the base frame."""
    poses = home_poses(robot)
    return from_screws(
        np.array([adjoint(t) @ link.screw for t, link in zip(poses, robot.links, strict=True)]),
        tip=poses[-1] @ robot.tip,
        parameters=np.array(
            [
                transform_parameters(link.parameters, t)
                for t, link in zip(poses, robot.links, strict=True)
            ]
        ),
    )


def assert_same_torque(one: Robot, other: Robot, tolerance: float = 1e-9) -> None:
    q, v, a = states(one)
    expected = inverse_dynamics(one, q, v, a)
    found = inverse_dynamics(other, q, v, a)
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


def random_arm(seed: int, joints: int, right_angles: bool = False) -> Robot:
    rng = np.random.default_rng(seed)
    table = rng.uniform(-0.5, 0.5, (joints, 4))
    table[:, [0, 3]] = rng.uniform(-3.0, 3.0, (joints, 2))
    if right_angles:
        table[:, [0, 3]] = rng.integers(-2, 3, (joints, 2)) * np.pi / 2
    roots = rng.normal(size=(joints, 4, 4))
    return from_dh(
        table,
        convention="modified",
        prismatic=tuple(rng.random(joints) < 0.3),
        parameters=from_pseudo_inertia(roots @ np.swapaxes(roots, 1, 2)),
    )


def test_dh_mdh_screws_and_urdf_of_the_ur10_give_one_torque():
    modified = read_robot("ur10")
    turned = rotation_about_axis(2, np.pi)
    standard = from_dh(np.array(UR10_STANDARD), convention="standard")
    bodies = [
        transform_parameters(link.parameters, inverse_pose(turned @ there) @ here)
        for link, here, there in zip(
            modified.links, home_poses(modified), home_poses(standard), strict=True
        )
    ]
    standard = standard.with_parameters(np.concatenate(bodies))

    assert_same_torque(modified, standard)
    assert_same_torque(modified, as_screws(modified))
    assert_same_torque(modified, as_screws(standard))
    assert_same_torque(modified, from_urdf(urdf_of(modified)))

    q, _, _ = states(modified)
    tip = forward_kinematics(modified, q)[:, -1, :3, 3]
    for same in (as_screws(modified), from_urdf(urdf_of(modified))):
        np.testing.assert_allclose(forward_kinematics(same, q)[:, -1, :3, 3], tip, atol=1e-12)
    other = forward_kinematics(standard, q)[:, -1, :3, 3] @ turned[:3, :3].T
    np.testing.assert_allclose(other, tip, atol=1e-12)


def on_its_axes(robot: Robot) -> Robot:
    """The same arm with every link frame moved onto its joint's axis, as a URDF needs it."""
    links, before = [], np.eye(4)
    for link in robot.links:
        moved = np.eye(4)
        if not link.is_prismatic:
            moved[:3, 3] = np.cross(link.screw[:3], link.screw[3:])
        links.append(
            replace(
                link,
                placement=inverse_pose(before) @ link.placement @ moved,
                screw=adjoint(inverse_pose(moved)) @ link.screw,
                parameters=transform_parameters(link.parameters, inverse_pose(moved)),
            )
        )
        before = moved
    return replace(robot, links=tuple(links), tip=inverse_pose(before) @ robot.tip)


@pytest.mark.parametrize("name", bundled_robots())
def test_every_bundled_arm_is_the_same_by_urdf_screws_and_yaml(name):
    robot = read_robot(name)
    others = [
        from_urdf(urdf_of(on_its_axes(robot))),
        as_screws(robot),
        from_yaml(to_yaml(robot)),
        from_yaml(to_yaml(as_screws(robot))),
    ]

    rank = base_parameters(robot).rank
    for other in others:
        assert_same_torque(robot, other)
        assert base_parameters(other).rank == rank


@LAW
@given(seed=st.integers(0, 2**32 - 1), joints=st.integers(1, 10), right_angles=st.booleans())
def test_any_chain_survives_urdf_screws_and_yaml(seed, joints, right_angles):
    arm = random_arm(seed, joints, right_angles)

    assert_same_torque(arm, from_urdf(urdf_of(arm)))
    assert_same_torque(arm, as_screws(arm))
    assert_same_torque(arm, from_yaml(to_yaml(arm)), 1e-12)


def test_yaml_tables_in_degrees_and_multiples_of_pi_are_the_same_arm():
    radians = "convention: modified\njoints:\n- {d: 0.3, alpha: -pi/2, upper: 2*pi, mass: 1e0}\n"
    degrees = (
        "convention: modified\nangles: degrees\njoints:\n"
        "- {d: 3e-1, alpha: -90, upper: 360, mass: 1}\n"
    )
    a, b = from_yaml(radians), from_yaml(degrees)

    np.testing.assert_allclose(a.placements, b.placements, atol=1e-15)
    np.testing.assert_allclose(a.limits.upper, b.limits.upper)
    assert a.links[0].parameters[0] == 1.0


def test_yaml_screws_with_reference_pose_match_the_panda(reference_dir):
    import json

    table = json.loads((reference_dir / "franka_lie_friction_excitation.json").read_text())
    kinematics = table["kinematics"]
    text = yaml.safe_dump(
        {
            "name": "panda_screws",
            "convention": "screws",
            "tip": {
                "xyz": kinematics["reference_pose_position_m"],
                "rotation": kinematics["reference_pose_rotation_flange"],
            },
            "joints": [{"screw": row} for row in kinematics["screw_axes"]],
        }
    )
    by_screws, panda = from_yaml(text), read_robot("panda")
    q, _, _ = states(panda)
    shown = q + np.array([0, 0, 0, -np.pi / 2, 0, np.pi / 2, 0])

    pose = forward_kinematics(panda, shown)[:, -1]
    np.testing.assert_allclose(forward_kinematics(by_screws, q)[:, -1], pose, atol=1e-12)


@pytest.mark.parametrize("name", bundled_robots())
def test_bundled_arms_are_possible_and_bounded(name):
    robot = read_robot(name)

    assert np.linalg.eigvalsh(pseudo_inertia(robot.parameters.reshape(-1, 10))).min() > 1e-8
    assert np.all(np.isfinite(robot.limits.lower)) and np.all(np.isfinite(robot.limits.upper))
    assert np.all(np.isfinite(robot.limits.velocity))
    assert len(robot.source) > 40
    has_joint_sensors = robot.joints == 7 and name != "openarm"
    assert robot.drives.side == ("link" if has_joint_sensors else "motor")


@pytest.mark.parametrize("name", bundled_robots())
def test_write_then_read_returns_the_same_robot(name, tmp_path):
    robot = read_robot(name, mounting="0,30,0")
    write_robot(robot, tmp_path / "arm.yaml")
    again = read_robot(tmp_path / "arm.yaml")

    for other in (again, Robot.from_dict(robot.to_dict())):
        for field in ("placements", "screws", "parameters", "tip", "gravity"):
            np.testing.assert_array_equal(getattr(other, field), getattr(robot, field))
        for field in ("lower", "upper", "velocity", "acceleration", "torque"):
            np.testing.assert_array_equal(
                getattr(other.limits, field), getattr(robot.limits, field)
            )
        for field in ("gain", "gear_ratio", "torque_constant", "coupling"):
            np.testing.assert_array_equal(
                getattr(other.drives, field), getattr(robot.drives, field)
            )
        assert other.joint_names == robot.joint_names and other.source == robot.source


def test_bundled_ur10e_agrees_with_a_urdf_of_it(data_dir):
    """Same joints, same directions; lengths differ by the URDF's rounding to a millimetre."""
    ours = read_robot("ur10e")
    theirs = read_robot(data_dir / "ur10e" / "ur10e.urdf")
    q, _, _ = states(ours)

    tip = forward_kinematics(ours, q)[:, -1, :3, 3] * [-1, -1, 1]
    np.testing.assert_allclose(forward_kinematics(theirs, q)[:, -1, :3, 3], tip, atol=3e-3)
    assert theirs.joint_names == ours.joint_names


def test_lengths_move_the_geometry_as_the_table_would():
    table = np.array(UR10_STANDARD)
    arm = from_dh(table, convention="standard")
    longer = table.copy()
    longer[1, 2], longer[3, 1] = -0.7, 0.2

    moved = arm.with_lengths({"a2": -0.7, "d4": 0.2})

    expected = from_dh(longer, convention="standard")
    np.testing.assert_allclose(moved.placements, expected.placements, atol=1e-15)
    np.testing.assert_allclose(moved.screws, expected.screws, atol=1e-15)


def test_drives_and_coupling_are_read():
    robot = from_yaml(
        """
        convention: standard
        drives: {side: motor, coupling: [[1, 0], [0.5, 1]]}
        joints:
          - {d: 0.1, gear_ratio: 101, torque_constant: 0.1, rotor_inertia: 0.2}
          - {a: 0.3, gain: 11.5, gain_std: 0.3}
        """
    )

    np.testing.assert_allclose(robot.drives.gain, [10.1, 11.5])
    np.testing.assert_allclose(robot.drives.gain_std, [0.0, 0.3])
    np.testing.assert_allclose(robot.drives.coupling, [[1, 0], [0.5, 1]])
    np.testing.assert_allclose(robot.rotor_inertias, [0.2, 0.0])


def test_urdf_matches_pinocchio_with_folded_fixed_joints():
    """Fixed joints between, beside and behind moving ones, against an independent library."""
    pin = pytest.importorskip("pinocchio")
    extra = (
        '<link name="bracket"><inertial><mass value="0.7"/><origin xyz="0.1 0.02 -0.03" '
        'rpy="0.1 0.2 0.3"/><inertia ixx="0.01" ixy="0.001" ixz="0.002" iyy="0.02" iyz="0.003" '
        'izz="0.015"/></inertial></link>'
        '<joint name="bracket_joint" type="fixed"><parent link="upper_arm"/>'
        '<child link="bracket"/><origin xyz="0.3 0.1 -0.2" rpy="1 -0.5 0.4"/></joint>'
        '<link name="camera"><inertial><mass value="0.3"/><inertia ixx="0.001" ixy="0" ixz="0" '
        'iyy="0.001" iyz="0" izz="0.001"/></inertial></link>'
        '<joint name="camera_joint" type="fixed"><parent link="tool0"/><child link="camera"/>'
        '<origin xyz="0.05 0 0.02" rpy="0 0.3 0"/></joint></robot>'
    )
    text = ur10_urdf().replace("</robot>", extra)
    robot = from_urdf(text)
    model = pin.buildModelFromXML(text)
    q, v, a = (np.array(x) for x in states(robot))
    data = model.createData()

    expected = np.array([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
    found = inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_base_and_tip_pick_the_chain():
    whole = from_urdf(ur10_urdf())
    part = from_urdf(ur10_urdf(), base="shoulder", tip="wrist_1_link")

    assert whole.joints == 6
    assert part.joint_names == ("lift", "elbow", "wrist_1")
    # What lies behind the chain's end is carried along, its joints held at zero.
    assert part.links[-1].parameters[0] == pytest.approx(1.96 + 1.96 + 0.202)


def test_tip_frame_is_the_tool():
    arm = from_urdf(ur10_urdf())
    q = np.zeros((1, 6))

    reach = forward_kinematics(arm, q)[0, -1, :3, 3]
    np.testing.assert_allclose(np.abs(reach), [1.1843, 0.256141, 0.0116], atol=1e-12)


def test_the_documented_yaml_is_read():
    page = Path(__file__).parents[2] / "docs" / "robots.md"
    (text,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    robot = from_yaml(text)

    assert robot.name == "my_arm" and robot.joint_names == ("shoulder",)
    assert robot.limits.torque[0] == 87 and robot.drives.gain[0] == 13.6
    assert robot.links[0].rotor_inertia == 0.3


def test_xacro_is_expanded(tmp_path):
    pytest.importorskip("xacrodoc")
    text = ur10_urdf().replace(
        '<robot name="ur10_test">',
        '<robot name="ur10_test" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:property name="height" value="${0.1 + 0.0273}"/>',
    )
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(text.replace("0 0 0.1273", "0 0 ${height}"))

    robot = read_robot(path)
    assert robot.joints == 6
    assert robot.links[0].placement[2, 3] == pytest.approx(0.1273)


def test_bundled_ur10e_holds_itself_like_the_controllers_model(data_dir):
    """Static poses: gravity torque against the target moments the real controller reports."""
    for path in sorted((data_dir / "ur10e" / "validation_data").glob("*.csv.gz")):
        rows = np.loadtxt(path, delimiter=",")
        still = np.abs(rows[:, 7:13]).max(1) == 0.0
        q, moment = rows[still, 1:7], rows[still, 25:31]

        # Worst of the five poses: 0.13 N m of 122, a thousandth: the controller takes g = 9.82.
        np.testing.assert_allclose(gravity_torque(read_robot("ur10e"), q), moment, atol=0.2)
